"""What is known to be impossible is said, whatever else is not known yet.

A "not known yet" offers to wait.  Whoever may never use a machine, or asks for more than
it has, would wait for nothing.
"""

from __future__ import annotations

from typing import Any

import pytest
from scheduling_builders import (
    GIB,
    NOON,
    a_catalog,
    a_class,
    a_gpu,
    a_gpu_class,
    a_machine,
    a_profile,
    a_runtime,
    a_snapshot,
    a_waiting,
)

from fleet_contracts.catalog import OperatingSystem, Requirements, ResourceClass
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import DriverName
from fleet_hub.scheduling.filters import surest
from fleet_hub.scheduling.inspection import inspect_request
from fleet_hub.scheduling.plan import planner_of


UNKNOWN = Reason.CAPABILITIES_UNKNOWN
NOT_KNOWN: dict[str, dict[str, Any]] = {
    "accelerator": {"settled": False},
    "driver": {"drivers": {DriverName.NATIVE: None}},
    "capability": {"capabilities": {"launcher.srun": None, "launcher.mpirun": False}},
    "cores": {"cores_milli": None},
}
"""What a machine may have left open, and what then is unknown of it."""
NEVER: dict[Reason, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    Reason.ISOLATION_TOO_WEAK: ({"owner": "carol"}, {}, {}),
    Reason.LABEL_MISMATCH: ({}, {"labels": {"room": "B"}}, {}),
    Reason.MEMORY_TOO_SMALL: ({}, {"memory_bytes": 4096 * GIB}, {}),
    Reason.OS_MISMATCH: ({}, {}, {"os": (OperatingSystem.MACOS,)}),
    Reason.CAPABILITY_MISSING: (
        {"capabilities": {"launcher.mpirun": False}},
        {},
        {"capabilities": ("launcher.mpirun",)},
    ),
}
"""By reason: what the machine, the class and the profile's requirements are then."""


def reason_of(
    machine: dict[str, Any],
    asked: ResourceClass,
    requirements: dict[str, Any],
    *requires: str,
) -> Reason | None:
    """Return the code with which the only machine says no to alice; None: it does not."""
    needs = Requirements(**requirements)
    catalog = a_catalog(
        classes=(asked,),
        runtimes=(a_runtime(requires=requires),),
        profiles=(a_profile(classes=(asked.name,), requirements=needs),),
    )
    machines = (a_machine(**machine),)
    planner = planner_of(a_snapshot(catalog=catalog, machines=machines))
    planner.decide(NOON)
    (found,) = inspect_request(planner, a_waiting("?")).machines
    return None if found.explanation is None else found.explanation.reason


@pytest.mark.parametrize("unsaid", NOT_KNOWN)
@pytest.mark.parametrize("reason", NEVER)
def test_a_machine_that_never_can_says_so_whatever_it_has_not_told(
    unsaid: str, reason: Reason
) -> None:
    """Without the impossible part the same machine says what is not known."""
    machine, changes, requirements = NEVER[reason]
    requires = ("launcher.srun",) if unsaid == "capability" else ()
    build = a_gpu_class if unsaid == "accelerator" else a_class
    open_question = NOT_KNOWN[unsaid]
    assert reason_of(open_question, build(), {}, *requires) is UNKNOWN
    found = reason_of(
        machine | open_question, build(**changes), requirements, *requires
    )
    assert found is reason


def test_a_machine_that_told_nothing_is_judged_by_its_record_alone() -> None:
    """Its owner's word holds all the same; of its system and size nothing is known."""
    silent = {"known": False, "os": None, "memory_bytes": None, "cores_milli": None}
    macs = {"os": (OperatingSystem.MACOS,)}
    assert reason_of(silent, a_class(), macs) is UNKNOWN
    assert (
        reason_of(silent | {"owner": "carol"}, a_class(), macs)
        is Reason.ISOLATION_TOO_WEAK
    )


def test_a_capability_that_is_missing_comes_before_one_that_is_not_told() -> None:
    """In whatever order the profile names them."""
    told = {"capabilities": {"launcher.srun": None, "launcher.mpirun": False}}
    for names in (
        ("launcher.srun", "launcher.mpirun"),
        ("launcher.mpirun", "launcher.srun"),
    ):
        assert reason_of(told, a_class(), {}, *names) is Reason.CAPABILITY_MISSING


@pytest.mark.parametrize(
    ("unsaid", "known", "asked"),
    [
        ("name", {"name": "T4"}, {"device_models": ("A100",)}),
        (
            "compute_capability",
            {"compute_capability": "7.5"},
            {"compute_capability": "8.0"},
        ),
        ("memory_bytes", {"memory_bytes": GIB}, {"device_memory_bytes": 8 * GIB}),
    ],
)
def test_a_device_that_does_not_tell_may_be_the_right_one(
    unsaid: str, known: dict[str, Any], asked: dict[str, Any]
) -> None:
    """Beside one that is wrong it is unknown; where both are needed, it is "never"."""
    devices = (a_gpu("A", **known), a_gpu("B", **{unsaid: None}))
    one = reason_of({"devices": devices}, a_gpu_class(**asked), {})
    assert one is UNKNOWN
    both = reason_of({"devices": devices}, a_gpu_class(devices=2, **asked), {})
    assert both not in {None, UNKNOWN}


def test_the_first_known_no_is_told_else_the_first_unknown_one() -> None:
    """Later ones of the same kind change nothing."""
    first, second = (Explanation(reason=UNKNOWN, subject=name) for name in "ab")
    known, later = (
        Explanation(reason=Reason.MEMORY_TOO_SMALL, requested=n) for n in (1, 2)
    )
    assert surest((None, first, known, second, later)) is known
    assert surest((None, first, None, second)) is first
    assert surest((None, None)) is None
