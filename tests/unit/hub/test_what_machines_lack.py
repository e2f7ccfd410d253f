"""What a machine lacks, or has not said, and how that is told of each machine.

What nobody knows is no room and no "never": it says which fact is missing.
"""

from __future__ import annotations

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
    a_machine,
    a_profile,
    a_runtime,
    a_snapshot,
    a_waiting,
)

from fleet_contracts.capabilities import DeviceKind
from fleet_contracts.catalog import OperatingSystem, Requirements, ResourceClass
from fleet_contracts.reasons import Explanation, Reason, ReasonKind
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.scheduling.inspection import inspect_request
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.snapshot import MachineState


UNKNOWN = Reason.CAPABILITIES_UNKNOWN


def answer(
    machine: MachineState,
    asked: ResourceClass,
    *,
    requires: tuple[str, ...] = (),
    **requirements: Any,
) -> Explanation | None:
    """Return what *machine*, the only one, says to alice who asks for class *asked*."""
    catalog = a_catalog(
        classes=(asked,),
        runtimes=(a_runtime(requires=requires),),
        profiles=(
            a_profile(classes=(asked.name,), requirements=Requirements(**requirements)),
        ),
    )
    planner = planner_of(a_snapshot(catalog=catalog, machines=(machine,)))
    planner.decide(NOON)
    (found,) = inspect_request(planner, a_waiting("?")).machines
    return found.explanation


def reason_and_subject(found: Explanation | None) -> tuple[Reason, str | None]:
    """Return the code of a "no", and what it is about."""
    assert found is not None
    return found.reason, found.subject


@pytest.mark.parametrize(
    ("unsaid", "asked", "subject"),
    [
        ({"name": None}, {"device_models": ("A100",)}, "device_model"),
        (
            {"compute_capability": None},
            {"compute_capability": "8.0"},
            "compute_capability",
        ),
        ({"memory_bytes": None}, {"device_memory_bytes": GIB}, "device_memory"),
    ],
)
def test_a_device_that_does_not_say_what_it_is_says_which_fact_is_missing(
    unsaid: dict[str, Any], asked: dict[str, Any], subject: str
) -> None:
    """The same device suits a class that does not ask for that fact."""
    machine = a_machine("box", devices=(a_gpu("A", **unsaid),))
    found = answer(machine, a_gpu_class(**asked))
    assert reason_and_subject(found) == (UNKNOWN, subject)
    assert answer(machine, a_gpu_class()) is None


@pytest.mark.parametrize("seen", [0, 1])
def test_devices_that_may_still_be_found_are_not_yet_too_few(seen: int) -> None:
    """While the probes run the count is open; once they are done it is final."""
    asked = a_gpu_class(devices=2)
    early = answer(a_gpu_box(gpus=seen, settled=False), asked)
    assert reason_and_subject(early) == (UNKNOWN, "cuda")
    late = answer(a_gpu_box(gpus=seen), asked)
    assert late is not None
    assert late.reason is not UNKNOWN


@pytest.mark.parametrize(
    ("seen", "asked"), [(0, {}), (1, {"devices": 2}), (1, {"device_models": ("B200",)})]
)
def test_devices_that_a_failing_tool_does_not_name_are_unknown_and_not_missing(
    seen: int, asked: dict[str, Any]
) -> None:
    """What it names is given away all the same; more than that may be there."""
    why = "nvidia-smi: driver not running"
    unlisted = {DeviceKind.CUDA: why}
    found = answer(a_gpu_box(gpus=seen, unlisted=unlisted), a_gpu_class(**asked))
    assert found is not None
    assert reason_and_subject(found) == (UNKNOWN, "cuda")
    assert (found.kind, found.detail) == (ReasonKind.NOT_NOW, why)
    assert answer(a_gpu_box(unlisted=unlisted), a_gpu_class()) is None
    other = {DeviceKind.ROCM: "amd-smi: tool failed"}
    sure = answer(a_gpu_box(gpus=seen, unlisted=other), a_gpu_class(**asked))
    assert sure is not None
    assert sure.kind is ReasonKind.NEVER


@pytest.mark.parametrize(
    ("gpu", "unlisted", "kind"),
    [
        (None, {DeviceKind.CUDA: "nvidia-smi: gpu lost"}, ReasonKind.NOT_NOW),
        ({"healthy": False, "usable": False}, {}, ReasonKind.NOT_NOW),
        ({}, {}, ReasonKind.NEVER),
    ],
)
def test_torch_that_reaches_no_gpu_while_none_works_is_no_never(
    gpu: dict[str, Any] | None, unlisted: dict[DeviceKind, str], kind: ReasonKind
) -> None:
    """It was asked while the driver was out of order; beside a GPU that works it counts."""
    box = a_machine(
        devices=() if gpu is None else (a_gpu(**gpu),),
        unlisted=unlisted,
        environments={"jupyter-ref": {"torch.cuda": False}},
        capabilities={"torch.cuda": False},
    )
    found = answer(box, a_gpu_class(), requires=("torch.cuda",))
    assert found is not None
    assert found.kind is kind


