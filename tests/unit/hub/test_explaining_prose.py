"""An explanation in a terminal: the headline, what helps, and every machine."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from scheduling_builders import (
    GIB,
    NOON,
    a_catalog,
    a_gpu,
    a_gpu_class,
    a_machine,
    a_profile,
    a_snapshot,
    an_allocation,
)

from fleet_contracts.catalog import Audience
from fleet_contracts.language import speaking
from fleet_hub.explaining.answers import answer
from fleet_hub.explaining.document import Answer, Question
from fleet_hub.explaining.prose import describe
from fleet_hub.explaining.state import FleetState
from fleet_hub.explaining.view import view_of
from fleet_hub.terminal import Style


def an_answer_of_many(page: int) -> Answer:
    """Return what alice is told of 120 full boxes and an empty one."""
    full = [
        a_machine(f"m{number:03}", held=(an_allocation(f"h{number}", cpu_milli=8000),))
        for number in range(120)
    ]
    snapshot = a_snapshot(machines=(*full, a_machine("z")))
    state = FleetState(as_of=datetime.fromtimestamp(NOON, UTC), snapshot=snapshot)
    asked = {"profile": "lab", "user": "alice", "groups": (), "page": page}
    return answer(view_of(state), Question.model_validate(asked))


def an_answer(class_name: str = "big") -> Answer:
    """Return what alice is told of one taken large GPU, two small ones and a CPU box."""
    small = [
        a_machine(name, devices=(a_gpu(name, memory_bytes=40 * GIB),))
        for name in ("s1", "s2")
    ]
    held = an_allocation("h", devices=("L",), title="Torch", ends_by=NOON + 600)
    large = a_machine("large", devices=(a_gpu("L"),), held=(held,))
    classes = (
        a_gpu_class("big", device_memory_bytes=60 * GIB, limit_seconds=60),
        a_gpu_class("any"),
    )
    snapshot = a_snapshot(
        catalog=a_catalog(classes=classes),
        machines=(large, *small, a_machine("plain")),
    )
    state = FleetState(as_of=datetime.fromtimestamp(NOON, UTC), snapshot=snapshot)
    asked = {"profile": "lab", "class": class_name, "user": "alice", "groups": ()}
    return answer(view_of(state), Question.model_validate(asked))


def test_the_nearest_machines_come_first_and_alike_ones_together() -> None:
    """Those that would take it, then what may clear, then what never will."""
    text = describe(an_answer(), Style())
    places = [text.index(word) for word in ("● large", "✕ s1, s2", "✕ plain")]
    assert places == sorted(places)
    text = describe(an_answer("any"), Style())
    assert text.index("✓ s1, s2") < text.index("● large") < text.index("✕ plain")


def test_who_mistypes_a_profile_is_told_which_there_are() -> None:
    """Those that the user may start, and no more of them than can be read."""
    mine = Audience(everyone=False, users=("alice",))
    profiles = (
        a_profile("lab"),
        a_profile("hers", audience=mine),
        *(a_profile(f"p{number:02}", classes=("gpu",)) for number in range(40)),
    )
    snapshot = a_snapshot(catalog=a_catalog(profiles=profiles))
    state = FleetState(as_of=datetime.fromtimestamp(NOON, UTC), snapshot=snapshot)
    for user, told, more in (
        ("alice", "Profiles of alice: lab, hers, p00,", "and 2 more."),
        ("bob", "Profiles of bob: lab, p00,", "and 1 more."),
    ):
        asked = {"profile": "lap", "user": user, "groups": ()}
        found = answer(view_of(state), Question.model_validate(asked))
        text = " ".join(describe(found, Style()).split())
        assert "there is no profile called lap" in text
        assert told in text
        assert more in text
        assert found.profiles is not None
    known = {"profile": "lab", "user": "bob", "groups": ()}
    found = answer(view_of(state), Question.model_validate(known))
    assert found.profiles is None


def test_a_mere_question_is_told_as_what_would_be() -> None:
    """With the promise, the change that would help, and the code of each reason."""
    text = describe(an_answer(), Style())
    for part in (
        "● It would wait: on large, ",
        "It would start no later than ",
        "with 40 GiB of device memory instead of 60 GiB: 3 machines, 2 free now.",
        "gpu_busy (busy): ",
        "vram_too_small (never): ",
        "accelerator_mismatch (never): ",
    ):
        assert part in text, part


@pytest.mark.parametrize("columns", [100, 50, 24])
def test_it_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """However narrow, and nothing is left out."""
    monkeypatch.setenv("COLUMNS", str(columns))
    text = describe(an_answer(), Style())
    assert all(len(line) <= columns for line in text.splitlines()), text
    assert "accelerator_mismatch" in text


def test_a_large_fleet_comes_by_the_page_with_a_count_of_all_reasons() -> None:
    """The nearest machines first; the document has all of them on every page."""
    first, last = an_answer_of_many(1), an_answer_of_many(4)
    text = describe(first, Style())
    for part in (
        "Machines (121)",
        "1 take it now; 120 cpu_busy",
        "Page 1 of 4, the nearest machines first:",
        "The next: --page 2",
    ):
        assert part in text, part
    assert text.index("✓ z") < text.index("m000")
    assert "m039" not in text
    text = describe(last, Style())
    assert "m119" in text
    assert "The next" not in text
    assert first.alike == last.alike
    assert [len(one.machines) for one in first.alike] == [1, 120]
    assert [len(one.machines) for one in (first, last)] == [40, 1]


def test_machines_are_told_in_the_voice_of_the_headline() -> None:
    """A holder is "you" to who asks for themselves, and named to anybody else."""
    held = an_allocation("h", owner="alice", cpu_milli=8000)
    snapshot = a_snapshot(machines=(a_machine("box", held=(held,)),))
    state = FleetState(as_of=datetime.fromtimestamp(NOON, UTC), snapshot=snapshot)
    asked = {"profile": "lab", "user": "alice", "groups": ()}
    for of_another, named, other in (
        (True, "held by alice", "held by you"),
        (False, "held by you", "held by alice"),
    ):
        with speaking(of_another=of_another):
            found = answer(view_of(state), Question.model_validate(asked))
        text = " ".join(describe(found, Style()).split())
        assert text.count(named) == 2
        assert other not in text
