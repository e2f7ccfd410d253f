"""Where it runs: the machine that costs others least, or the one with the files."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from scheduling_builders import (
    ALICE,
    BOB,
    BOTH_DRIVERS,
    GIB,
    NOON,
    OPEN,
    a_catalog,
    a_class,
    a_gpu,
    a_gpu_box,
    a_gpu_class,
    a_mac,
    a_machine,
    a_metal_class,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.reasons import Reason, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import Choice, DriverName
from fleet_hub.scheduling.choice import read_choice
from fleet_hub.scheduling.decisions import Placement
from fleet_hub.scheduling.plan import plan
from fleet_hub.scheduling.snapshot import MachineState, Pin, Snapshot


def placed(snapshot: Snapshot) -> dict[str, Placement]:
    """Return the placements by workload."""
    return {item.workload: item for item in plan(snapshot).placements}


def test_cpu_work_leaves_gpu_machines_alone_while_others_are_free() -> None:
    """A machine with accelerators is the last that CPU work gets, however well it fits."""
    tight = a_gpu_box("a-gpu", cores_milli=1000)
    roomy = a_machine("z-cpu", cores_milli=64_000)
    found = placed(a_snapshot(machines=(tight, roomy), waiting=(a_waiting(),)))
    assert found["asked"].machine == "z-cpu"


def test_cpu_work_may_use_a_gpu_machine_when_nothing_else_is_free() -> None:
    """Better there than nowhere: it takes no device."""
    full = a_machine("cpu", held=(an_allocation(cpu_milli=8000),))
    found = placed(a_snapshot(machines=(full, a_gpu_box()), waiting=(a_waiting(),)))
    assert (found["asked"].machine, found["asked"].resources.devices) == ("gpu-box", ())


def test_sixty_four_waiting_gpu_users_keep_no_cpu_user_from_starting() -> None:
    """The line of one class is not the line of another."""
    endless = an_allocation(devices=("GPU-gpu-box-0",))
    machines = (a_gpu_box(held=(endless,)), a_machine("cpu"))
    waiting = (
        *(a_waiting(f"gpu-{number}", class_name="gpu") for number in range(64)),
        a_waiting("cpu", class_name="cpu", asked_at=NOON),
    )
    assert list(placed(a_snapshot(machines=machines, waiting=waiting))) == ["cpu"]


def test_a_gpu_request_never_becomes_a_cpu_request() -> None:
    """With idle CPU machines beside a busy GPU it waits for the GPU."""
    held = an_allocation(devices=("GPU-gpu-box-0",))
    decided = plan(
        a_snapshot(
            machines=(a_machine("cpu"), a_gpu_box(held=(held,))),
            waiting=(a_waiting(class_name="gpu"),),
        )
    )
    assert decided.placements == ()
    assert decided.waits[0].explanation.reason is Reason.GPU_BUSY


def test_two_users_of_one_gpu_each_get_different_devices() -> None:
    """Count one twice on two GPUs: each has its own, by UUID."""
    box = a_gpu_box(gpus=2, sharing=OPEN, drivers=BOTH_DRIVERS)
    found = placed(
        a_snapshot(
            machines=(box,),
            waiting=(
                a_waiting("one", class_name="gpu"),
                a_waiting("two", class_name="gpu", principal=BOB),
            ),
        )
    )
    devices = [item.resources.devices for item in found.values()]
    assert sorted(devices) == [("GPU-gpu-box-0",), ("GPU-gpu-box-1",)]


def test_of_equal_gpus_the_one_that_nobody_uses_is_taken() -> None:
    """Somebody computes on the first of four beside the fleet: a clean one is given."""
    box = a_gpu_box(gpus=4, in_use=("GPU-gpu-box-0",))
    asked = (a_waiting(class_name="gpu"),)
    found = placed(a_snapshot(machines=(box,), waiting=asked))
    assert found["asked"].resources.devices == ("GPU-gpu-box-1",)


def test_a_gpu_that_may_be_in_use_is_given_when_no_other_is_free() -> None:
    """Nobody knows whose use it is: what is unknown is neither nothing nor all of it."""
    held = an_allocation(devices=("GPU-gpu-box-1",))
    box = a_gpu_box(gpus=2, in_use=("GPU-gpu-box-0",), held=(held,))
    asked = (a_waiting(class_name="gpu"),)
    found = placed(a_snapshot(machines=(box,), waiting=asked))
    assert found["asked"].resources.devices == ("GPU-gpu-box-0",)


def test_the_devices_of_one_request_are_of_one_machine_and_each_counts_once() -> None:
    """Two machines of one GPU each are no place for two: nothing is pieced together."""
    catalog = a_catalog(classes=(a_gpu_class("pair", devices=2),))
    pair = (a_waiting(class_name="pair"),)
    singles = (a_gpu_box("one"), a_gpu_box("two"))
    decided = plan(a_snapshot(catalog=catalog, machines=singles, waiting=pair))
    assert decided.placements == ()
    assert [item.explanation.reason for item in decided.refusals] == [
        Reason.EXCEEDS_ANY_MACHINE
    ]
    both = placed(
        a_snapshot(catalog=catalog, machines=(a_gpu_box(gpus=2),), waiting=pair)
    )
    assert both["asked"].resources.devices == ("GPU-gpu-box-0", "GPU-gpu-box-1")


def test_a_gpu_job_takes_the_machine_that_it_leaves_fullest() -> None:
    """Whole machines stay free for those who need them whole."""
    empty = a_gpu_box("a-empty", gpus=4)
    started = an_allocation(devices=("GPU-b-started-0",))
    half = a_gpu_box("b-started", gpus=4, held=(started,))
    found = placed(
        a_snapshot(machines=(empty, half), waiting=(a_waiting(class_name="gpu"),))
    )
    assert found["asked"].machine == "b-started"
    assert found["asked"].runners_up == ("a-empty",)


def test_a_small_need_takes_the_least_device_that_suits() -> None:
    """The large GPU stays free for whoever needs its memory."""
    devices = (
        a_gpu("GPU-large"),
        a_gpu("GPU-small", name="NVIDIA L4", memory_bytes=24 * GIB),
    )
    catalog = a_catalog(
        classes=(
            a_gpu_class("any"),
            a_gpu_class("large", device_memory_bytes=40 * GIB),
        )
    )
    found = placed(
        a_snapshot(
            catalog=catalog,
            machines=(a_machine(devices=devices),),
            waiting=(
                a_waiting("any", class_name="any"),
                a_waiting("large", class_name="large"),
            ),
        )
    )
    assert found["any"].resources.devices == ("GPU-small",)
    assert found["large"].resources.devices == ("GPU-large",)


def test_of_equal_machines_the_first_by_name_is_taken() -> None:
    """And the next request gets the tightest one that is left."""
    machines = tuple(a_machine(name) for name in ("c", "a", "b"))
    assert (
        placed(a_snapshot(machines=machines, waiting=(a_waiting(),)))["asked"].machine
        == "a"
    )


def test_a_placement_says_why_this_machine_and_which_came_next() -> None:
    """The terms in the order in which they counted, and the runners-up."""
    small = a_machine("small", cores_milli=2000)
    large = a_machine("large", cores_milli=8000)
    found = placed(a_snapshot(machines=(large, small), waiting=(a_waiting(),)))["asked"]
    assert found.machine == "small"
    assert dict(found.score)["cpu_milli_left"] == 1000
    assert found.runners_up == ("large",)


def test_disk_counts_where_it_is_asked_for() -> None:
    """Free disk is a machine's own fact: too little of it is told with the numbers."""
    catalog = a_catalog(classes=(a_class(disk_bytes=100 * GIB),))
    small = a_machine("small", disk_free_bytes=50 * GIB)
    large = a_machine("large", disk_free_bytes=150 * GIB)
    waiting = (a_waiting("one"), a_waiting("two", asked_at=NOON))
    decided = plan(
        a_snapshot(catalog=catalog, machines=(small, large), waiting=waiting)
    )
    (placement,), (wait,) = decided.placements, decided.waits
    assert placement.machine == "large"
    assert wait.explanation.reason is Reason.DISK_BUSY
    assert wait.counts == {Reason.DISK_BUSY: 1, Reason.DISK_TOO_SMALL: 1}


