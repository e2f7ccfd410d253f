"""One agent at work: what it says on the link, and what it does when spoken to."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from fleet_agent import __version__
from fleet_agent.acceptance import Machine
from fleet_agent.address_desk import AddressDesk
from fleet_agent.copying.copies import Copies
from fleet_agent.copying.lines import Dial, nowhere
from fleet_agent.copying.sending import Sending
from fleet_agent.device_check import a_second, check_devices
from fleet_agent.drivers.base import Driver, DriverError
from fleet_agent.environment import for_this_machine
from fleet_agent.errors import LedgerWriteError
from fleet_agent.fencing import Fencing
from fleet_agent.foreign_use import ForeignUse
from fleet_agent.leases import Leases
from fleet_agent.ledger import Ledger
from fleet_agent.link import Link, heartbeat
from fleet_agent.picture import Picture
from fleet_agent.probes.settings import DetectSettings
from fleet_agent.processes import boot_id
from fleet_agent.supervisor import Supervisor
from fleet_agent.terms.watching import TermsWatch
from fleet_contracts.base import Message
from fleet_contracts.capabilities import DeviceUsage, Usage, WorkerCapabilities
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.protocol import (
    PROTOCOL,
    Acknowledge,
    AddressVerdict,
    AgentEvent,
    CapabilitiesChanged,
    Forget,
    Goodbye,
    Hello,
    InventoryItem,
    Launch,
    Redetect,
    Report,
    SendFiles,
    Stop,
    ToAgent,
    Welcome,
)
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import DriverName, WorkloadSpec


_REAL_DRIVERS = frozenset({DriverName.NATIVE, DriverName.DOCKER})
"""Those whose devices are devices of this machine."""

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
        dial: Dial = nowhere,
        observe_seconds: float = 30.0,
        bind_address: str = "127.0.0.1",
        advertise_address: str = "127.0.0.1",
        terms: TermsWatch | None = None,
        share_metal: bool = False,
        cut_off: Path | None = None,
    ) -> None:
        """Lend the machine of *owner* to the controller at *service_url*."""
        self._desk = AddressDesk(
            bind=bind_address, advertise=advertise_address, send=self._send
        )
        self._ledger = ledger
        self._drivers = drivers
        self._owner = owner
        self._service_url = service_url
        self._hub_api_url: str | None = None
        self._link: Link | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._use = ForeignUse(held=self._held_devices, clock=time.monotonic)
        self._picture = Picture(
            on_usage=self._see_use,
            settings=detection,
            on_change=self._on_change,
            period_seconds=detect_seconds,
            observe_seconds=observe_seconds,
            terms=terms,
        )
        self._fencing = Fencing(
            consent=share_metal,
            driver=drivers.get(DriverName.NATIVE),
            picture=self._picture,
            detection=detection,
            in_use=self._is_native_here,
        )
        self._sending = Sending(dial=dial, drivers=drivers, entries=ledger.entries)
        self._supervisor = Supervisor(
            ledger=ledger,
            drivers=drivers,
            machine=self._machine,
            localise=self._localise,
            publish=self._publish,
            verify=self._verify,
            copies=Copies(dial),
        )

        self._leases = Leases(
            path=cut_off,
            entries=ledger.entries,
            end=lambda key: self._supervisor.end(
                key, Explanation(reason=Reason.CUT_OFF)
            ),
        )

    async def run(self, link: Link) -> None:
        """Take up what was running, then serve *link* until cancelled.

        Raises:
            AgentError: the agent cannot go on; workloads run on.
        """
        await asyncio.gather(self._supervisor.recover(), self._picture.look_fast())
        await self._fencing.recall()
        self._link = link
        tasks = {
            asyncio.ensure_future(self._supervisor.fault),
            asyncio.create_task(link.run()),
            asyncio.create_task(self._picture.run()),
            asyncio.create_task(self._picture.watch()),
            asyncio.create_task(self._picture.watch_terms()),
            asyncio.create_task(self._fencing.run()),
            asyncio.create_task(self._leases.run()),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
            for task in done:
                task.result()
        finally:
            await self._desk.close()
            await self._sending.close()
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
            capabilities=_on_the_wire(
                self._picture.latest.model_copy(update={"usage": self.usage()})
            ),
            highest_epoch=self._ledger.highest_epoch,
            inventory_size=len(self._ledger.entries()),
        )

    def usage(self) -> Usage | None:
        """Return how busy the machine was when it was last looked at."""
        return self._use.told(self._picture.usage)

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
                self._leases.heard()
                self._hub_api_url = message.hub_api_url
                self._desk.welcomed(message)
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
                self._fencing.look_again()
                self._desk.offer()
            case SendFiles():
                self._sending.send(message)
            case AddressVerdict():
                self._desk.told(message)
            case Goodbye():
                pass

    def lost(self) -> None:
        """Know that nobody is heard any more."""
        self._leases.lost()

    # -------------------------------------------------------------------- helpers

    def _machine(self) -> Machine:
        facts = placement_facts(self._picture.latest)
        return Machine(
            owner=self._owner,
            drivers=frozenset(self._drivers),
            os=facts.os,
            metal_fenced=facts.metal_fenced,
            cpu_milli=facts.cores_milli,
            memory_bytes=facts.memory_bytes,
            foreign=self._use.in_use(),
            closed=facts.closed,
        )

    async def _verify(self, spec: WorkloadSpec) -> None:
        """Say whether *spec* may have its devices, and torch can do what is required.

        Placement admits a launch where that is unknown, because the environment was
        not built yet; now it is.

        Raises:
            NotNowError: a device is gone, or others use it.
            DriverError: torch cannot, or nobody can tell.
        """
        if spec.resources.devices and spec.runtime.driver in _REAL_DRIVERS:
            await check_devices(
                spec.resources.devices,
                look=self._picture.devices_now,
                use=self._use,
                pause=a_second,
            )
        if spec.runtime.driver is DriverName.NATIVE:
            await self._fencing.until_quiet()
        wanted = [name for name in spec.runtime.requires if name.startswith("torch.")]
        # What a container's torch can do is not told by any torch of the machine.
        if not wanted or spec.runtime.driver is not DriverName.NATIVE:
            return
        facts = await self._picture.torch_in(
            spec.runtime.ref, wanted, may_compute=spec.resources.metal
        )
        for name in wanted:
            if facts.get(name) is not True:
                known = facts.get(name) is False
                raise DriverError(
                    Reason.ACCELERATOR_NOT_USED
                    if known
                    else Reason.CAPABILITIES_UNKNOWN,
                    f"{name} of the environment is {facts.get(name)}",
                    subject=name,
                )

    def _localise(self, spec: WorkloadSpec) -> WorkloadSpec:
        environment = for_this_machine(
            spec.environment,
            fleet_url=self._service_url,
            hub_api_url=self._hub_api_url,
        )
        return spec.model_copy(update={"environment": environment})

    def _send(self, message: Message) -> None:
        if self._link is not None:
            self._link.send(message)

    def _publish(self, report: Report) -> None:
        self._use.note()
        why = report.explanation
        if why is not None and why.reason is Reason.FOREIGN_PROCESS:
            # Which device it is comes first: only that one is left alone.
            self._send(heartbeat(self.usage()))
        elif why is not None and why.reason is Reason.DEVICE_LOST:
            self._picture.look_again()
        if self._link is not None:
            self._link.send(report)
        self._fencing.look()
        if report.event is AgentEvent.PREPARED:
            # What torch can do in a new environment is worth knowing at once.
            task = asyncio.create_task(self._picture.notice_environments())
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    def _held_devices(self) -> set[str]:
        """Return the devices that the ledger says are held, by UUID."""
        return {
            uuid
            for entry in self._ledger.entries()
            if entry.holds and entry.spec is not None
            for uuid in entry.spec.resources.devices
        }

    def _see_use(self, devices: Sequence[DeviceUsage]) -> bool:
        self._use.see(devices)
        return self._use.is_suspicious

    def _is_native_here(self) -> bool:
        """Whether anything of the native driver holds anything of this machine."""
        return any(
            entry.holds
            and (entry.spec is None or entry.spec.runtime.driver is DriverName.NATIVE)
            for entry in self._ledger.entries()
        )

    def _on_change(self, picture: WorkerCapabilities) -> None:
        self._fencing.look()
        if self._link is not None:
            self._link.send(CapabilitiesChanged(capabilities=_on_the_wire(picture)))


def _on_the_wire(picture: WorkerCapabilities) -> dict[str, object]:
    return picture.model_dump(mode="json", by_alias=True)
