"""What the conformance suite needs to know about a driver, and how it starts jobs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from unittest import SkipTest

from fleet_agent.drivers.base import Driver, DriverError, Handle, Job
from fleet_contracts.timeline import Progress


class Fault(StrEnum):
    """What can go wrong with a job, on purpose."""

    FAILS_TO_PREPARE = "fails to prepare"
    FAILS_HALF_STARTED = "fails half started"
    """``start`` raises after it has made something."""
    DIES_BEFORE_READY = "dies before ready"
    """What was started ends by itself before it answers."""
    NEVER_READY = "never ready"
    """What was started runs and never answers; the job's start time is short."""
    IGNORES_STOP = "ignores stop"
    """What runs does not end when it is asked to."""
    DISAPPEARS = "disappears"
    """``Bench.remove`` can end it behind the driver's back."""


class Bench(ABC):
    """What the suite needs to know about one driver."""

    faults: frozenset[Fault] = frozenset(Fault)
    """The faults that jobs of this driver can have."""
    patience_seconds: float = 60.0
    """After which a step counts as stuck."""
    grace_seconds: float = 5.0
    """How long a job that behaves may take to stop."""

    @abstractmethod
    def driver(self) -> Driver:
        """Return a new driver over the same world, as a restarted agent makes it."""

    @abstractmethod
    def job(self, name: str, fault: Fault | None = None) -> Job:
        """Return the job *name* with *fault*; the same name means the same files."""

    @abstractmethod
    async def is_running(self, handle: Handle) -> bool:
        """Return whether anything of it runs, judged without the driver."""

    @abstractmethod
    async def answers(self, handle: Handle) -> bool:
        """Return whether the server at ``handle.url`` answers."""

    @abstractmethod
    async def remove(self, handle: Handle) -> None:
        """End what runs behind the driver's back."""

    async def leftovers(self) -> list[str]:
        """Return what jobs left that are over, files of users left aside."""
        return []


@dataclass
class Started:
    """What came of starting a job."""

    handles: list[Handle] = field(default_factory=list)
    error: DriverError | None = None
    progress: list[Progress] = field(default_factory=list)

    @property
    def last(self) -> Handle:
        """The handle that a ledger would hold: read back from JSON."""
        handle = self.handles[-1]
        data: dict[str, Any] = json.loads(json.dumps(handle.data))
        return Handle(allocation=handle.allocation, data=data, url=handle.url)


async def start(driver: Driver, job: Job) -> Started:
    """Prepare and start *job* as an agent does, up to its end or its failure."""
    started = Started()
    try:
        await driver.prepare(job, started.progress.append)
        async for handle in driver.start(job, started.progress.append):
            started.handles.append(handle)
    except DriverError as error:
        started.error = error
    return started


async def start_and_close(driver: Driver, job: Job, steps: int) -> Started:
    """Start *job* and give up after *steps* handles; fewer when there are no more."""
    started = Started()
    await driver.prepare(job, started.progress.append)
    iterator = driver.start(job, started.progress.append)
    async with aclosing(iterator) as handles:  # type: ignore[type-var]
        async for handle in handles:
            started.handles.append(handle)
            if len(started.handles) == steps:
                break
    return started


@asynccontextmanager
async def start_and_abandon(
    driver: Driver, job: Job, steps: int
) -> AsyncIterator[Started]:
    """Start *job*, and do nothing more after *steps* handles, as a killed agent does.

    Nothing of ``start`` is run to its end before this context is left.
    """
    started = Started()
    await driver.prepare(job, started.progress.append)
    iterator = driver.start(job, started.progress.append)
    async with aclosing(iterator) as handles:  # type: ignore[type-var]
        async for handle in handles:
            started.handles.append(handle)
            if len(started.handles) == steps:
                break
        yield started


def need(bench: Bench, fault: Fault) -> None:
    """Skip the test if no job of this driver can have *fault*."""
    if fault not in bench.faults:
        raise SkipTest(f"no job of this driver {fault.value}")
