"""A GPU that programs outside the fleet use is not given, and the reason is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scheduling_builders import (
    ALICE,
    GIB,
    HOURLY_GPUS,
    NOON,
    OPEN,
    a_busy_box,
    a_catalog,
    a_gpu,
    a_gpu_box,
    a_gpu_class,
    a_gpu_request,
    a_machine,
    a_planner,
    a_snapshot,
    a_waiting,
    an_allocation,
    told,
)

from fleet_contracts.reasons import Explanation, Reason, ReasonKind
from fleet_contracts.sentences import remedy, sentence
from fleet_hub.scheduling.explain import what_if
from fleet_hub.scheduling.inspection import inspect_request
from fleet_hub.scheduling.plan import plan
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState


OTHERS = 24 * GIB
"""30 % of 80 GiB."""


def used(machine: MachineState, *numbers: int, by: int = OTHERS) -> MachineState:
    """Return *machine* with GPUs that others use."""
    foreign = tuple((f"GPU-{machine.name}-{number}", by) for number in numbers)
    return replace(machine, foreign=foreign)


def answers(planner: Planner, class_name: str = "gpu") -> dict[str, Explanation | None]:
    """Return what each machine says to alice."""
    asked = a_waiting("if", class_name=class_name, principal=ALICE)
    found = inspect_request(planner, asked)
    return {one.machine: one.explanation for one in found.machines}


def given(planner: Planner, now: float = NOON) -> dict[str, tuple[str, ...]]:
    """Return the devices that are given to each who starts now."""
    return {
        item.workload: item.resources.devices for item in planner.decide(now).placements
    }


def test_of_four_gpus_of_which_one_has_foreign_use_a_clean_one_is_picked() -> None:
    """The clean ones go in the order of their UUIDs, and the used one is never given."""
    box = used(a_gpu_box("box", gpus=4), 1)
    planner = a_planner(
        box, waiting=tuple(a_gpu_request(f"w{number}") for number in range(4))
    )
    assert given(planner) == {
        "w0": ("GPU-box-0",),
        "w1": ("GPU-box-2",),
        "w2": ("GPU-box-3",),
    }
    assert told(planner)["w3"].explanation.reason is Reason.GPU_BUSY


def test_the_foreign_one_is_told_as_foreign_process_with_its_numbers() -> None:
    """All that is left of the machine is the used one: bytes, and no names of anybody."""
    held = an_allocation(devices=("GPU-box-0",))
    box = used(a_gpu_box("box", gpus=2, held=(held,)), 1)
    answer = answers(a_planner(box), "pair")["box"]
    assert answer == Explanation(
        reason=Reason.FOREIGN_PROCESS,
        machine="box",
        requested=80 * GIB,
        capacity=80 * GIB,
        free=56 * GIB,
        unit="bytes",
    )
    assert answer.kind is ReasonKind.NOT_NOW
    text = sentence(answer)
    assert "outside the fleet" in text
    assert "56 GiB of 80 GiB of its memory is free" in text
    assert "clears by itself" in remedy(Reason.FOREIGN_PROCESS)


def test_a_machine_whose_only_gpu_is_foreign_is_waited_for_and_not_refused() -> None:
    """Nobody knows an end, so no time is given; a clean machine would be the nearer."""
    planner = a_planner(used(a_gpu_box("box"), 0), waiting=(a_gpu_request("w"),))
    decided = planner.decide(NOON)
    assert (decided.placements, decided.refusals) == ((), ())
    wait = told(planner)["w"]
    assert wait.explanation.reason is Reason.FOREIGN_PROCESS
    assert wait.no_later_than is None
    assert wait.counts == {Reason.FOREIGN_PROCESS: 1}


def test_it_is_given_as_soon_as_the_use_has_ended() -> None:
    """The machine's next word is the event; nothing else has to happen."""
    box = used(a_gpu_box("box"), 0)
    planner = a_planner(box, waiting=(a_gpu_request("w"),))
    assert given(planner) == {}
    planner.put_machine(replace(box, foreign=()))
    assert given(planner) == {"w": ("GPU-box-0",)}


def test_a_held_gpu_that_comes_free_is_promised_and_the_foreign_one_is_not() -> None:
    """The time is that of the holder's end: the other has none that anybody knows."""
    planner = a_planner(
        used(a_busy_box(gpus=2), 1),
        waiting=(a_gpu_request("first"), a_gpu_request("pair", class_name="pair")),
    )
    planner.decide(NOON)
    waits = told(planner)
    assert waits["first"].no_later_than == NOON + 3630
    first = waits["first"].explanation
    assert first.reason is Reason.GPU_BUSY
    assert [holder.owner for holder in first.holders] == ["bob"]
    assert "others of its devices" in sentence(first)
    # Both are asked for, and all holders together could not give two.
    assert waits["pair"].no_later_than is None
    assert waits["pair"].explanation.reason is Reason.FOREIGN_PROCESS


def test_a_promise_that_loses_its_gpu_to_others_says_so() -> None:
    """It was promised the free half of a pair; somebody outside took the other."""
    box = a_busy_box(gpus=2)
    planner = a_planner(box, waiting=(a_gpu_request("pair", class_name="pair"),))
    planner.decide(NOON)
    assert told(planner)["pair"].no_later_than == NOON + 3630
    planner.put_machine(used(box, 1))
    planner.decide(NOON + 1)
    wait = told(planner)["pair"]
    assert wait.broken == Explanation(
        reason=Reason.PROMISE_BROKEN, subject="foreign_process", machine="box"
    )
    assert wait.no_later_than is None


