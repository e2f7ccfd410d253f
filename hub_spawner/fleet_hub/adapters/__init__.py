"""What carries the controller's decisions out."""
