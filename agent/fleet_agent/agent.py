"""One agent at work: what it says on the link, and what it does when spoken to."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Mapping, Sequence

import structlog

from fleet_agent import __version__
from fleet_agent.acceptance import Machine
from fleet_agent.drivers.base import Driver
from fleet_agent.environment import for_this_machine
from fleet_agent.errors import LedgerWriteError
from fleet_agent.ledger import Ledger
from fleet_agent.link import Link
from fleet_agent.picture import Picture
from fleet_agent.probes.settings import DetectSettings
from fleet_agent.processes import boot_id
from fleet_agent.supervisor import Supervisor
from fleet_contracts.capabilities import Usage, WorkerCapabilities
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.protocol import (
    PROTOCOL,
    Acknowledge,
    AgentEvent,
    CapabilitiesChanged,
    Forget,
    Goodbye,
    Hello,
    InventoryItem,
    Launch,
    Redetect,
    Report,
    Stop,
    ToAgent,
    Welcome,
)
from fleet_contracts.workloads import DriverName, WorkloadSpec


_log = structlog.stdlib.get_logger("fleet_agent")


class Agent:
    """Speaks for this machine; see ``link.Speaker``."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        drivers: Mapping[DriverName, Driver],
        owner: str,
        service_url: str,
        detection: DetectSettings,
        detect_seconds: float,
        observe_seconds: float = 30.0,
    ) -> None:
        """Lend the machine of *owner* to the controller at *service_url*."""
        self._ledger = ledger
        self._drivers = drivers
        self._owner = owner
        self._service_url = service_url
        self._hub_api_url: str | None = None
        self._link: Link | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._picture = Picture(
            settings=detection,
            on_change=self._on_change,
            period_seconds=detect_seconds,
            observe_seconds=observe_seconds,
        )
        self._supervisor = Supervisor(
            ledger=ledger,
            drivers=drivers,
            machine=self._machine,
            localise=self._localise,
            publish=self._publish,
        )

    async def run(self, link: Link) -> None:
        """Take up what was running, then serve *link* until cancelled.

        Raises:
            AgentError: the agent cannot go on; workloads run on.
        """
        await asyncio.gather(self._supervisor.recover(), self._picture.look_fast())
        self._link = link
        tasks = {
            asyncio.ensure_future(self._supervisor.fault),
            asyncio.create_task(link.run()),
            asyncio.create_task(self._picture.run()),
            asyncio.create_task(self._picture.watch()),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
            for task in done:
                task.result()
        finally:
            tasks |= self._background
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._link = None

    async def close(self, *, stop_workloads: bool) -> None:
        """Let go of the workloads, or end them; may be called during ``run``."""
        await self._supervisor.close(stop_workloads=stop_workloads)

    # ---------------------------------------------------------------- for the link

    def hello(self) -> Hello:
        """Return the introduction for a new link."""
        return Hello(
            protocol=PROTOCOL,
            agent_version=__version__,
            boot_id=boot_id(),
            ledger_id=self._ledger.ledger_id,
            platform=platform.system().lower(),
            python=platform.python_version(),
            drivers=tuple(name.value for name in self._drivers),
            capabilities=_on_the_wire(self._picture.latest),
            highest_epoch=self._ledger.highest_epoch,
            inventory_size=len(self._ledger.entries()),
        )

    def usage(self) -> Usage | None:
        """Return how busy the machine was when it was last looked at."""
        return self._picture.usage

    def inventory(self) -> Sequence[InventoryItem]:
        """Return what the ledger holds now."""
        return self._supervisor.inventory()

    def unacknowledged(self) -> Sequence[Report]:
        """Return the reports that the controller has not confirmed, oldest first."""
        return self._ledger.unacknowledged()

    def receive(self, message: ToAgent) -> None:
        """Act on a message of a living link."""
        try:
            self._act(message)
        except LedgerWriteError as error:
            # Nothing was done; the controller asks again on the next link.
            _log.error("a message could not be recorded", error=str(error))

    def _act(self, message: ToAgent) -> None:
        match message:
            case Welcome():
                self._hub_api_url = message.hub_api_url
                _log.info("welcome", machine=message.machine)
            case Launch():
                self._supervisor.launch(message)
            case Stop():
                self._supervisor.stop(message)
            case Forget():
                self._supervisor.forget(message)
            case Acknowledge():
                self._supervisor.acknowledge(message)
            case Redetect():
                self._picture.look_again()
            case Goodbye():
                pass

    # -------------------------------------------------------------------- helpers

    def _machine(self) -> Machine:
        facts = placement_facts(self._picture.latest)
        return Machine(
            owner=self._owner,
            drivers=frozenset(self._drivers),
            os=facts.os,
            cpu_milli=facts.cores_milli,
            memory_bytes=facts.memory_bytes,
        )

    def _localise(self, spec: WorkloadSpec) -> WorkloadSpec:
        environment = for_this_machine(
            spec.environment,
            fleet_url=self._service_url,
            hub_api_url=self._hub_api_url,
        )
        return spec.model_copy(update={"environment": environment})

    def _publish(self, report: Report) -> None:
        if self._link is not None:
            self._link.send(report)
        if report.event is AgentEvent.PREPARED:
            # What torch can do in a new environment is worth knowing at once.
            task = asyncio.create_task(self._picture.notice_environments())
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    def _on_change(self, picture: WorkerCapabilities) -> None:
        if self._link is not None:
            self._link.send(CapabilitiesChanged(capabilities=_on_the_wire(picture)))


def _on_the_wire(picture: WorkerCapabilities) -> dict[str, object]:
    return picture.model_dump(mode="json", by_alias=True)
