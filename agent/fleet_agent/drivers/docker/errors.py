"""What can go wrong between this driver and the engine.

EngineError             its text is the engine's own: for operators, never for users
├── EngineAwayError     the engine does not answer: nothing is known
├── NotThereError       what was asked for does not exist
├── InTheWayError       something that exists forbids it
└── RefusedError        the engine did not do it

EndedEarlyError         a container ended before its server answered
"""

from __future__ import annotations


class EngineError(Exception):
    """The engine did not do what it was asked to."""


class EngineAwayError(EngineError):
    """The engine does not answer; what it runs may well go on."""


class NotThereError(EngineError):
    """The container, network or image does not exist."""


class InTheWayError(EngineError):
    """The name is in use, or the container is being removed already."""


class RefusedError(EngineError):
    """The engine was asked, and said no."""


class EndedEarlyError(Exception):
    """The container ended before its server answered."""
