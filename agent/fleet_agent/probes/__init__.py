"""What this machine can do: one family of facts per module.

``detect.py`` composes the probes and says how to use them; the probes do not know
each other.
"""
