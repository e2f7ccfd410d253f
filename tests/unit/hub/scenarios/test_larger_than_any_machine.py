"""What is larger than any machine: refused at once, and only where that is so."""

from __future__ import annotations

from typing import Any

import pytest
from fleet_pictures import GIB, some_gpus
from scenario_fleets import a_fleet, ask, by_machine, refusal
from scheduling_builders import (
    a_class,
    a_gpu_class,
)
from told_everywhere import answer_to, in_a_terminal, told, what_if

from fleet_contracts.allocations import State
from fleet_contracts.catalog import (
    OperatingSystem,
    Requirements,
    ResourceClass,
)
from fleet_contracts.reasons import Reason
from fleet_contracts.sentences import sentence
from fleet_hub.controller import enrolling


@pytest.mark.parametrize(
    ("asked", "subject", "requested", "largest", "instead"),
    [
        (a_gpu_class(devices=999), "devices", 999, 8, "with 8 devices instead of 999"),
        (
            a_class(memory_bytes=10 << 40),
            "memory",
            10 << 40,
            64 * GIB,
            "with 64 GiB of memory instead of 10 TiB",
        ),
        (
            a_class(cpu_milli=1_000_000),
            "cpu",
            1_000_000,
            32_000,
            "with 32 cores instead of 1000",
        ),
        (
            a_class(disk_bytes=9 << 40),
            "disk",
            9 << 40,
            900 * GIB,
            "with 900 GiB of disk instead of 9 TiB",
        ),
        (
            a_gpu_class(device_memory_bytes=200 * GIB),
            "device memory",
            200 * GIB,
            80 * GIB,
            "with 80 GiB of device memory instead of 200 GiB",
        ),
        (
            a_gpu_class(devices=4, device_models=("L4",)),
            "suitable devices",
            4,
            2,
            "with 2 devices instead of 4",
        ),
        (
            a_gpu_class(devices=9, compute_capability="8.0"),
            "suitable devices",
            9,
            8,
            "with 8 devices instead of 9",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " of " not in value else "",
)
def test_more_than_any_machine_has_is_refused_at_once_with_the_largest_there_is(
    asked: ResourceClass, subject: str, requested: int, largest: int, instead: str
) -> None:
    """It is never queued in silence: nothing that may happen would start it."""
    fleet = a_fleet(
        asked,
        {
            "big": {"gpus": some_gpus("big", 8), "memory": 64 * GIB},
            "mixed": {"gpus": some_gpus("mixed", 2, "NVIDIA L4", memory_mib=23_000)},
            "wide": {"cores": 32, "disk": 900 * GIB},
        },
    )
    why = refusal(fleet)
    assert why.reason is Reason.EXCEEDS_ANY_MACHINE
    assert (why.subject, why.requested, why.capacity) == (subject, requested, largest)
    assert instead in in_a_terminal(what_if(fleet, "alice")).replace("\u2009", " ")


@pytest.mark.parametrize(
    ("asked", "together"),
    [
        (
            a_class(cpu_milli=32_000, memory_bytes=256 * GIB),
            "cpu and memory together",
        ),
        (
            a_class(cpu_milli=32_000, disk_bytes=2 << 40),
            "cpu and disk together",
        ),
        (
            a_gpu_class(cpu_milli=32_000),
            "devices and cpu together",
        ),
        (
            a_gpu_class(device_models=("A100",), memory_bytes=256 * GIB),
            "suitable devices and memory together",
        ),
    ],
)
def test_what_only_different_machines_have_is_not_said_to_exceed_each_of_them(
    asked: ResourceClass, together: str
) -> None:
    """Each amount is there, on no one machine: that is said, and no "largest" is."""
    fleet = a_fleet(
        asked,
        {
            "cores": {"cores": 64, "memory": 64 * GIB},
            "memory": {"cores": 16, "memory": 512 * GIB},
            "disk": {"disk": 4 << 40},
            "gpu": {"gpus": some_gpus("gpu", 1)},
        },
    )
    why = refusal(fleet)
    assert (why.reason, why.subject) == (Reason.EXCEEDS_ANY_MACHINE, together)
    assert (why.requested, why.capacity) == (None, None)


def test_three_amounts_that_meet_in_pairs_only_are_told_together() -> None:
    """Any two of them are on some machine, all three on none."""
    asked = a_class(cpu_milli=32_000, memory_bytes=256 * GIB, disk_bytes=2 << 40)
    much: dict[str, Any] = {"cores": 32, "memory": 256 * GIB, "disk": 2 << 40}
    fleet = a_fleet(
        asked,
        {
            f"no-{missing}": {key: much[key] for key in much if key != missing}
            for missing in much
        },
    )
    assert refusal(fleet).subject == "cpu, memory and disk together"


def test_a_model_and_a_memory_of_different_devices_are_told_as_that() -> None:
    """The T4 is too small and the A100 is no T4: nothing is said of all devices."""
    fleet = a_fleet(
        a_gpu_class(device_models=("T4",), device_memory_bytes=40 * GIB),
        {
            "a": {"gpus": some_gpus("a", 1)},
            "b": {"gpus": some_gpus("b", 1, "Tesla T4", memory_mib=15_000)},
        },
    )
    why = refusal(fleet)
    assert (why.subject, why.capacity) == ("suitable devices", 0)
    assert why.detail == "what is asked of a device is found only on different ones"
    text = in_a_terminal(what_if(fleet, "alice"))
    assert "the devices have too little memory" in text.lower()


def test_a_large_machine_with_another_system_does_not_count_as_the_largest() -> None:
    """It has the memory and not the system: the small one is named with its numbers."""
    fleet = a_fleet(
        a_class(memory_bytes=64 * GIB),
        {"box": {}, "mac": {"os": "darwin", "memory": 128 * GIB}},
        requirements=Requirements(os=(OperatingSystem.LINUX,)),
    )
    why = refusal(fleet)
    assert (why.reason, why.machine) == (Reason.MEMORY_TOO_SMALL, "box")
    assert (why.requested, why.capacity) == (64 * GIB, 32 * GIB)
    assert why.detail == "other machines have that, and lack something else"


def test_too_few_new_devices_do_not_read_as_equal_to_what_is_asked_for() -> None:
    """One of two has the compute capability: how many have it, and not the best."""
    gpus = [
        *some_gpus("a", 1, "H100", compute_capability="9.0"),
        *some_gpus("a", 1),
    ]
    fleet = a_fleet(
        a_gpu_class(devices=2, compute_capability="9.0"), {"a": {"gpus": gpus}}
    )
    why = refusal(fleet)
    assert (why.requested, why.capacity) == (2, 1)
    assert by_machine(fleet)["a"] == (
        "It has too few devices: 2 devices asked for, it has 1 device "
        "(the others have a lower compute capability)."
    )
    assert "with compute capability 8.0" in in_a_terminal(what_if(fleet, "alice"))


def test_devices_that_are_all_too_old_are_told_by_the_newest() -> None:
    """The first by name may be the oldest of all."""
    fleet = a_fleet(
        a_gpu_class(compute_capability="9.0"),
        {
            "a": {"gpus": some_gpus("a", 1, compute_capability="5.0")},
            "b": {"gpus": some_gpus("b", 1)},
        },
    )
    assert refusal(fleet).detail == "the newest device has 8.0"


def test_what_is_a_little_too_large_does_not_read_as_equal() -> None:
    """The largest machine is told rounded down, and what is asked for rounded up."""
    fleet = a_fleet(a_class(memory_bytes=32 * GIB), {"box": {"memory": 32 * GIB - 1}})
    assert "32 GiB asked for, the largest has 31.9 GiB" in sentence(refusal(fleet))


def test_a_machine_that_may_come_back_larger_keeps_the_hope() -> None:
    """Of one that has never told anything nobody can say "never"."""
    fleet = a_fleet(a_class(cpu_milli=1_000_000), {"box": {}})
    enrolling.enrol(fleet.core, name="new", owner="alice", local=True)
    fleet.clock.advance(3600)
    record = ask(fleet)
    assert record.state is State.QUEUED
    why = told(fleet, record)
    assert (why.reason, why.machine) == (Reason.OFFLINE, "new")
    machines = {
        one.machine: one.why_not.explanation.reason
        for one in answer_to(fleet, record).machines
        if one.why_not
    }
    assert machines == {"new": Reason.OFFLINE, "box": Reason.CPU_TOO_SMALL}
