"""The driver contract: what every way of running a workload must promise.

A driver touches the world on behalf of one allocation.  It never decides whether the
allocation may run, and keeps nothing in memory that it needs after a crash: whatever
must be undone is in a handle that the ledger has made durable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import DriverName, WorkloadSpec


ProgressSink = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One allocation, as a driver sees it."""

    allocation: str
    epoch: int
    spec: WorkloadSpec = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """What is needed to find, judge and undo what a driver has made so far.

    ``data`` is JSON; the ledger stores it before the driver goes on.
    """

    allocation: str
    data: dict[str, Any]
    url: str | None = None
    """Where the server answers; set in the last handle only."""


class Standing(StrEnum):
    """What is left of a workload, judged from its handle."""

    STARTING = "starting"
    """Something of it runs, and it has not answered yet."""
    RUNNING = "running"
    GONE = "gone"
    """Nothing of it runs.  Leftovers on disk may remain until ``stop``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The answer of ``inspect``, ``wait`` and ``recover``."""

    standing: Standing
    exit_code: int | None = None
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceFinding:
    """Whether a driver's sandbox keeps CPU work from the machine's GPU."""

    os_build: str
    """The build of the system on which that was seen."""
    holds: bool | None
    """None: nobody knows."""
    reason: str
    """Why it is not known to hold, as a ``lower_snake`` code."""
    at: datetime


class DriverError(Exception):
    """A workload could not be prepared or started; nothing more will happen to it.

    ``explanation`` is for the user; the exception's text is for the operator's log.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        detail: str | None = None,
        subject: str | None = None,
    ) -> None:
        """Say what went wrong to the operator, and with *detail* to the user."""
        super().__init__(message)
        self.explanation = Explanation(reason=reason, subject=subject, detail=detail)


class NotNowError(DriverError):
    """The machine cannot run it as things are; nothing of it has begun.

    The place in the line is kept, and another machine or device may do.
    """

    def __init__(self, explanation: Explanation, message: str) -> None:
        """Say why to the user, and with *message* to the operator."""
        super().__init__(explanation.reason, message)
        self.explanation = explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookFolder:
    """Where one notebook's files are on this machine, or would be."""

    base: Path
    """All of a driver's notebook folders are here, and only the agent may enter."""
    name: str
    uid: int
    gid: int

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self.base / self.name


class Driver(ABC):
    """One way of running workloads on this machine."""

    name: ClassVar[DriverName]

    @property
    def keeps_limits(self) -> bool | None:
        """Whether a workload is kept to the cores and the memory of its class.

        None: nobody knows, or nothing runs that could take more.
        """
        return None

    async def open(self) -> None:  # noqa: B027 - most drivers need no time for it
        """Get ready; called once when the agent starts.

        The agent registers and takes up running workloads meanwhile; ``prepare`` is
        not called before this has returned.
        """

    @abstractmethod
    async def prepare(self, job: Job, progress: ProgressSink) -> None:
        """Fetch or build what *job*'s runtime needs; shared between allocations.

        May be called again after a crash, and concurrently for jobs that share a
        runtime: the work is done once.  Cancelling leaves nothing half made.

        Raises:
            DriverError: it cannot be prepared.
        """

    @abstractmethod
    def start(self, job: Job, progress: ProgressSink) -> AsyncIterator[Handle]:
        """Start *job*, yielding a handle after each step worth undoing.

        The last handle carries the URL: the server answers.  The caller makes each
        handle durable before it asks for the next, and calls ``stop`` with the last
        one when the iterator raises or is closed.

        Raises:
            DriverError: it cannot be started.
        """

    @abstractmethod
    async def stop(self, handle: Handle, *, grace_seconds: float) -> None:
        """End the workload and undo everything that *handle* names.

        Returns when nothing of it runs any more.  Idempotent; works on the handle of
        any step, after a crash and for a workload that is gone already.  The user's
        files are never touched.
        """

    @abstractmethod
    async def wait(self, handle: Handle) -> Condition:
        """Return when the workload is gone, with why; costs nothing meanwhile."""

    @abstractmethod
    async def recover(self, handle: Handle) -> Condition:
        """Judge a workload after a restart of the agent, or of the machine."""

    async def interpreters(self) -> dict[str, Path]:
        """Return the Python of each environment that is built, by the ref that names it.

        What its torch can do here is a fact of the machine; most drivers have none.
        """
        return {}

    def environments(self) -> tuple[str, ...] | None:
        """Return the refs of the environments that can be had here.

        None: any, as far as is known before it is tried.
        """
        return None

    async def known_fence(self, os_build: str) -> FenceFinding | None:
        """Return what was found out about the fence on *os_build*; None: nothing."""
        del os_build
        return None

    async def probe_fence(self, os_build: str) -> FenceFinding | None:
        """Find out whether the fence holds on *os_build*; None: there is none.

        That uses the GPU, so it is only asked while nobody else does.
        """
        del os_build
        return None

    def notebook(self, name: str, owner_id: int, owner: str) -> NotebookFolder | None:
        """Return where the notebook *name* of *owner* is; None: it keeps no files.

        May be called in a thread; nothing is made.

        Raises:
            DriverError: there can be no such folder.
        """
        return None

    def notebooks(self) -> Path | None:
        """Return where all notebook folders are; None: it keeps no files."""
        return None

    async def close(self) -> None:  # noqa: B027 - most drivers hold nothing
        """Release what the driver itself holds; running workloads stay running."""
