"""What can never run as asked: refused at once, and told with what there is instead.

Each test is one thing that users of other schedulers could not find out.
"""

from __future__ import annotations

from typing import Any

import pytest
from fleet_builders import a_principal
from fleet_controller import Fleet, an_ask
from fleet_pictures import GIB, a_picture, some_gpus
from scheduling_builders import (
    a_catalog,
    a_class,
    a_gpu_class,
    a_profile,
    a_runtime,
)
from told_everywhere import answer_to, in_a_terminal, told, what_if

from fleet_contracts.allocations import State
from fleet_contracts.catalog import (
    Catalog,
    OperatingSystem,
    Quota,
    Requirements,
    ResourceClass,
)
from fleet_contracts.reasons import Explanation, Reason, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_hub.controller import asking, enrolling
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.records import Workload
from fleet_hub.service.deeds import DEEDS


ROOT = Actor(name="root", role=ActorRole.ADMIN)


def the_catalog(*classes: ResourceClass, **changes: Any) -> Catalog:
    """Return a catalog whose profile ``lab`` offers these classes."""
    requirements = {
        key: changes.pop(key) for key in ("requirements",) if key in changes
    }
    names = tuple(item.name for item in classes)
    profile = a_profile(classes=names, **requirements)
    return a_catalog(classes=classes, profiles=(profile,), **changes)


def a_fleet(
    asked: ResourceClass, machines: dict[str, dict[str, Any]], **changes: Any
) -> Fleet:
    """Return machines of these pictures, and a catalog with this one class."""
    fleet = Fleet(catalog=the_catalog(asked, **changes))
    for name, picture in machines.items():
        fleet.machine(name, capabilities=a_picture(**picture))
    return fleet


def ask(fleet: Fleet) -> Workload:
    """Ask for the one class."""
    return fleet.ask(profile="lab", class_name=None)


def refusal(fleet: Fleet) -> Explanation:
    """Ask, and return why it was refused: at once, and never queued."""
    record = ask(fleet)
    assert record.state is State.REFUSED
    why = told(fleet, record)
    assert why.kind is ReasonKind.NEVER
    assert what_if(fleet, "alice").why is not None
    assert what_if(fleet, "alice").why.explanation.reason is why.reason
    return why


def by_machine(fleet: Fleet) -> dict[str, str]:
    """Return what each machine says to a mere question, without its name."""
    return {
        one.machine: sentence(
            one.why_not.explanation.model_copy(update={"machine": None})
        )
        for one in what_if(fleet, "alice").machines
        if one.why_not is not None
    }


def test_each_of_nine_machines_says_what_was_asked_of_it_and_what_it_has() -> None:
    """Three kinds of machines, one label: the ninth says as much as the first.

    A machine's own configuration and an admin's word both count; the latter wins.
    """
    roles = ("db", "web", "ci")
    machines = {
        f"box-{number}": {"labels": {"role": roles[number % 3]}} for number in range(9)
    }
    fleet = a_fleet(a_class(labels={"role": "train"}), machines)
    why = refusal(fleet)
    assert (why.reason, why.subject) == (Reason.LABEL_MISMATCH, "role=train")
    assert why.detail == "no machine has this label and value; role is ci, db, web"
    assert by_machine(fleet) == {
        f"box-{number}": (
            f"The class asks for the label role=train (it has {roles[number % 3]})."
        )
        for number in range(9)
    }
    text = in_a_terminal(what_if(fleet, "alice"))
    assert all(f"box-{number}" in text for number in range(9))
    DEEDS["label"].run(fleet.core, ROOT, "box-8", "role=train, room = b12")
    fleet.cycle()
    assert fleet.ask(2, profile="lab", class_name=None).state is State.PLACED
    entry = fleet.store.audit(limit=1)[0].entry
    assert (entry.action, entry.detail) == (
        Action.LABELS_SET,
        "role=train, room=b12",
    )


@pytest.mark.parametrize(
    "choice", ["role", "=x", "role=", "a=\x1b", ",".join(f"a{n}=b" for n in range(51))]
)
def test_labels_that_are_none_are_refused_and_change_nothing(choice: str) -> None:
    """An admin is told how they are written."""
    fleet = a_fleet(a_class(), {"box": {}})
    with pytest.raises(RequestRefusedError) as refused:
        DEEDS["label"].run(fleet.core, ROOT, "box", choice)
    assert refused.value.explanation.detail == (
        "Write NAME=VALUE, with commas between them."
    )
    assert fleet.core.model.machines["box"].labels == {}


