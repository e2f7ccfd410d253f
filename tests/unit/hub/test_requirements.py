"""What a runtime requires of torch decides for its own environment, and for no other."""

from __future__ import annotations

import pytest
from scheduling_builders import (
    OPEN,
    a_catalog,
    a_class,
    a_gpu,
    a_gpu_box,
    a_machine,
    a_runtime,
    a_snapshot,
    a_waiting,
)

from fleet_contracts.capabilities import DeviceKind
from fleet_contracts.reasons import Reason, ReasonKind
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.scheduling.decisions import Plan
from fleet_hub.scheduling.plan import plan


NATIVE = {DriverName.NATIVE: True}
DOCKER = {DriverName.DOCKER: True}
ENVIRONMENT = "secret-environment"
"""The ref of the builders' runtime for the native driver."""


def planned(
    environments: dict[str, dict[str, bool | None]],
    *,
    requires: tuple[str, ...] = ("torch.cuda",),
    drivers: dict[DriverName, bool] = NATIVE,
) -> Plan:
    """Plan one GPU notebook of alice's on her GPU box."""
    box = a_gpu_box("box", environments=environments, drivers=drivers, sharing=OPEN)
    catalog = a_catalog(runtimes=(a_runtime(requires=requires),))
    waiting = a_waiting(class_name="gpu")
    return plan(a_snapshot(catalog=catalog, machines=(box,), waiting=(waiting,)))


@pytest.mark.parametrize(
    "environments",
    [
        {ENVIRONMENT: {"torch.cuda": True}},
        # Unknown until it is built: admitted, and verified before it starts.
        {},
        {ENVIRONMENT: {"torch.cuda": None}},
        # Another environment's torch says nothing about this one's.
        {"another": {"torch.cuda": False}},
    ],
)
def test_what_torch_can_do_is_a_fact_of_one_environment(
    environments: dict[str, dict[str, bool | None]],
) -> None:
    """A yes and an open question admit the work."""
    assert [item.machine for item in planned(environments).placements] == ["box"]


def test_a_torch_that_cannot_keeps_the_work_away() -> None:
    """The healthy GPU is no help to a runtime whose torch cannot drive it."""
    decided = planned({ENVIRONMENT: {"torch.cuda": False}})

    assert decided.placements == ()
    [answer] = [*decided.refusals, *decided.waits]
    assert answer.explanation.reason is Reason.CAPABILITY_MISSING
    assert answer.explanation.subject == "torch.cuda"


def test_a_runtime_that_requires_nothing_does_not_care() -> None:
    """nvidia-smi calls the GPU healthy, and that is enough for it."""
    decided = planned({ENVIRONMENT: {"torch.cuda": False}}, requires=())

    assert [item.machine for item in decided.placements] == ["box"]


def test_a_container_is_not_judged_by_the_machines_torch() -> None:
    """Its own torch is in its image, where no probe of the machine has looked."""
    decided = planned({ENVIRONMENT: {"torch.cuda": False}}, drivers=DOCKER)

    reasons = {item.explanation.reason for item in (*decided.refusals, *decided.waits)}
    assert Reason.CAPABILITY_MISSING not in reasons


def test_what_is_only_detected_is_never_placed_on() -> None:
    """The support matrix decides, however well an AMD card is described."""
    card = a_gpu("GPU-amd", accelerator=DeviceKind.ROCM)
    box = a_machine("box", devices=(card,), sharing=OPEN)
    rocm = a_class("rocm", accelerator=Accelerator.ROCM, devices=1)
    decided = plan(
        a_snapshot(
            catalog=a_catalog(classes=(rocm,)),
            machines=(box,),
            waiting=(a_waiting(class_name="rocm"),),
        )
    )

    assert decided.placements == ()
    [answer] = [*decided.refusals, *decided.waits]
    assert answer.explanation.reason is Reason.SUPPORT_MISSING
    assert answer.explanation.kind is ReasonKind.NEVER
