"""What no machine is or has: refused, called by its name, with what there is instead."""

from __future__ import annotations

import pytest
from fleet_pictures import a_picture, some_gpus
from scenario_fleets import a_fleet, ask, by_machine, refusal
from scheduling_builders import (
    a_class,
    a_gpu_class,
)
from told_everywhere import in_a_terminal, what_if

from fleet_contracts.allocations import State
from fleet_contracts.catalog import (
    OperatingSystem,
    Requirements,
)
from fleet_contracts.reasons import Reason
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.service.deeds import DEEDS


ROOT = Actor(name="root", role=ActorRole.ADMIN)


def test_each_of_nine_machines_says_what_was_asked_of_it_and_what_it_has() -> None:
    """Three kinds of machines, one label: the ninth says as much as the first.

    Labels are an admin's word; what a machine says of itself is asked for by nobody.
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
    claims = a_picture(labels={"role": "train"})
    fleet.machine("liar", capabilities=claims)
    assert by_machine(fleet)["liar"].endswith("role=train (it has no such label).")
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


def test_environments_that_are_all_too_old_name_the_nearest_machine() -> None:
    """Each has another version: no one of them is told as if it were everybody's."""
    fleet = a_fleet(
        a_class(), {"a": {}, "b": {}}, requirements=Requirements(interpreter="3.12")
    )
    for name, version in {"a": "3.10.4", "b": "3.11.9"}.items():
        presence = fleet.core.model.presence[name]
        presence.facts = presence.facts.model_copy(
            update={"frameworks": {"secret-environment": {"python": version}}}
        )
        fleet.core.model.stirred.add(name)
    fleet.cycle()
    why = refusal(fleet)
    assert (why.reason, why.subject, why.machine) == (
        Reason.CAPABILITY_MISSING,
        "python 3.12",
        "a",
    )
    assert why.detail == "the environment has python 3.10.4"
