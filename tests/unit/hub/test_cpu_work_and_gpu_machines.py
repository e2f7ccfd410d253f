"""CPU notebooks do not fill GPU machines while CPU machines are free."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from scheduling_builders import (
    GIB,
    NOON,
    OPEN,
    a_catalog,
    a_class,
    a_docker_box,
    a_gpu,
    a_gpu_box,
    a_gpu_class,
    a_mac,
    a_machine,
    a_metal_gpu,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.capabilities import DeviceKind
from fleet_contracts.placement_facts import PlaceableDevice
from fleet_contracts.reasons import Reason
from fleet_hub.scheduling.plan import plan, planner_of
from fleet_hub.scheduling.snapshot import MachineState, Snapshot


def notebooks(count: int = 1) -> tuple[object, ...]:
    """Return this many CPU notebooks that wait."""
    return tuple(a_waiting(f"cpu-{number:02}") for number in range(count))


def machines_of(snapshot: Snapshot) -> Counter[str]:
    """Return how many start on which machine."""
    return Counter(item.machine for item in plan(snapshot).placements)


def test_cpu_notebooks_fill_the_cpu_machines_first_and_then_gpu_machines() -> None:
    """However well a GPU machine would fit, and whatever it is called."""
    machines = (
        a_gpu_box("a-gpu", cores_milli=1000),
        a_machine("b-cpu", cores_milli=16_000),
        a_machine("c-cpu", cores_milli=4000),
        a_gpu_box("d-gpu", gpus=8),
    )
    for count, on_gpu in ((20, 0), (21, 1), (24, 4)):
        found = machines_of(a_snapshot(machines=machines, waiting=notebooks(count)))
        assert found["b-cpu"] + found["c-cpu"] == 20
        assert found["a-gpu"] + found["d-gpu"] == on_gpu


def test_where_only_gpu_machines_have_enough_memory_cpu_work_runs_there() -> None:
    """It takes no device with it: all of them stay free for whoever asks for one."""
    catalog = a_catalog(classes=(a_class("cpu", memory_bytes=100 * GIB), a_gpu_class()))
    machines = (a_machine("cpu"), a_gpu_box("gpu", gpus=2, memory_bytes=256 * GIB))
    waiting = (
        a_waiting("asked", class_name="cpu"),
        a_waiting("first", class_name="gpu"),
        a_waiting("second", class_name="gpu"),
    )
    found = plan(a_snapshot(catalog=catalog, machines=machines, waiting=waiting))
    devices = {item.workload: item.resources.devices for item in found.placements}
    assert devices.pop("asked") == ()
    assert sorted(devices.values()) == [("GPU-gpu-0",), ("GPU-gpu-1",)]


@pytest.mark.parametrize(
    "changes",
    [
        {"online": False, "offline_since": NOON - 60},
        {"draining_by": "root"},
        {"quarantined_until": NOON + 600},
        {"inventory_known": False},
        {"held": (an_allocation(cpu_milli=8000),)},
    ],
)
def test_a_cpu_machine_that_takes_nothing_now_is_not_free(
    changes: dict[str, object],
) -> None:
    """Away, drained, set aside, unheard or full: nobody waits for it beside free cores."""
    away = replace(a_machine("cpu"), **changes)
    snapshot = a_snapshot(machines=(away, a_gpu_box("gpu")), waiting=notebooks())
    assert machines_of(snapshot) == {"gpu": 1}


def test_what_comes_after_a_cpu_machine_is_back_goes_there() -> None:
    """What meanwhile began on a GPU machine stays; the next one does not follow it."""
    away = a_machine("cpu", online=False, offline_since=NOON - 60)
    planner = planner_of(a_snapshot(machines=(away, a_gpu_box("gpu"))))
    planner.ask(a_waiting("before"))
    assert [item.machine for item in planner.decide(NOON).placements] == ["gpu"]
    planner.put_machine(a_machine("cpu"))
    planner.ask(a_waiting("after"))
    assert [item.machine for item in planner.decide(NOON + 1).placements] == ["cpu"]


def test_cores_that_are_promised_to_somebody_are_not_free() -> None:
    """The promise on the CPU machine is kept, and the notebook starts all the same."""
    catalog = a_catalog(classes=(a_class("cpu"), a_class("whole", cpu_milli=8000)))
    held = an_allocation(cpu_milli=4000, ends_by=NOON + 600)
    machines = (a_machine("cpu", held=(held,)), a_gpu_box("gpu", cores_milli=4000))
    waiting = (
        a_waiting("whole", class_name="whole", asked_at=NOON - 60),
        a_waiting("cpu", class_name="cpu", asked_at=NOON),
    )
    found = plan(a_snapshot(catalog=catalog, machines=machines, waiting=waiting))
    assert [(item.workload, item.machine) for item in found.placements] == [
        ("cpu", "gpu")
    ]
    (whole,) = found.waits
    assert whole.no_later_than is not None


@pytest.mark.parametrize(
    "facts", [{"settled": False}, {"unlisted": {DeviceKind.CUDA: "nvidia-smi: gone"}}]
)
def test_a_machine_whose_probes_have_not_answered_may_have_gpus(
    facts: dict[str, Any],
) -> None:
    """One that is known to have none comes first; better there than nowhere."""
    unknown = a_machine("a-unknown", **facts)
    both = a_snapshot(machines=(unknown, a_machine("z-cpu")), waiting=notebooks())
    assert machines_of(both) == {"z-cpu": 1}
    alone = a_snapshot(machines=(unknown,), waiting=notebooks())
    assert machines_of(alone) == {"a-unknown": 1}


def test_a_machine_whose_gpu_is_broken_is_a_gpu_machine() -> None:
    """It is expected back: CPU work goes elsewhere while it can."""
    broken = a_gpu(healthy=False, usable=False)
    machines = (a_machine("a-broken", devices=(broken,)), a_machine("z-cpu"))
    assert machines_of(a_snapshot(machines=machines, waiting=notebooks())) == {
        "z-cpu": 1
    }


@pytest.mark.parametrize(
    ("other", "goes_there"),
    [
        (a_machine("z-other"), True),
        (a_gpu_box("z-other", gpus=8), True),
        (a_machine("z-other", os="darwin", devices=(a_metal_gpu(),)), False),
        (a_gpu_box("z-other", held=(an_allocation(cpu_milli=8000),)), False),
    ],
)
def test_a_mac_is_the_last_that_cpu_work_gets(
    other: MachineState, *, goes_there: bool
) -> None:
    """It would hold the Mac's GPU, and of a GPU machine it takes only cores."""
    snapshot = a_snapshot(machines=(a_mac("a-mac"), other), waiting=notebooks())
    (found,) = plan(snapshot).placements
    assert found.machine == ("z-other" if goes_there else "a-mac")
    assert found.resources.metal is not goes_there