def pinned(*machines: MachineState, class_name: str = "cpu") -> Snapshot:
    """Return alice's restart of a notebook whose files are on ``home``."""
    pin = Pin(machine="home", driver=DriverName.NATIVE, class_name="cpu")
    return a_snapshot(
        machines=machines, waiting=(a_waiting(class_name=class_name, pin=pin),)
    )


def test_a_restart_goes_back_to_the_machine_and_driver_of_its_files() -> None:
    """However well another would fit, and though the home has another driver too."""
    home = a_machine(
        "home", drivers=BOTH_DRIVERS, held=(an_allocation(cpu_milli=4000),)
    )
    found = placed(pinned(a_machine("a-idle", drivers=BOTH_DRIVERS), home))["asked"]
    assert (found.machine, found.driver) == ("home", DriverName.NATIVE)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"online": False, "offline_since": NOON - 60}, Reason.OFFLINE),
        ({"draining_by": "cy"}, Reason.DRAINING),
        ({"held": (an_allocation(cpu_milli=8000),)}, Reason.CPU_BUSY),
    ],
)
def test_a_restart_waits_for_its_own_machine_and_says_so(
    changes: dict[str, object], reason: Reason
) -> None:
    """An idle machine beside it is no answer: the files are not there."""
    home = replace(a_machine("home"), **changes)
    decided = plan(pinned(home, a_machine("idle")))
    assert decided.placements == ()
    assert decided.waits[0].explanation.reason is reason
    assert decided.waits[0].explanation.machine == "home"
    assert decided.waits[0].counts[Reason.DATA_NOT_LOCAL] == 1


