"""Runs inside the sandbox, before and as the notebook server.

These modules are mounted into the sandbox by themselves: they import the standard
library and what the notebook's environment has, never the agent.
"""
