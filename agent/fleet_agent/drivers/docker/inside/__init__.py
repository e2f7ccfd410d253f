"""Is shown to containers, and runs in the Python of their image.

These modules import the standard library and what lies beside them, never the agent.
"""
