"""Why a copy did not come about: a reason for people, and whether to try again."""

from __future__ import annotations

from fleet_agent.drivers.base import DriverError
from fleet_contracts.reasons import Reason


class CopyError(DriverError):
    """The files cannot be copied as things are; trying again would not help."""

    def __init__(
        self,
        message: str,
        *,
        reason: Reason = Reason.COPY_FAILED,
        detail: str | None = None,
    ) -> None:
        """Say it to the operator, and with *detail* to the user."""
        super().__init__(reason, message, detail=detail)
        self.reason = reason
        self.detail = detail or ""


class NotNowError(Exception):
    """The files did not come, and may come when they are asked for again."""

    def __init__(self, message: str, *, had_begun: bool = False) -> None:
        """Say it to the operator; *had_begun*: some of them had come."""
        super().__init__(message)
        self.had_begun = had_begun


class NoLineError(Exception):
    """The controller cannot be reached: nobody can say anything about the files."""
