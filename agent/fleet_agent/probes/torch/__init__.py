"""What the torch of one environment can do here: asked in a process of its own."""