def test_a_restart_that_can_never_run_at_home_is_refused_and_never_moved() -> None:
    """Another class than its machine has: the way out is asked for, not taken."""
    home = a_machine("home")
    decided = plan(pinned(home, a_gpu_box("other"), class_name="gpu"))
    assert decided.placements == ()
    assert decided.refusals[0].explanation.kind is ReasonKind.NEVER
    assert sentence(decided.refusals[0].explanation) == (
        "On home, no such accelerator: cuda (the server's files are there)."
    )


def test_a_home_that_is_too_small_is_not_called_the_largest_machine() -> None:
    """Its own numbers are told: what larger machines have was not asked."""
    catalog = a_catalog(classes=(a_class("cpu", cpu_milli=16_000),))
    machines = (a_machine("home"), a_machine("other", cores_milli=64_000))
    snapshot = replace(pinned(*machines), catalog=catalog)
    why = plan(snapshot).refusals[0].explanation
    assert (why.reason, why.machine) == (Reason.CPU_TOO_SMALL, "home")
    assert (why.requested, why.capacity) == (16_000, 8000)
    assert why.detail == "the server's files are there"


def test_what_the_home_has_instead_is_told_beside_the_files() -> None:
    """The model that it has stays in the sentence."""
    catalog = a_catalog(classes=(a_gpu_class("cpu", device_models=("H100",)),))
    snapshot = replace(pinned(a_gpu_box("home")), catalog=catalog)
    why = plan(snapshot).refusals[0].explanation
    assert why.reason is Reason.DEVICE_MODEL_MISMATCH
    assert why.detail == "it has NVIDIA A100-SXM4-80GB; the server's files are there"


def test_a_second_native_workload_on_a_mac_waits_for_its_gpu() -> None:
    """CPU work too: the reason is the Metal hold, with who has it."""
    held = an_allocation("theirs", owner="alice", user_id=1, metal=True)
    decided = plan(a_snapshot(machines=(a_mac(held=(held,)),), waiting=(a_waiting(),)))
    found = decided.waits[0].explanation
    assert found.reason is Reason.METAL_BUSY
    assert [holder.workload for holder in found.holders] == ["theirs"]


def test_cpu_work_on_a_mac_counts_as_cpu_and_says_that_it_keeps_the_gpu() -> None:
    """It reserves Metal, asked for no device, and its note says so."""
    found = placed(a_snapshot(machines=(a_mac(),), waiting=(a_waiting(),)))["asked"]
    assert found.resources.metal
    assert (found.class_name, found.devices_asked) == ("cpu", 0)
    assert found.note.reason is Reason.METAL_RESERVED


def test_five_requests_that_can_never_run_are_five_answers() -> None:
    """Nothing is counted as a failure, and the sixth is judged like the first."""
    catalog = a_catalog(classes=(a_gpu_class("huge", devices=64),))
    waiting = tuple(a_waiting(f"w{number}") for number in range(6))
    decided = plan(
        a_snapshot(catalog=catalog, machines=(a_gpu_box(),), waiting=waiting)
    )
    kinds = Counter(item.explanation.kind for item in decided.refusals)
    assert kinds == {ReasonKind.NEVER: 6}


