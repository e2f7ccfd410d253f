"""A ref in a machine's own words: however an engine says it, no user reads it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fleet_controller import Fleet

from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress
from fleet_hub.controller.records import Workload
from fleet_hub.controller.scrubbing import scrubbed, scrubbed_progress


IMAGE = "registry.example:5000/team/lab:2026.11"


def a_record(ref: str) -> Workload:
    """Return a workload that runs *ref*."""
    fleet = Fleet()
    fleet.machine()
    record: Any = fleet.ask(1)
    assignment = record.assignment
    runtime = assignment.runtime.model_copy(update={"ref": ref})
    changed: Workload = replace(record, assignment=replace(assignment, runtime=runtime))
    return changed


def told(ref: str, text: str) -> str | None:
    """Return what a user reads of *text*."""
    why = Explanation(reason=Reason.PREPARE_FAILED, detail=text)
    found = scrubbed(a_record(ref), why)
    return None if found is None else found.detail


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        (IMAGE, IMAGE),
        (IMAGE, "registry.example:5000/team/lab"),
        (IMAGE, "registry.example:5000/team/lab:latest"),
        (IMAGE, f"registry.example:5000/team/lab@sha256:{'0f' * 32}"),
        (IMAGE, f"{IMAGE}@sha256:{'0f' * 32}"),
        (IMAGE, "team/lab"),
        (IMAGE, "Team/Lab:2026.11"),
        ("team/lab", "docker.io/team/lab:latest"),
        ("lab:3", "docker.io/library/lab:3"),
        ("quay.io/lab", "quay.io/lab:latest"),
        ("lab-2026", "lab-2026"),
    ],
)
def test_no_way_to_say_a_ref_reaches_a_user(ref: str, said: str) -> None:
    """With tag and digest, without them, and with the registry of those that have none."""
    text = f"cannot pull '{said}', it is gone."
    assert told(ref, text) == "cannot pull 'the runtime', it is gone."


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("lab", "the label of a laboratory is not lab-made"),
        (IMAGE, "the team of the lab asks the registry"),
        ("quay.io/lab", "a lab is at work"),
    ],
)
def test_other_words_stay_as_they_are(ref: str, text: str) -> None:
    """A part of a word is none, and neither is a word that a ref has too."""
    assert told(ref, text) == text


@pytest.mark.timeout(20)
def test_a_machine_that_says_much_keeps_nobody_waiting() -> None:
    """Neither what looks like a name without an end, nor many of them."""
    for words in ("a.", "a/", "team/lab/", ":"):
        assert told(IMAGE, words * 500_000) is not None


def test_progress_is_told_without_it_too() -> None:
    """Its steps and units are a machine's own words."""
    shown = scrubbed_progress(a_record(IMAGE), Progress(step="pull team/lab:1"))
    assert shown.step == "pull the runtime"
