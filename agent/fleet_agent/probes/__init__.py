"""What this machine can do: one family of facts per module."""