def test_what_nothing_is_ever_placed_on_is_not_waited_for() -> None:
    """An AMD tool that fails keeps nobody waiting for what the support matrix rules out."""
    box = a_machine(unlisted={DeviceKind.ROCM: "amd-smi: tool failed"})
    found = answer(box, a_gpu_class(accelerator=Accelerator.ROCM))
    assert found is not None
    assert found.kind is ReasonKind.NEVER


def test_an_engine_that_does_not_answer_now_is_waited_for_with_its_reason() -> None:
    """It may be starting anew; while the probes run there is nothing to say of it."""
    facts: dict[str, Any] = {
        "drivers": {DriverName.DOCKER: None},
        "driver_faults": {DriverName.DOCKER: "daemon_not_reachable"},
    }
    found = answer(a_docker_box(**facts), a_class())
    assert reason_and_subject(found) == (UNKNOWN, "docker")
    assert found is not None
    assert found.detail == "daemon not reachable"
    early = answer(a_docker_box(settled=False, **facts), a_class())
    assert early is not None
    assert early.detail is None


def test_a_gpu_that_is_cut_into_slices_does_not_count_as_a_whole_one() -> None:
    """It works, and cannot be handed out: the count says how many can."""
    sliced = a_gpu("B", usable=False)
    found = answer(
        a_machine("box", devices=(a_gpu("A"), sliced)), a_gpu_class(devices=2)
    )
    assert found is not None
    assert found.reason is Reason.GPU_COUNT_TOO_SMALL
    assert (found.requested, found.capacity) == (2, 1)
    assert found.detail == "the others cannot be handed out whole"


def test_a_broken_gpu_is_waited_for_and_not_said_to_be_missing() -> None:
    """It may be well again: how many work, of how many that are needed."""
    broken = a_gpu("A", healthy=False, usable=False)
    found = answer(a_machine("box", devices=(broken,)), a_gpu_class())
    assert found is not None
    assert found.reason is Reason.UNHEALTHY
    assert (found.requested, found.capacity, found.machine) == (1, 0, "box")


@pytest.mark.parametrize(
    ("cuda", "installed", "expected"),
    [
        ("12.4", None, (UNKNOWN, "gpu_driver")),
        ("99.1", "550.54.14", (UNKNOWN, "cuda 99.1")),
        ("12.4", "470.57.02", (Reason.DRIVER_TOO_OLD, "cuda 12.4")),
    ],
)
def test_a_profile_for_a_cuda_version_asks_the_gpu_driver(
    cuda: str, installed: str | None, expected: tuple[Reason, str]
) -> None:
    """A driver that is silent, too old, or of which nobody can tell keeps work away."""
    machine = a_machine("box", devices=(a_gpu("A", driver_version=installed),))
    assert reason_and_subject(answer(machine, a_gpu_class(), cuda=cuda)) == expected


def test_a_new_enough_gpu_driver_runs_a_profile_for_cuda() -> None:
    """And CPU work of the same profile needs no GPU driver at all."""
    assert answer(a_gpu_box(), a_gpu_class(), cuda="12.4") is None
    assert answer(a_machine(), a_class(), cuda="12.4") is None


def test_an_old_gpu_driver_is_told_with_the_version_that_it_would_take() -> None:
    """The remedy is an update, so both versions are named."""
    machine = a_machine("box", devices=(a_gpu("A", driver_version="470.57.02"),))
    found = answer(machine, a_gpu_class(), cuda="12.4")
    assert found is not None
    assert found.detail == "CUDA 12.4 needs GPU driver 525.60.13; it has 470.57.02"


def test_a_profile_for_another_system_names_both_systems() -> None:
    """What it was made for, and what this machine runs."""
    found = answer(a_machine(), a_class(), os=(OperatingSystem.MACOS,))
    assert found is not None
    assert (found.reason, found.subject) == (Reason.OS_MISMATCH, "macos")
    assert found.detail == "this machine runs linux"


def test_a_driver_that_has_not_answered_yet_is_unknown_and_not_missing() -> None:
    """An engine that is asked just now may well be usable."""
    found = answer(a_machine(drivers={DriverName.NATIVE: None}), a_class())
    assert reason_and_subject(found) == (UNKNOWN, "native")


