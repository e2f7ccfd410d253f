"""What an agent says of others' use and of lost GPUs, as the controller takes it."""

from __future__ import annotations

from typing import Any

import pytest
from fake_agent import some_capabilities
from fleet_builders import NOON
from fleet_controller import Fleet, allocation_of
from scheduling_builders import a_catalog

from fleet_contracts.allocations import State
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    DeviceUsage,
    Observed,
    ProbeReport,
    ProbeStatus,
    Usage,
    WorkerCapabilities,
)
from fleet_contracts.protocol import AgentEvent, CapabilitiesChanged, Heartbeat, Launch
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineEvent, TimelineKind
from fleet_contracts.workloads import DriverName
from fleet_hub.adapters.codec import WORKLOADS
from fleet_hub.controller import machines
from fleet_hub.controller.records import Workload


GIB = 1024**3
SEEN = Observed(source="nvidia-smi", observed_at=NOON)
FOREIGN = Explanation(reason=Reason.FOREIGN_PROCESS)


def a_card(uuid: str, *, healthy: bool = True) -> AcceleratorDevice:
    """Return a card of 80 GiB."""
    return AcceleratorDevice(
        accelerator=DeviceKind.CUDA,
        vendor="nvidia",
        uuid=uuid,
        name="NVIDIA A100-SXM4-80GB",
        memory_mib=81_920,
        compute_capability="8.0",
        driver_version="550.54.14",
        healthy=healthy,
        execution_supported=healthy,
    )


def a_picture(
    *cards: AcceleratorDevice, complete: bool = True, usage: Usage | None = None
) -> dict[str, Any]:
    """Return what a Linux box says of itself and of *cards*."""
    picture = WorkerCapabilities.model_validate(
        some_capabilities(driver=DriverName.SIMULATION)
    )
    report = ProbeReport(
        probe="nvidia",
        status=ProbeStatus.OK if complete else ProbeStatus.TOOL_ERROR,
        devices_complete=complete,
        observed=SEEN,
    )
    told = picture.model_copy(
        update={"accelerators": cards, "probes": (report,), "usage": usage}
    )
    return told.model_dump(mode="json", by_alias=True)


def a_usage(fleet: Fleet, **foreign_mib: int | None) -> Usage:
    """Return what is seen now, with others' use by the last letter of the UUID."""
    return Usage(
        observed=SEEN.model_copy(update={"observed_at": fleet.clock.now()}),
        devices=tuple(
            DeviceUsage(
                accelerator=DeviceKind.CUDA, uuid=f"GPU-{name}", foreign_mib=mib
            )
            for name, mib in foreign_mib.items()
        ),
    )


def beat(fleet: Fleet, usage: Usage) -> None:
    """Have the agent's next heartbeat say *usage*, and let the controller decide."""
    fleet.agents["box"].say(
        Heartbeat(sent_at=fleet.clock.now(), usage=usage.model_dump(mode="json"))
    )
    if fleet.core.wanted:
        fleet.cycle()


def a_fleet(*letters: str) -> Fleet:
    """Return a fleet of one box with these GPUs."""
    fleet = Fleet(catalog=a_catalog())
    cards = tuple(a_card(f"GPU-{letter}") for letter in letters)
    fleet.machine(capabilities=a_picture(*cards))
    return fleet


def asked(fleet: Fleet, number: int = 1) -> Workload:
    """Ask for a GPU."""
    return fleet.ask(number, profile="lab", class_name="gpu", attempt=f"try-{number}")


def held(fleet: Fleet, record: Workload) -> tuple[str, ...]:
    """Return the devices that a workload has."""
    assignment = fleet.get(record).assignment
    return () if assignment is None else assignment.resources.devices


def why(fleet: Fleet, record: Workload) -> Explanation:
    """Return what a waiting workload is told."""
    return fleet.core.model.waits[record.id].explanation


def notes(fleet: Fleet, record: Workload) -> list[TimelineEvent]:
    """Return the notes in a workload's timeline."""
    events = fleet.store.events(record.id)
    return [event for event in events if event.kind is TimelineKind.NOTE]


def test_a_heartbeat_takes_a_gpu_out_and_gives_it_back() -> None:
    """Each is an event: whoever waits is looked at, and no sweep finds it first."""
    fleet = a_fleet("a")
    beat(fleet, a_usage(fleet, a=24_576))
    record = asked(fleet)
    assert record.state is State.QUEUED
    assert why(fleet, record).reason is Reason.FOREIGN_PROCESS
    assert why(fleet, record).free == 56 * GIB
    assert fleet.core.engine.sweep(fleet.clock.now(), most=10) == 0
    beat(fleet, a_usage(fleet, a=0))
    assert held(fleet, record) == ("GPU-a",)
    assert fleet.core.engine.sweep(fleet.clock.now(), most=10) == 0


