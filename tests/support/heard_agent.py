"""An agent's driver that builds nothing, and a link that only hears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from patience import PATIENCE
from typing_extensions import override

from fleet_agent.drivers.base import (
    Condition,
    Driver,
    Handle,
    Job,
    ProgressSink,
    Standing,
)
from fleet_agent.probes.settings import Environment
from fleet_contracts.base import Message
from fleet_contracts.protocol import AgentEvent, Report
from fleet_contracts.workloads import DriverName


@dataclass
class Building(Driver):
    """A native driver whose one environment exists once it was prepared."""

    name = DriverName.NATIVE
    built: list[Environment] = field(default_factory=list)
    started: list[str] = field(default_factory=list)

    @override
    async def prepare(self, job: Job, progress: ProgressSink) -> None:
        self.built[:] = [Environment(ref="pytorch", interpreter="/env/bin/python")]

    @override
    async def start(self, job: Job, progress: ProgressSink) -> AsyncIterator[Handle]:
        self.started.append(job.allocation)
        yield Handle(allocation=job.allocation, data={}, url="http://127.0.0.1:1/")

    @override
    async def stop(self, handle: Handle, *, grace_seconds: float) -> None:
        """Undo nothing: nothing was made."""

    @override
    async def wait(self, handle: Handle) -> Condition:
        await asyncio.Event().wait()
        raise AssertionError("it never ends")

    @override
    async def recover(self, handle: Handle) -> Condition:
        return Condition(standing=Standing.GONE)


class Ear:
    """A link that only hears."""

    def __init__(self) -> None:
        """Have heard nothing yet."""
        self.lives = asyncio.Event()
        self.heard: asyncio.Queue[Report] = asyncio.Queue()

    def send(self, message: Message) -> None:
        """Keep reports."""
        if isinstance(message, Report):
            self.heard.put_nowait(message)

    async def run(self) -> None:
        """Live until cancelled."""
        self.lives.set()
        await asyncio.Event().wait()

    async def until(self, *events: AgentEvent) -> Report:
        """Return the first report of one of *events*."""
        async with asyncio.timeout(PATIENCE):
            while (report := await self.heard.get()).event not in events:
                pass
            return report