@pytest.mark.parametrize(
    ("labels", "subject", "detail"),
    [
        (
            {"rolle": "db"},
            "rolle=db",
            "no machine has a label called rolle; one is called role",
        ),
        (
            {"role": "train", "quux": "b"},
            "quux=b",
            "no machine has a label called quux",
        ),
        (
            {"role": "db", "zone": "b"},
            "role=db, zone=b",
            "each is on some machine, and no machine has all of them",
        ),
    ],
)
def test_a_label_that_no_machine_has_is_told_by_its_name(
    labels: dict[str, str], subject: str, detail: str
) -> None:
    """A typo is told apart from a value that is missing, and from two that never meet."""
    fleet = a_fleet(
        a_class(labels=labels),
        {
            "a": {"labels": {"role": "db", "zone": "a"}},
            "b": {"labels": {"role": "web", "zone": "b"}},
        },
    )
    why = refusal(fleet)
    assert (why.subject, why.detail, why.machine) == (subject, detail, None)


def test_a_machine_that_lacks_several_labels_names_each_of_them() -> None:
    """None of them hides the others."""
    asked = a_class(labels={"role": "train", "zone": "b", "rack": "7"})
    fleet = a_fleet(asked, {"a": {"labels": {"role": "db", "rack": "7"}}})
    ask(fleet)
    assert by_machine(fleet)["a"] == (
        "The class asks for the label role=train, zone=b "
        "(it has role=db, no label called zone)."
    )


def test_a_label_that_only_an_unfit_machine_has_is_not_said_to_be_missing() -> None:
    """The nearest machine is named with its own word, and that others have the label."""
    fleet = a_fleet(
        a_gpu_class(labels={"role": "train"}),
        {
            "cpu-box": {"labels": {"role": "train"}},
            "gpu-box": {"gpus": some_gpus("g", 1)},
        },
    )
    why = refusal(fleet)
    assert (why.reason, why.machine) == (Reason.LABEL_MISMATCH, "gpu-box")
    assert why.detail == (
        "it has no such label; other machines have that, and lack something else"
    )


def test_a_device_model_that_is_written_wrongly_is_told_with_those_that_there_are() -> (
    None
):
    """Each machine says what it has; the answer says what the fleet has."""
    fleet = a_fleet(
        a_gpu_class(device_models=("A1000",)),
        {
            "a": {"gpus": some_gpus("a", 2)},
            "b": {"gpus": some_gpus("b", 1, "NVIDIA L4")},
        },
    )
    why = refusal(fleet)
    assert (why.reason, why.subject) == (Reason.DEVICE_MODEL_MISMATCH, "A1000")
    assert why.detail == (
        "no machine has such a device; there is NVIDIA A100-SXM4-80GB, NVIDIA L4"
    )
    assert by_machine(fleet)["b"].endswith("A1000 (it has NVIDIA L4).")


def test_a_capability_that_no_machine_knows_is_refused_with_the_one_that_is_meant() -> (
    None
):
    """Waiting for a probe that nobody has would be waiting for ever."""
    fleet = a_fleet(
        a_class(),
        {"a": {}, "b": {}},
        requirements=Requirements(capabilities=("sandbox.bublewrap",)),
    )
    why = refusal(fleet)
    assert (why.reason, why.subject) == (
        Reason.CAPABILITY_MISSING,
        "sandbox.bublewrap",
    )
    assert why.detail == (
        "no machine tells of sandbox.bublewrap; one is called sandbox.bubblewrap"
    )
    assert "(nothing on it looks for that)" in by_machine(fleet)["b"]


def test_another_operating_system_is_told_with_those_that_there_are() -> None:
    """What the profile was made for, and what runs here."""
    fleet = a_fleet(
        a_class(), {"a": {}}, requirements=Requirements(os=(OperatingSystem.MACOS,))
    )
    why = refusal(fleet)
    assert (why.reason, why.subject) == (Reason.OS_MISMATCH, "macos")
    assert why.detail == "no machine runs that; there is linux"


def test_a_system_that_is_there_without_the_gpu_is_not_said_to_be_missing() -> None:
    """The Mac has the system and no CUDA, the box has CUDA and another system."""
    fleet = a_fleet(
        a_gpu_class(),
        {"box": {"gpus": some_gpus("box", 1)}, "mac": {"os": "darwin"}},
        requirements=Requirements(os=(OperatingSystem.MACOS,)),
    )
    why = refusal(fleet)
    assert (why.reason, why.machine) == (Reason.OS_MISMATCH, "box")
    assert why.detail == (
        "this machine runs linux; other machines have that, and lack something else"
    )