def test_a_promise_that_ends_with_a_holder_whom_others_used_the_gpu_beside_says_so() -> (
    None
):
    """The device comes back to nobody, and the next chance is later, elsewhere."""
    box, later = used(a_busy_box(), 0), a_busy_box("later", ends_by=NOON + 7200)
    planner = a_planner(box, later, waiting=(a_gpu_request("w"),))
    planner.decide(NOON)
    assert told(planner)["w"].no_later_than == NOON + 3630
    planner.release("box", "held-box")
    planner.decide(NOON + 1)
    wait = told(planner)["w"]
    assert wait.broken == Explanation(
        reason=Reason.PROMISE_BROKEN, subject="foreign_process", machine="box"
    )
    assert wait.no_later_than == NOON + 7230


def test_what_the_fleet_itself_holds_is_no_foreign_use() -> None:
    """The word about a device may be older than what was placed on it since."""
    box = used(a_busy_box(gpus=2), 0)
    planner = a_planner(box, waiting=(a_gpu_request("w"), a_gpu_request("x")))
    assert given(planner) == {"w": ("GPU-box-1",)}
    assert told(planner)["x"].explanation.reason is Reason.GPU_BUSY
    # And after its end the device is as foreign as the machine says.
    planner.release("box", "held-box")
    assert given(planner) == {}
    planner.release("box", "w")
    assert given(planner) == {"x": ("GPU-box-1",)}


def test_a_foreign_device_of_another_kind_bars_nobody() -> None:
    """A class that could not use it anyway is told of those that it could."""
    small = a_gpu("GPU-small", memory_bytes=8 * GIB)
    large = a_gpu("GPU-large")
    catalog = a_catalog(
        classes=(a_gpu_class("gpu", device_memory_bytes=40 * GIB, limit_seconds=60),)
    )
    box = a_machine("box", devices=(small, large), foreign=(("GPU-small", OTHERS),))
    planner = a_planner(box, catalog=catalog, waiting=(a_gpu_request("w"),))
    assert given(planner) == {"w": ("GPU-large",)}
    waiting = answers(planner)["box"]
    assert waiting is not None
    assert waiting.reason is Reason.GPU_BUSY
    assert waiting.detail is None


def test_cpu_work_does_not_mind_foreign_use_of_a_gpu() -> None:
    """It needs no device, and is told of none."""
    box = used(a_gpu_box("box"), 0)
    decided = plan(a_snapshot(machines=(box,), waiting=(a_waiting(),)))
    assert [item.machine for item in decided.placements] == ["box"]


def test_a_device_of_unknown_memory_is_told_without_numbers() -> None:
    """What nobody knows is not made up."""
    box = a_machine(
        "box", devices=(a_gpu("GPU-x", memory_bytes=None),), foreign=(("GPU-x", 1),)
    )
    answer = answers(a_planner(box))["box"]
    assert answer is not None
    assert (answer.requested, answer.capacity, answer.free) == (None, None, None)
    assert "memory" not in sentence(answer)


def test_more_than_one_foreign_gpu_is_told_with_the_one_that_is_used_least() -> None:
    """What is nearest to clear comes first, and that there are more is said."""
    box = replace(
        a_gpu_box("box", gpus=2),
        foreign=(("GPU-box-0", 70 * GIB), ("GPU-box-1", 2 * GIB)),
    )
    answer = answers(a_planner(box))["box"]
    assert answer is not None
    assert answer.free == 78 * GIB
    assert answer.detail is not None


def test_each_machine_of_one_kind_is_told_its_own_reason() -> None:
    """The fleet's machines are equal but for who uses them, and the same is free."""
    boxes = (
        used(a_gpu_box("foreign", sharing=OPEN), 0),
        used(a_gpu_box("more", sharing=OPEN), 0, by=2 * GIB),
        a_busy_box("busy"),
        a_gpu_box("clean", sharing=OPEN),
    )
    planner = a_planner(*boxes, catalog=HOURLY_GPUS)
    found = {
        name: why and (why.reason, why.free) for name, why in answers(planner).items()
    }
    assert found == {
        "foreign": (Reason.FOREIGN_PROCESS, 56 * GIB),
        "more": (Reason.FOREIGN_PROCESS, 78 * GIB),
        "busy": (Reason.GPU_BUSY, 0),
        "clean": None,
    }


@pytest.mark.parametrize("fields", [{}, {"draining_by": "root"}, {"online": False}])
def test_what_troubles_the_whole_machine_is_told_first(fields: dict[str, Any]) -> None:
    """A machine that is away has nothing to clear but that."""
    box = used(a_gpu_box("box", **fields), 0)
    verdict = what_if(a_planner(box), ALICE, "lab", "gpu")
    assert verdict.explanation is not None
    expected = {"draining_by": Reason.DRAINING, "online": Reason.OFFLINE}
    wanted = [expected[name] for name in fields] or [Reason.FOREIGN_PROCESS]
    assert [verdict.explanation.reason] == wanted
    assert verdict.choosable


def test_a_machine_that_rejected_it_for_others_use_says_that() -> None:
    """Where the agent met them before anybody knew, its word is the machine's."""
    asked = a_waiting(class_name="gpu", rejected_by={"box": Reason.FOREIGN_PROCESS})
    planner = a_planner(a_gpu_box("box"), waiting=(asked,))
    planner.decide(NOON)
    assert told(planner)["asked"].counts == {Reason.FOREIGN_PROCESS: 1}
