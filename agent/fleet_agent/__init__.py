"""The daemon that lends one machine to the fleet."""
