"""What is there once is given once, however often it is told, asked for or repeated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_agent import some_capabilities
from fleet_controller import Fleet, allocation_of
from scheduling_builders import (
    BOB,
    BOTH_DRIVERS,
    NOON,
    OPEN,
    a_catalog,
    a_gpu,
    a_gpu_box,
    a_gpu_class,
    a_machine,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    Observed,
    WorkerCapabilities,
)
from fleet_contracts.catalog import Quota
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.protocol import AgentEvent, Inventory
from fleet_contracts.reasons import Reason
from fleet_hub.scheduling.plan import plan, planner_of


PAIR = a_catalog(classes=(a_gpu_class("gpu"), a_gpu_class("pair", devices=2)))


def a_picture(*devices: AcceleratorDevice) -> WorkerCapabilities:
    """Return what a machine says of itself that lists these devices."""
    told = WorkerCapabilities.model_validate(some_capabilities())
    return told.model_copy(update={"accelerators": devices})


def a_told_gpu(uuid: str | None = "GPU-0", **fields: object) -> AcceleratorDevice:
    """Return a GPU as an agent tells of it."""
    values = {
        "accelerator": DeviceKind.CUDA,
        "vendor": "NVIDIA",
        "uuid": uuid,
        "execution_supported": True,
        "healthy": True,
        "observed": Observed(source="test", observed_at=NOON),
    }
    return AcceleratorDevice.model_validate(values | fields)


def test_a_gpu_that_is_listed_twice_is_one_gpu() -> None:
    """A tool that repeats itself, or a card under two indices, makes no second one."""
    facts = placement_facts(a_picture(a_told_gpu(), a_told_gpu(), a_told_gpu("GPU-1")))
    assert [device.uuid for device in facts.devices] == ["GPU-0", "GPU-1"]
    box = a_machine(devices=facts.devices)
    three = tuple(a_waiting(f"w{number}", class_name="gpu") for number in range(3))
    found = plan(a_snapshot(catalog=PAIR, machines=(box,), waiting=three))
    taken = sorted(item.resources.devices for item in found.placements)
    assert taken == [("GPU-0",), ("GPU-1",)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_gpu_that_is_told_of_as_broken_too_is_broken(order: int) -> None:
    """Of two words about one device the worse counts, in either order."""
    told = (a_told_gpu(), a_told_gpu(healthy=False))[::order]
    (device,) = placement_facts(a_picture(*told)).devices
    assert not device.usable


def test_devices_without_a_name_are_not_taken_for_one_another() -> None:
    """Two that cannot be told apart by UUID are still two."""
    facts = placement_facts(a_picture(a_told_gpu(None), a_told_gpu(None)))
    assert len(facts.devices) == 2


def test_a_pair_is_two_devices_and_never_one_of_them_twice() -> None:
    """A machine with one GPU, listed twice, can never run it."""
    (device,) = placement_facts(a_picture(a_told_gpu(), a_told_gpu())).devices
    decided = plan(
        a_snapshot(
            catalog=PAIR,
            machines=(a_machine(devices=(device,)),),
            waiting=(a_waiting(class_name="pair"),),
        )
    )
    assert [item.explanation.reason for item in decided.refusals] == [
        Reason.EXCEEDS_ANY_MACHINE
    ]


def test_two_users_of_one_gpu_are_told_of_one_device_and_decided_once() -> None:
    """The second waits; looking again changes nothing and finds nothing missed."""
    box = a_gpu_box(gpus=1, sharing=OPEN, drivers=BOTH_DRIVERS)
    planner = planner_of(a_snapshot(catalog=PAIR, machines=(box,)))
    planner.ask(a_waiting("one", class_name="gpu"))
    planner.ask(a_waiting("two", class_name="gpu", principal=BOB))
    assert len(planner.decide(NOON).placements) == 1
    for second in range(1, 100):
        decided = planner.decide(NOON + second)
        assert (decided.placements, decided.is_unfinished) == ((), False)
        assert planner.look_again(10) == 0


def test_what_is_held_and_what_is_promised_of_one_device_count_once() -> None:
    """A quota of two: one held and one promised are two, and not three."""
    catalog = PAIR.model_copy(update={"quotas": (Quota(user="alice", devices=2),)})
    held = (
        an_allocation(
            "mine",
            owner="alice",
            user_id=1,
            devices=("GPU-gpu-box-0",),
            devices_asked=1,
            class_name="gpu",
            ends_by=NOON + 600,
        ),
    )
    planner = planner_of(a_snapshot(catalog=catalog, machines=(a_gpu_box(held=held),)))
    planner.ask(a_waiting("next", class_name="gpu"))
    planner.ask(a_waiting("third", class_name="gpu", asked_at=NOON))
    planner.decide(NOON)
    assert planner.waiters["next"].promise is not None
    third = planner.waiters["third"].bar
    assert third is not None
    assert third.reason is Reason.USER_LIMIT
    # The first of them starts: what was promised is now held, and still counts once.
    planner.release("gpu-box", "mine")
    assert len(planner.decide(NOON + 1).placements) == 1
    assert planner.decide(NOON + 2).placements == ()
    assert planner.waiters["third"].promise is None


def test_a_launch_that_is_told_again_holds_its_cores_once() -> None:
    """Repeated launches, inventories and reports leave one allocation of one workload."""
    fleet = Fleet()
    agent = fleet.machine(cores=2)
    record = fleet.ask(1)
    allocation = allocation_of(record)
    agent.serve(allocation)
    for _ in range(5):
        agent.disconnect()
        agent.connect(cores=2)
        agent.say(Inventory(items=tuple(agent.ledger.values()), last=True))
        fleet.cycle()
    again = fleet.ask(1, attempt="second")
    assert allocation_of(again) == allocation
    # Of two cores one is free: a second server fits, and a third does not.
    assert fleet.ask(2).assignment is not None
    assert fleet.ask(3).assignment is None
    entry = fleet.core.engine.planner(fleet.clock.now()).fleet.entries["box"]
    assert entry.free[0] == 0


def test_an_end_that_is_told_twice_frees_once() -> None:
    """One core was held and comes back: there is one to give, and not two."""
    fleet = Fleet()
    agent = fleet.machine(cores=2)
    first, second = fleet.ask(1), fleet.ask(2)
    waiting = [fleet.ask(number) for number in (3, 4)]
    for record in (first, second):
        agent.serve(allocation_of(record))
    agent.report(allocation_of(first), AgentEvent.ENDED)
    for report in tuple(agent.said):
        agent.say(report)
    fleet.cycle()
    placed = [fleet.get(record).assignment is not None for record in waiting]
    assert placed == [True, False]


def test_a_machine_that_is_described_again_has_what_it_had() -> None:
    """Its holders are counted anew from the same facts, as often as these are told."""
    box = a_gpu_box(gpus=2, sharing=OPEN, drivers=BOTH_DRIVERS)
    planner = planner_of(a_snapshot(catalog=PAIR, machines=(box,)))
    planner.ask(a_waiting("one", class_name="gpu"))
    (placed,) = planner.decide(NOON).placements
    allocation = planner.fleet.entries["gpu-box"].allocations["one"]
    for second in range(1, 4):
        changed = replace(
            box, held=(allocation,), facts=box.facts.model_copy(deep=True)
        )
        planner.put_machine(changed)
        planner.decide(NOON + second)
    planner.ask(a_waiting("two", class_name="gpu", principal=BOB))
    planner.ask(a_waiting("three", class_name="gpu", principal=BOB))
    (other,) = planner.decide(NOON + 9).placements
    assert set(placed.resources.devices + other.resources.devices) == {
        "GPU-gpu-box-0",
        "GPU-gpu-box-1",
    }


def test_one_gpu_among_many_names_is_still_one() -> None:
    """Types differ, UUIDs do not: the second description of one card adds nothing."""
    named = a_told_gpu(name="NVIDIA A100", memory_mib=81_920)
    unnamed = a_told_gpu()
    facts = placement_facts(a_picture(named, unnamed))
    assert [device.name for device in facts.devices] == ["NVIDIA A100"]
    assert a_gpu().uuid == "GPU-0"