def test_gpu_drivers_that_are_all_too_old_are_told_by_the_newest() -> None:
    """Of three, the one that is nearest to what is needed."""
    fleet = a_fleet(
        a_gpu_class(),
        {
            name: {"gpus": some_gpus(name, 1, driver_version=version)}
            for name, version in {"a": "470.1", "b": "515.1", "c": "450.9"}.items()
        },
        requirements=Requirements(cuda="12.4"),
    )
    why = refusal(fleet)
    assert (why.reason, why.subject) == (Reason.DRIVER_TOO_OLD, "cuda 12.4")
    assert why.detail == (
        "cuda 12.4 needs GPU driver 525.60.13; the newest there is 515.1"
    )


def test_a_machine_whose_gpus_differ_in_their_driver_is_named() -> None:
    """One device has a driver that is new enough: nothing is said of all."""
    mixed = [
        *some_gpus("a", 1, "old", driver_version="470.1"),
        *some_gpus("a", 1, "new"),
    ]
    fleet = a_fleet(
        a_gpu_class(), {"a": {"gpus": mixed}}, requirements=Requirements(cuda="12.4")
    )
    why = refusal(fleet)
    assert why.detail == "CUDA 12.4 needs GPU driver 525.60.13; it has 470.1"


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


@pytest.mark.parametrize(
    ("quota", "asked", "subject", "numbers"),
    [
        (
            Quota(user="*", cpu_milli=5000),
            a_class(cpu_milli=6000),
            "alice",
            "6 cores asked for, 5 cores allowed",
        ),
        (
            Quota(group="bio", devices=1),
            a_gpu_class(devices=2),
            "bio",
            "2 devices asked for, 1 device allowed",
        ),
        (
            Quota(user="alice", workloads=0),
            a_class(),
            "alice",
            "1 workload asked for, 0 workloads allowed",
        ),
        (
            Quota(group="*", memory_bytes=GIB),
            a_class(memory_bytes=2 * GIB),
            "bio",
            "2 GiB asked for, 1 GiB allowed",
        ),
    ],
)
def test_more_than_a_quota_allows_at_all_can_never_fit_and_is_no_wait(
    quota: Quota, asked: ResourceClass, subject: str, numbers: str
) -> None:
    """Refused as it is asked for, with whose quota it is and both numbers.

    A machine with room for it changes nothing.
    """
    fleet = a_fleet(
        asked, {"big": {"cores": 64, "gpus": some_gpus("big", 4)}}, quotas=(quota,)
    )
    alice = a_principal(groups=("bio",))
    with pytest.raises(RequestRefusedError) as refused:
        asking.ask(fleet.core, an_ask(principal=alice, profile="lab", class_name=None))
    why = refused.value.explanation
    assert (why.reason, why.kind) == (Reason.EXCEEDS_QUOTA_EVER, ReasonKind.NEVER)
    assert sentence(why) == (
        f"This alone is more than the quota of {subject}: {numbers}."
    )
    asked_only = what_if(fleet, "alice", "lab", None, "bio")
    assert not asked_only.may_be_asked
    assert asked_only.why is not None
    assert asked_only.why.explanation == why


def test_a_quota_that_shrinks_below_what_waits_ends_the_wait_with_both_numbers() -> (
    None
):
    """What was possible when it was asked for is refused once it is not."""
    asked = a_class(cpu_milli=6000)
    fleet = a_fleet(asked, {"box": {}}, runtimes=(a_runtime(),))
    fleet.ask(profile="lab", class_name=None)
    waiting = fleet.ask(2, profile="lab", class_name=None)
    assert waiting.state is State.QUEUED
    smaller = fleet.catalogs.catalog.model_copy(
        update={"quotas": (Quota(user="alice", cpu_milli=5000),)}
    )
    fleet.catalogs.catalog = smaller
    fleet.core.want_cycle()
    fleet.cycle()
    why = told(fleet, waiting)
    assert fleet.get(waiting).state is State.REFUSED
    assert (why.reason, why.requested, why.capacity) == (
        Reason.EXCEEDS_QUOTA_EVER,
        6000,
        5000,
    )