@pytest.mark.parametrize(
    ("said", "reason"), [({}, UNKNOWN), (False, Reason.CAPABILITY_MISSING)]
)
def test_a_container_engine_must_be_known_to_hand_out_gpus(
    said: Any, reason: Reason
) -> None:
    """A GPU in the machine is none in the container."""
    gpu = "container.docker.gpu"
    box = a_docker_box(
        devices=(a_gpu(),), capabilities={} if said == {} else {gpu: said}
    )
    assert reason_and_subject(answer(box, a_gpu_class())) == (reason, gpu)


def test_a_capability_is_unknown_for_as_long_as_a_machine_may_tell_of_it() -> None:
    """While its probes run, and where one could not tell; after them it is missing."""
    launcher = "launcher.srun"
    for unsaid in ({"settled": False}, {"capabilities": {launcher: None}}):
        silent = answer(a_machine(**unsaid), a_class(), requires=(launcher,))
        assert reason_and_subject(silent) == (UNKNOWN, launcher)
    done = answer(a_machine(), a_class(), requires=(launcher,))
    assert reason_and_subject(done) == (Reason.CAPABILITY_MISSING, launcher)
    without = a_machine(capabilities={launcher: False})
    lacking = answer(without, a_class(), capabilities=(launcher,))
    assert reason_and_subject(lacking) == (Reason.CAPABILITY_MISSING, launcher)


def test_what_an_environment_can_do_is_unknown_until_it_is_built() -> None:
    """Then a backend of which it does not tell is one that it has not."""
    backend = "distributed.glooo"
    unbuilt = answer(a_machine(), a_class(), requires=(backend,))
    assert reason_and_subject(unbuilt) == (UNKNOWN, backend)
    built = a_machine(environments={"secret-environment": {"distributed.gloo": True}})
    found = answer(built, a_class(), requires=(backend,))
    assert reason_and_subject(found) == (Reason.CAPABILITY_MISSING, backend)


@pytest.mark.parametrize(
    ("wanted", "subject", "detail"),
    [
        ({"interpreter": "3.12"}, "python 3.12", "the environment has python 3.10.4"),
        (
            {"frameworks": {"torch": "2.4"}},
            "torch 2.4",
            "the environment has torch 2.1.0",
        ),
    ],
)
def test_an_environment_with_an_older_framework_names_both_versions(
    wanted: dict[str, Any], subject: str, detail: str
) -> None:
    """One that holds enough, or that nobody has looked into yet, is not turned away."""
    built = {"secret-environment": {"python": "3.10.4", "torch": "2.1.0"}}
    found = answer(a_machine(frameworks=built), a_class(), **wanted)
    assert found is not None
    assert (found.reason, found.subject, found.detail) == (
        Reason.CAPABILITY_MISSING,
        subject,
        detail,
    )
    assert answer(a_machine(), a_class(), **wanted) is None
    assert answer(a_machine(frameworks=built), a_class(), interpreter="3.10") is None


def test_a_disk_of_which_nobody_knows_the_size_takes_nothing_that_needs_some() -> None:
    """Work that asks for no disk is not kept away by it."""
    machine = a_machine(disk_free_bytes=None)
    found = answer(machine, a_class(disk_bytes=GIB))
    assert reason_and_subject(found) == (UNKNOWN, "disk")
    assert answer(machine, a_class()) is None


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"inventory_known": False}, Reason.CONTROLLER_RECOVERING),
        ({"agent_too_old": True}, Reason.AGENT_TOO_OLD),
    ],
)
def test_a_machine_whose_agent_cannot_be_relied_on_takes_nothing_yet(
    state: dict[str, Any], reason: Reason
) -> None:
    """It has room, and what it runs or understands is not known."""
    found = answer(a_machine(**state), a_class())
    assert found is not None
    assert found.reason is reason


def test_a_quarantine_ends_by_itself_at_the_time_that_is_told() -> None:
    """The engine asks to be called then, and the work starts."""
    machine = a_machine(sharing=OPEN, quarantined_until=NOON + 600)
    found = answer(machine, a_class())
    assert found is not None
    assert found.reason is Reason.QUARANTINED
    assert found.detail == "until 08:10 UTC"
    planner = planner_of(a_snapshot(machines=(machine,), waiting=(a_waiting(),)))
    decided = planner.decide(NOON)
    assert (decided.placements, decided.look_again_at) == ((), NOON + 600)
    (placement,) = planner.decide(NOON + 600).placements
    assert placement.machine == machine.name