def test_a_mac_that_lets_cpu_work_share_is_like_any_gpu_machine() -> None:
    """Nothing of its GPU is held behind its fence: the tighter fit decides."""
    machines = (
        a_mac("mac", metal_fenced=True, cores_milli=2000),
        a_gpu_box("gpu"),
    )
    assert machines_of(a_snapshot(machines=machines, waiting=notebooks())) == {"mac": 1}


def test_a_container_for_the_cpu_goes_to_machines_without_gpus_too() -> None:
    """The rule is the driver's as little as the name's."""
    machines = (
        a_docker_box("a-gpu", devices=(a_gpu(),)),
        a_docker_box("z-cpu", cores_milli=64_000),
    )
    snapshot = a_snapshot(machines=machines, waiting=notebooks())
    assert machines_of(snapshot) == {"z-cpu": 1}


SMALL = a_gpu("GPU-small", name="NVIDIA L4", memory_bytes=24 * GIB)
LARGE = a_gpu("GPU-large", memory_bytes=80 * GIB)


@pytest.mark.parametrize(
    ("a", "b", "taken"),
    [
        # on whichever machine it is
        ((LARGE,), (SMALL,), "b"),
        # also where more of them stay free
        ((LARGE,), (SMALL, SMALL.model_copy(update={"uuid": "GPU-small-2"})), "b"),
        # and a machine with both is as good as its smallest
        ((LARGE,), (LARGE.model_copy(update={"uuid": "GPU-second"}), SMALL), "b"),
        ((SMALL,), (LARGE,), "a"),
    ],
)
def test_small_gpu_work_does_not_take_the_large_gpus_while_small_ones_are_free(
    a: tuple[PlaceableDevice, ...], b: tuple[PlaceableDevice, ...], taken: str
) -> None:
    """The same rule among GPUs: whoever needs the memory finds the large one free."""
    catalog = a_catalog(
        classes=(
            a_gpu_class("any"),
            a_gpu_class("large", device_memory_bytes=40 * GIB),
        )
    )
    machines = (a_machine("a", devices=a), a_machine("b", devices=b))
    waiting = (
        a_waiting("any", class_name="any"),
        a_waiting("large", class_name="large", asked_at=NOON),
    )
    found = plan(a_snapshot(catalog=catalog, machines=machines, waiting=waiting))
    where = {item.workload: item for item in found.placements}
    assert where["any"].machine == taken
    assert where["any"].resources.devices == ("GPU-small",)
    assert where["large"].resources.devices == ("GPU-large",) or (
        where["large"].resources.devices == ("GPU-second",)
    )
    assert dict(where["any"].score)["device_memory_bytes"] == 24 * GIB


def test_small_gpu_work_takes_a_large_gpu_rather_than_wait() -> None:
    """Where the small one is held nobody is kept waiting beside a free GPU."""
    held = an_allocation(devices=("GPU-small",))
    machines = (
        a_machine("small", devices=(SMALL,), held=(held,), sharing=OPEN),
        a_machine("large", devices=(LARGE,)),
    )
    snapshot = a_snapshot(machines=machines, waiting=(a_waiting(class_name="gpu"),))
    (found,) = plan(snapshot).placements
    assert found.resources.devices == ("GPU-large",)


def test_no_gpu_request_goes_to_the_cpu_machines_that_are_kept_free_of_cpu_work() -> (
    None
):
    """The rule works in one direction: a GPU that is not there is waited for."""
    held = an_allocation(devices=("GPU-gpu-0",))
    machines = (a_machine("cpu"), a_gpu_box("gpu", held=(held,)))
    found = plan(a_snapshot(machines=machines, waiting=(a_waiting(class_name="gpu"),)))
    assert found.placements == ()
    assert found.waits[0].explanation.reason is Reason.GPU_BUSY
