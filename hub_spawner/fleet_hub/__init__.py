"""JupyterHub's side of the fleet: the Spawner, the controller and their pages."""
