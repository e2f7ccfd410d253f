"""What the Hub, the agents and the notebooks must agree on.

Frozen models and plain functions over them: nothing here reads a clock or the network,
and no file but the words of other languages (``languages.py``), so every process gives
the same answer to the same question.
"""

__version__ = "0.1.0"
