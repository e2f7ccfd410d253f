"""What can go wrong in the controller, and whose move it is.

::

    ControllerError
    ├── StoreError                the store; the operator's move
    │   ├── StoreLockedError        another controller writes to it
    │   ├── StoreUnusableError      damaged, half written or made by a newer version
    │   └── StoreWriteError         it could not be written; nothing was changed
    ├── RequestRefusedError       wrong or not allowed; do not repeat it unchanged
    ├── CodeRefusedError          an enrolment code that is not valid, for whatever reason
    ├── UnknownWorkloadError      nothing by this name; perhaps retired meanwhile
    └── LinkRefusedError          an agent that may not speak, and whether to retry
"""

from __future__ import annotations

from fleet_contracts.reasons import Explanation


class ControllerError(Exception):
    """Anything that the controller reports instead of doing what was asked."""


class StoreError(ControllerError):
    """The durable store cannot be used; the message says what to do."""


class StoreLockedError(StoreError):
    """Another process writes to this store: there is never a second writer."""


class StoreUnusableError(StoreError):
    """The store is damaged or of another make; it was left exactly as it is."""


class StoreWriteError(StoreError):
    """A change could not be made durable, so nothing of it happened."""


class RequestRefusedError(ControllerError):
    """What was asked for is wrong or not allowed."""

    def __init__(self, explanation: Explanation) -> None:
        """Carry the reason with its numbers."""
        super().__init__(explanation.reason.value)
        self.explanation = explanation


class CodeRefusedError(ControllerError):
    """An enrolment code was used, has expired, or was never given: nobody is told which."""


class UnknownWorkloadError(ControllerError):
    """The controller knows nothing by this name."""


class LinkRefusedError(ControllerError):
    """An agent's link that must be closed, with what to tell the agent."""

    def __init__(self, code: str, message: str, *, retry: bool) -> None:
        """Say why in *code* for the agent and in *message* for its operator."""
        super().__init__(message)
        self.code = code
        self.retry = retry