def test_the_first_word_of_a_link_says_who_uses_what() -> None:
    """Nothing is placed on a used GPU between an agent's return and its heartbeat."""
    fleet = a_fleet("a", "b")
    agent = fleet.agents["box"]
    beat(fleet, a_usage(fleet, a=24_576))
    agent.disconnect()
    used = a_usage(fleet, a=24_576)
    agent.capabilities = a_picture(a_card("GPU-a"), a_card("GPU-b"), usage=used)
    fleet = fleet.restarted()
    agent.connect()
    fleet.cycle()
    record = asked(fleet)
    assert held(fleet, record) == ("GPU-b",)


@pytest.mark.parametrize("foreign", [None, 0])
def test_unknown_use_is_neither_nothing_nor_everything(foreign: int | None) -> None:
    """An agent of before says nothing of others: its GPUs are given as ever."""
    fleet = a_fleet("a")
    beat(fleet, a_usage(fleet, a=foreign))
    assert held(fleet, asked(fleet)) == ("GPU-a",)


def test_an_amount_that_wavers_wakes_nobody() -> None:
    """A program that computes takes a little more and less all the time."""
    fleet = a_fleet("a")
    beat(fleet, a_usage(fleet, a=24_576))
    fleet.core.model.stirred.clear()
    for mib in (24_000, 25_500, 24_576, 25_599):
        fleet.core.wanted = False
        beat(fleet, a_usage(fleet, a=mib))
        assert not fleet.core.wanted
        assert fleet.core.model.stirred == set()
    beat(fleet, a_usage(fleet, a=40_000))
    assert fleet.core.model.presence["box"].used_outside == (("GPU-a", 40 * GIB),)


def test_a_word_that_is_only_repeated_ends() -> None:
    """A tool that hangs on the machine must not keep a GPU for ever."""
    fleet = a_fleet("a")
    used = a_usage(fleet, a=24_576)
    beat(fleet, used)
    record = asked(fleet)
    while fleet.clock.now() - NOON < machines.STALE:
        assert held(fleet, record) == ()
        fleet.clock.advance(60)
        beat(fleet, used)
    assert held(fleet, record) == ("GPU-a",)


def test_a_rejection_for_others_use_keeps_the_place_and_tries_the_next_gpu() -> None:
    """Only the device is left alone, not the machine's others: they are tried at once."""
    fleet = a_fleet("a", "b")
    record = asked(fleet)
    assert held(fleet, record) == ("GPU-a",)
    first = allocation_of(record)
    agent = fleet.agents["box"]
    agent.report(first, AgentEvent.ACCEPTED)
    beat(fleet, a_usage(fleet, a=24_576, b=0))
    agent.report(first, AgentEvent.REJECTED, explanation=FOREIGN)
    assert fleet.get(record).rejected_by == {}
    fleet.cycle()
    assert held(fleet, record) == ("GPU-b",)
    assert isinstance(agent.heard[-1], Launch)
    told = [event.explanation for event in fleet.store.events(record.id)]
    assert FOREIGN in told


def test_a_rejection_that_names_no_device_lets_the_machine_rest() -> None:
    """Nothing says what to leave alone, so the machine is, for this one and a while."""
    fleet = a_fleet("a", "b")
    record = asked(fleet)
    fleet.agents["box"].report(
        allocation_of(record), AgentEvent.REJECTED, explanation=FOREIGN
    )
    fleet.cycle()
    assert fleet.get(record).state is State.QUEUED
    assert fleet.get(record).rejected_by == {"box": Reason.FOREIGN_PROCESS}
    assert why(fleet, record).reason is Reason.FOREIGN_PROCESS


def on_a_gpu(fleet: Fleet) -> Workload:
    """Return a server that is ready on the first GPU."""
    record = asked(fleet)
    fleet.agents["box"].serve(allocation_of(record))
    return fleet.get(record)


def say(fleet: Fleet, *cards: AcceleratorDevice, complete: bool = True) -> None:
    """Have the agent's next look find *cards*."""
    told = a_picture(*cards, complete=complete)
    fleet.agents["box"].say(CapabilitiesChanged(capabilities=told))
    fleet.cycle()


A, B = a_card("GPU-a"), a_card("GPU-b")
DEAD = a_card("GPU-a", healthy=False)


