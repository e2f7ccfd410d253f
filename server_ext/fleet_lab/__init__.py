"""The notebook's side of the fleet: its own admission timeline."""
