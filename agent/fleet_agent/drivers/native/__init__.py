"""Runs a notebook in a pinned environment inside a sandbox of the operating system."""