@pytest.mark.parametrize("left", [(B,), (DEAD, B)])
def test_a_device_that_is_lost_is_told_to_whoever_runs_on_it(
    left: tuple[AcceleratorDevice, ...],
) -> None:
    """Once, in their timeline; nothing is ended, and nothing is given back."""
    fleet = a_fleet("a", "b")
    record = on_a_gpu(fleet)
    for _ in range(2):
        say(fleet, *left)
    [note] = notes(fleet, record)
    assert note.explanation == Explanation(
        reason=Reason.DEVICE_LOST,
        machine="box",
        requested=1,
        capacity=1,
        free=0,
        unit="devices",
    )
    assert fleet.get(record).state is State.READY
    assert held(fleet, record) == ("GPU-a",)
    assert fleet.agents["box"].stops() == []


def test_one_lost_gpu_does_not_spoil_the_others_and_is_offered_to_nobody() -> None:
    """The next one gets the other GPU; whoever comes after that waits for either."""
    fleet = a_fleet("a", "b")
    first = on_a_gpu(fleet)
    say(fleet, DEAD, B)
    second, third = asked(fleet, 2), asked(fleet, 3)
    assert held(fleet, second) == ("GPU-b",)
    assert third.state is State.QUEUED
    # Its holder ends: the lost one is still not there to be given.
    agent = fleet.agents["box"]
    agent.report(allocation_of(first), AgentEvent.ENDED)
    fleet.cycle()
    assert fleet.get(third).state is State.QUEUED
    say(fleet, A, B)
    assert held(fleet, third) == ("GPU-a",)


def test_whoever_waits_for_a_lost_gpu_waits_and_is_not_refused() -> None:
    """What does not work at the moment is no reason to say never."""
    fleet = a_fleet("a")
    on_a_gpu(fleet)
    waiting = asked(fleet, 2)
    say(fleet, DEAD)
    assert fleet.get(waiting).state is State.QUEUED
    assert why(fleet, waiting).reason is Reason.UNHEALTHY


def test_a_device_that_is_there_again_is_told_too() -> None:
    """Each loss and each return is an entry of its own."""
    fleet = a_fleet("a", "b")
    record = on_a_gpu(fleet)
    for cards in ((B,), (A, B), (DEAD, B)):
        say(fleet, *cards)
    reasons = [
        note.explanation and note.explanation.reason for note in notes(fleet, record)
    ]
    assert reasons == [
        Reason.DEVICE_LOST,
        Reason.DEVICE_RETURNED,
        Reason.DEVICE_LOST,
    ]


def test_a_list_with_gaps_loses_nothing_and_finds_nothing_again() -> None:
    """A driver that is being replaced under a running program is no loss of a GPU."""
    fleet = a_fleet("a")
    record = on_a_gpu(fleet)
    say(fleet, complete=False)
    assert notes(fleet, record) == []
    say(fleet)
    say(fleet, complete=False)
    assert len(notes(fleet, record)) == 1


def test_a_loss_is_remembered_across_restarts_and_told_once() -> None:
    """The controller's next process hears the same and has nothing new to tell."""
    fleet = a_fleet("a", "b")
    record = on_a_gpu(fleet)
    say(fleet, B)
    fleet.agents["box"].capabilities = a_picture(B)
    fleet = fleet.restarted()
    fleet.agents["box"].connect()
    fleet.cycle()
    assert len(notes(fleet, record)) == 1
    assert fleet.get(record).state is State.READY
    # And a loss while nobody listened is told with the first word of the next link.
    fleet.agents["box"].disconnect()
    fleet.agents["box"].capabilities = a_picture(A, B)
    fleet.agents["box"].connect()
    assert [
        note.explanation and note.explanation.reason for note in notes(fleet, record)
    ] == [
        Reason.DEVICE_LOST,
        Reason.DEVICE_RETURNED,
    ]


def test_a_picture_that_nobody_understands_loses_nothing() -> None:
    """It says nothing of any device."""
    fleet = a_fleet("a")
    record = on_a_gpu(fleet)
    fleet.agents["box"].say(CapabilitiesChanged(capabilities={"accelerators": 7}))
    assert notes(fleet, record) == []


def test_a_record_from_before_lost_devices_is_read() -> None:
    """A store that an earlier version wrote is still the truth."""
    fleet = a_fleet("a")
    record = on_a_gpu(fleet)
    text = WORKLOADS.encode(record)
    assert '"lost_devices":[]' in text
    assert WORKLOADS.decode(text.replace(',"lost_devices":[]', "")) == record
