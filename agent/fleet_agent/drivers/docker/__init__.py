"""Runs notebooks in containers of this machine's own Docker engine."""