def test_an_empty_field_of_a_form_is_no_wish() -> None:
    """A form sends every field that it has."""
    options = {"profile": "lab", "class": "", "files": ""}
    assert read_choice(a_catalog(), ALICE, options) == Choice(profile="lab")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, Reason.PROFILE_REQUIRED),
        ({"class": "cpu"}, Reason.PROFILE_REQUIRED),
        ({"profile": "lab\n"}, Reason.PROFILE_UNKNOWN),
        ({"profile": "labs"}, Reason.PROFILE_UNKNOWN),
        ({"profile": "lab", "class": "cpu "}, Reason.CLASS_UNKNOWN),
        ({"profile": {"lab": 1}}, Reason.INVALID_REQUEST),
        ({"profile": ["lab"]}, Reason.INVALID_REQUEST),
        ({"profile": "lab", "class": {"x": 1}}, Reason.INVALID_REQUEST),
        ({"profile": "lab", "image": "mine"}, Reason.OPTION_UNKNOWN),
        ({"profile": "lab", "files": {"fresh": 1}}, Reason.INVALID_REQUEST),
    ],
)
def test_whatever_rest_sends_is_a_choice_or_a_refusal_with_a_code(
    options: dict[str, object], reason: Reason
) -> None:
    """No KeyError, no prefix match, no trailing newline, no default class."""
    found = read_choice(a_catalog(), ALICE, options)
    assert found.reason is reason


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("labs", "There is no profile called labs."),
        (" lab", "There is no profile called “ lab” ({how})."),
        ("LAB", "There is no profile called “LAB” ({how})."),
        ("lab\n", "There is no profile called “lab?” ({how})."),
        (
            "l\N{CYRILLIC SMALL LETTER A}b",
            "There is no profile called “l\N{CYRILLIC SMALL LETTER A}b” ({how}).",
        ),
        ("x" * 1_000_000, f"There is no profile called “{'x' * 63}” ({{how}})."),
    ],
)
def test_a_name_that_only_looks_right_is_told_apart(name: str, told: str) -> None:
    """Whoever reads it again would not see the space, the capital or the other letter."""
    how = "names are at most 63 small letters from a to z, digits and hyphens"
    found = read_choice(a_catalog(), ALICE, {"profile": name})
    assert sentence(found) == told.format(how=how)
    of_class = read_choice(a_catalog(), ALICE, {"profile": "lab", "class": name})
    assert of_class.reason is Reason.CLASS_UNKNOWN
    assert of_class.detail == found.detail


@pytest.mark.parametrize(
    ("fault", "reason", "detail"),
    [
        ("sandbox_missing", Reason.SANDBOX_MISSING, None),
        ("os_not_supported", Reason.DRIVER_UNAVAILABLE, "os not supported"),
    ],
)
def test_a_driver_that_cannot_be_used_is_told_with_its_fault(
    fault: str, reason: Reason, detail: str | None
) -> None:
    """Whatever else the machine has: a tool beside it is no sandbox."""
    box = a_machine(
        drivers={DriverName.NATIVE: False},
        driver_faults={DriverName.NATIVE: fault},
        capabilities={"sandbox.bubblewrap": False, "sandbox.setpriv": True},
    )
    refused = plan(a_snapshot(machines=(box,), waiting=(a_waiting(),))).refusals[0]
    assert refused.explanation.reason is reason
    assert refused.explanation.detail == detail


@pytest.mark.parametrize(
    ("environments", "lacks"),
    [({}, False), ({DriverName.NATIVE: ()}, True), ({DriverName.DOCKER: ()}, False)],
)
def test_a_machine_without_the_environment_is_passed_over(
    environments: dict[DriverName, tuple[str, ...]], *, lacks: bool
) -> None:
    """One that does not tell its environments, as older agents do, is tried."""
    box = a_machine(driver_environments=environments)
    refusals = plan(a_snapshot(machines=(box,), waiting=(a_waiting(),))).refusals
    assert bool(refusals) is lacks
    if lacks:
        assert refusals[0].explanation.reason is Reason.CAPABILITY_MISSING
        assert refusals[0].explanation.subject == "the profile's environment"


def test_behind_a_fence_that_holds_cpu_notebooks_share_a_mac() -> None:
    """Two of them and one that computes on the GPU run at a time; the note says why."""
    catalog = a_catalog(classes=(a_class(), a_metal_class()))
    mac = a_mac(metal_fenced=True)
    found = placed(
        a_snapshot(
            catalog=catalog,
            machines=(mac,),
            waiting=(
                a_waiting("first"),
                a_waiting("gpu", class_name="metal"),
                a_waiting("second"),
            ),
        )
    )

    assert {name: item.resources.metal for name, item in found.items()} == {
        "first": False,
        "gpu": True,
        "second": False,
    }
    assert found["first"].note.reason is Reason.METAL_SHARED
    assert found["gpu"].note is None


def test_once_the_fence_is_in_doubt_what_shared_the_mac_keeps_its_gpu() -> None:
    """Nothing is ended, and whoever wants the GPU waits for it by name."""
    sharing = an_allocation("sharing", owner="alice", user_id=1)
    decided = plan(
        a_snapshot(machines=(a_mac(held=(sharing,)),), waiting=(a_waiting(),))
    )
    found = decided.waits[0].explanation

    assert found.reason is Reason.METAL_BUSY
    assert [holder.workload for holder in found.holders] == ["sharing"]


def test_a_container_on_a_mac_says_nothing_about_its_gpu() -> None:
    """It runs in a virtual machine without Metal, fence or not."""
    mac = a_mac(drivers={DriverName.DOCKER: True}, sharing=OPEN)
    found = placed(a_snapshot(machines=(mac,), waiting=(a_waiting(),)))

    assert found["asked"].note is None
