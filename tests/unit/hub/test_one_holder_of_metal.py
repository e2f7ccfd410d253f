"""A Mac's GPU has one holder, whoever asked for what and however long nobody heard it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from controller_catalogs import offering
from fake_agent import FakeAgent
from fleet_builders import NOON
from fleet_controller import Fleet, allocation_of, kinds
from scheduling_builders import GIB, a_class, a_metal_class

from fleet_contracts.allocations import ENDED, State
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    AgentDriver,
    DeviceKind,
    Fact,
    HostFacts,
    Observed,
    WorkerCapabilities,
)
from fleet_contracts.protocol import AgentEvent, Heartbeat, Report
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_contracts.workloads import DriverName
from fleet_hub.controller import stopping
from fleet_hub.controller.records import Workload
from fleet_hub.controller.ticking import tick


TEN_MINUTES = 600
OBSERVED = Observed(source="test", observed_at=NOON)
CATALOG = offering(a_class(), a_metal_class())


def a_macs_picture() -> dict[str, Any]:
    """Return what a Mac of eight cores says of itself."""
    return WorkerCapabilities(
        host=HostFacts(
            os=Fact(value="darwin"),
            architecture=Fact(value="arm64"),
            apple_silicon=Fact(value=True),
            cores_allowed_milli=Fact(value=8000),
            memory_allowed_bytes=Fact(value=32 * GIB),
            disk_free_bytes=Fact(value=500 * GIB),
        ),
        drivers=(AgentDriver(name=DriverName.NATIVE, usable=True, observed=OBSERVED),),
        accelerators=(
            AcceleratorDevice(
                accelerator=DeviceKind.MPS,
                vendor="apple",
                name="Apple M2",
                execution_supported=True,
                observed=OBSERVED,
            ),
        ),
        settled=True,
    ).model_dump(mode="json")


@dataclass
class Mac:
    """A fleet of one Mac: somebody's server runs there, and another one waits."""

    fleet: Fleet
    agent: FakeAgent
    holder: Workload
    waiting: Workload

    @classmethod
    def of(cls, held: str, asked: str) -> Mac:
        """Return it with a *held* class that runs and an *asked* one that waits."""
        fleet = Fleet(catalog=CATALOG)
        agent = fleet.machine("mac", capabilities=a_macs_picture())
        holder = fleet.ask(1, class_name=held)
        agent.serve(allocation_of(holder))
        return cls(fleet, agent, fleet.get(holder), fleet.ask(2, class_name=asked))

    def is_away(self, seconds: float) -> None:
        """Cut the Mac off for so long; nobody else holds its GPU in any minute of it."""
        self.agent.disconnect()
        for _ in range(round(seconds / 60)):
            self.fleet.clock.advance(60)
            tick(self.fleet.core)
            self.fleet.cycle()
            assert self.holders() == [self.holder.id]

    def restarts_the_controller(self) -> None:
        """Kill the controller and start the next one."""
        self.fleet = self.fleet.restarted()
        self.agent = self.fleet.agents["mac"]

    def comes_back(self) -> None:
        """Let the Mac be heard again, and everything be decided."""
        self.agent.connect()
        self.agent.say(Heartbeat(sent_at=self.fleet.clock.now()))
        self.fleet.cycle()

    def holders(self) -> list[str]:
        """Return who holds the Mac's GPU, as the controller knows it."""
        return [
            record.id
            for record in self.fleet.core.model.workloads.values()
            if record.assignment is not None and record.assignment.resources.metal
        ]

    def outcomes(self) -> list[TimelineKind]:
        """Return how the holder ended, as often as that is recorded."""
        over = {TimelineKind.STOPPED, TimelineKind.FAILED}
        return [kind for kind in kinds(self.fleet, self.holder) if kind in over]


@pytest.fixture(
    params=[("metal", "metal"), ("metal", "cpu"), ("cpu", "metal"), ("cpu", "cpu")]
)
def mac(request: pytest.FixtureRequest) -> Mac:
    """Return a Mac with each pair of kinds: who holds, and who waits."""
    return Mac.of(*request.param)


def test_the_second_waits_for_the_gpu_whatever_both_asked_for(mac: Mac) -> None:
    """By name, and it starts once the first has ended."""
    assert mac.fleet.get(mac.waiting).state is State.QUEUED
    why = mac.waiting.explanation
    assert why is not None
    assert why.reason is Reason.METAL_BUSY
    assert [holder.workload for holder in why.holders] == [mac.holder.id]
    stopping.stop(mac.fleet.core, mac.fleet.get(mac.holder))
    assert mac.holders() == [mac.holder.id]
    mac.agent.report(allocation_of(mac.holder), AgentEvent.ENDED)
    mac.fleet.cycle()
    assert mac.holders() == [mac.waiting.id]


def test_ten_minutes_of_silence_give_the_gpu_to_nobody_else(mac: Mac) -> None:
    """It runs on, is found as it was, and nothing is recorded as its end."""
    mac.is_away(TEN_MINUTES)
    assert mac.fleet.get(mac.holder).state is State.UNKNOWN
    mac.comes_back()
    again = mac.fleet.get(mac.holder)
    assert (again.state, again.url) == (State.READY, mac.holder.url)
    assert allocation_of(again) == allocation_of(mac.holder)
    assert mac.holders() == [mac.holder.id]
    assert mac.outcomes() == []
    assert len(mac.agent.launched) == 1


def test_a_controller_that_restarts_meanwhile_changes_nothing_of_that(mac: Mac) -> None:
    """Before the Mac is heard again, and after."""
    mac.is_away(TEN_MINUTES / 2)
    mac.restarts_the_controller()
    mac.is_away(TEN_MINUTES / 2)
    mac.restarts_the_controller()
    mac.comes_back()
    assert mac.fleet.get(mac.holder).state is State.READY
    assert mac.holders() == [mac.holder.id]
    assert mac.outcomes() == []


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        (AgentEvent.ENDED, TimelineKind.STOPPED),
        (AgentEvent.FAILED, TimelineKind.FAILED),
    ],
)
@pytest.mark.parametrize("is_restarted", [False, True])
def test_an_end_in_the_silence_is_recorded_once_and_then_the_next_starts(
    mac: Mac, event: AgentEvent, outcome: TimelineKind, *, is_restarted: bool
) -> None:
    """However often the Mac tells of it, over as many links and controllers."""
    mac.is_away(TEN_MINUTES)
    why = Explanation(reason=Reason.SERVER_EXITED)
    mac.agent.report(allocation_of(mac.holder), event, explanation=why)
    assert mac.holders() == [mac.holder.id]
    if is_restarted:
        mac.restarts_the_controller()
    for _ in range(3):
        mac.comes_back()
        mac.agent.disconnect()
    mac.comes_back()
    assert mac.fleet.get(mac.holder).state in ENDED
    assert mac.outcomes() == [outcome]
    assert mac.holders() == [mac.waiting.id]


def test_a_stop_that_the_mac_missed_frees_nothing_before_it_has_heard_it(
    mac: Mac,
) -> None:
    """The user pressed stop meanwhile: the GPU is given on at the Mac's own word."""
    mac.agent.disconnect()
    stopping.stop(mac.fleet.core, mac.fleet.get(mac.holder))
    mac.is_away(TEN_MINUTES)
    mac.comes_back()
    assert mac.holders() == [mac.holder.id]
    assert [stop.allocation for stop in mac.agent.stops()] == [
        allocation_of(mac.holder)
    ]
    mac.agent.report(allocation_of(mac.holder), AgentEvent.ENDED)
    mac.fleet.cycle()
    assert mac.outcomes() == [TimelineKind.STOPPED]
    assert mac.holders() == [mac.waiting.id]


def test_a_reboot_in_the_silence_ends_the_holder_once(mac: Mac) -> None:
    """Nothing of an earlier boot runs any more; the next one may start."""
    mac.is_away(TEN_MINUTES)
    mac.agent.boot_id = "boot-2"
    mac.agent.report(
        allocation_of(mac.holder),
        AgentEvent.FAILED,
        explanation=Explanation(reason=Reason.MACHINE_REBOOTED),
    )
    mac.comes_back()
    assert mac.outcomes() == [TimelineKind.FAILED]
    assert mac.holders() == [mac.waiting.id]


def test_what_was_said_before_the_silence_and_comes_late_changes_nothing(
    mac: Mac,
) -> None:
    """Reports of an earlier launch, and repeated ones, are over."""
    mac.is_away(TEN_MINUTES)
    late = Report(
        allocation=allocation_of(mac.holder),
        epoch=mac.agent.launched[allocation_of(mac.holder)].epoch - 1,
        seq=99,
        at=NOON,
        event=AgentEvent.ENDED,
    )
    mac.comes_back()
    mac.agent.say(late)
    mac.fleet.cycle()
    assert mac.fleet.get(mac.holder).state is State.READY
    assert mac.holders() == [mac.holder.id]
