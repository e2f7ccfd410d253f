"""Sentences: every code can be read by a person, with its numbers and a way out."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from fleet_contracts.allocations import State
from fleet_contracts.language import speaking
from fleet_contracts.phrases import PHRASES, REMEDIES
from fleet_contracts.reasons import Explanation, Holder, LikelyEnd, Reason
from fleet_contracts.sentences import headline, holder_words, remedy, sentence


NOON = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
GIB = 1024**3


@pytest.mark.parametrize("reason", Reason)
def test_every_code_has_a_sentence_and_a_remedy(reason: Reason) -> None:
    """Bare or with all its numbers, a code reads as one sentence without gaps."""
    bare = sentence(Explanation(reason=reason))
    full = sentence(
        Explanation(
            reason=reason,
            subject="thing",
            machine="box",
            requested=3,
            capacity=2,
            free=1,
            unit="devices",
        )
    )
    for text in (bare, full, remedy(reason)):
        assert re.fullmatch(r"[A-Z0-9][^{}\[\]]*\.", text), text
        assert "None" not in text
        assert "  " not in text
    assert "box" in full


def test_no_two_codes_say_the_same() -> None:
    """A person can tell the codes apart without seeing them."""
    assert len(set(PHRASES.values())) == len(Reason)
    assert set(REMEDIES) == set(Reason)


def test_numbers_are_told_in_units_that_people_read() -> None:
    """Bytes, cores, devices and seconds are not told as bare integers."""
    memory = Explanation(
        reason=Reason.MEMORY_BUSY,
        machine="box",
        requested=8 * GIB,
        free=GIB // 2,
        capacity=32 * GIB,
        unit="bytes",
    )
    assert sentence(memory) == (
        "On box, too little memory is free: 8 GiB asked for, 512 MiB of 32 GiB free."
    )
    cores = Explanation(
        reason=Reason.CPU_BUSY, requested=1000, free=500, unit="milli_cores"
    )
    assert sentence(cores) == (
        "Too few cores are free: 1 core asked for, 0.5 cores free."
    )
    limit = Explanation(reason=Reason.TIME_LIMIT, requested=28800, unit="seconds")
    assert sentence(limit) == "The time limit was reached: 8h."
    gpus = Explanation(reason=Reason.GPU_BUSY, requested=1, free=0, unit="devices")
    assert "1 device asked for, 0 devices free" in sentence(gpus)
    bare = Explanation(reason=Reason.GPU_BUSY, requested=2, free=1)
    assert "2 asked for, 1 free" in sentence(bare)


def test_what_is_free_is_told_of_how_much() -> None:
    """The unit is said once where it is a word."""
    for asked, free, capacity, unit, told in (
        (1, 0, 8, "devices", "1 device asked for, 0 of 8 free"),
        (2000, 500, 2000, "milli_cores", "2 cores asked for, 0.5 of 2 free"),
        (1, 0, 4, "workloads", "1 workload asked for, 0 of 4 free"),
        (2, 1, 3, None, "2 asked for, 1 of 3 free"),
        (8 * GIB, GIB, 16 * GIB, "bytes", "8 GiB asked for, 1 GiB of 16 GiB free"),
    ):
        why = Explanation(
            reason=Reason.GPU_BUSY,
            requested=asked,
            free=free,
            capacity=capacity,
            unit=unit,
        )
        assert sentence(why) == f"All suitable devices are taken: {told}."


def test_a_text_from_outside_is_told_as_it_is() -> None:
    """Braces and brackets in a name are no placeholders."""
    odd = Explanation(reason=Reason.PROFILE_UNKNOWN, subject="{free} [x]")
    assert sentence(odd) == "There is no profile called {free} [x]."


def holder(name: str | None, **fields: object) -> Holder:
    """Return somebody who holds what is waited for."""
    return Holder.model_validate({"workload": "w", "owner": name} | fields)


def test_the_holder_is_told_with_the_end() -> None:
    """Who has it, and until when at the latest; a time of today needs no date."""
    busy = Explanation(
        reason=Reason.METAL_BUSY,
        machine="mac",
        holders=(
            holder("ada", title="eda", ends_by=NOON.replace(hour=14, minute=12)),
            holder(None),
        ),
    )
    assert sentence(busy, now=NOON).endswith(
        "; held by ada (eda) until 14:12 UTC at the latest, "
        "somebody else with no known end."
    )
    assert "until 2026-06-01 14:12 UTC" in sentence(busy)
    assert "until 2026-06-01 14:12 UTC" in sentence(busy, now=NOON.replace(day=2))


def test_who_waits_for_a_server_of_their_own_is_told_so() -> None:
    """Somebody else who reads it is told the name."""
    busy = Explanation(
        reason=Reason.CPU_BUSY, holders=(holder("ada", own=True), holder("bob"))
    )
    assert "held by you with no known end, bob" in sentence(busy)
    with speaking(of_another=True):
        assert "held by ada with no known end, bob" in sentence(busy)


def test_many_holders_are_counted() -> None:
    """Three are told; the rest is a number."""
    busy = Explanation(
        reason=Reason.CPU_BUSY, holders=tuple(holder(f"user{n}") for n in range(5))
    )
    told = sentence(busy)
    assert "user2" in told
    assert "user3" not in told
    assert told.endswith("and 2 more.")


def test_details_are_told_in_parentheses() -> None:
    """What the code cannot say is added, not mixed in."""
    offline = Explanation(reason=Reason.OFFLINE, machine="box", detail="since 09:00")
    assert sentence(offline) == "On box, it is not connected (since 09:00)."


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_headline(state: State) -> None:
    """Whatever is known, one plain text says what is going on."""
    texts = {
        headline(state),
        headline(state, machine="box", position=2, parked=True),
        headline(state, explanation=Explanation(reason=Reason.SERVER_EXITED)),
    }
    for text in texts:
        assert re.fullmatch(r"[A-Z0-9a-z].*\.", text), text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"position": 2}, "2 ahead of you. Waiting in line."),
        ({"position": 0}, "You are next. Waiting in line."),
        ({"parked": True}, "Waiting in line. Your place is kept."),
        (
            {"position": 1, "explanation": Explanation(reason=Reason.NO_MACHINES)},
            "1 ahead of you. The fleet has no machines yet.",
        ),
    ],
)
def test_a_waiting_workload_is_told_its_place_and_why(
    arguments: dict[str, object], expected: str
) -> None:
    """The place first, then the reason, then whether the page may be closed."""
    assert headline(State.QUEUED, **arguments) == expected  # type: ignore[arg-type] - table


@pytest.mark.parametrize(
    ("state", "arguments", "expected"),
    [
        (State.READY, {"machine": "box"}, "Ready on box."),
        (State.PREPARING, {}, "Preparing the environment."),
        (
            State.REFUSED,
            {"explanation": Explanation(reason=Reason.PROFILE_REQUIRED)},
            "This cannot run as asked: no profile was named.",
        ),
        (
            State.UNKNOWN,
            {"machine": "box"},
            "box does not answer; what runs there is kept.",
        ),
        (State.STOPPED, {}, "Stopped."),
    ],
)
def test_a_headline_names_the_machine_and_the_reason(
    state: State, arguments: dict[str, object], expected: str
) -> None:
    """The sentence is about now, not about the past."""
    assert headline(state, **arguments) == expected  # type: ignore[arg-type] - table


def test_a_holder_is_told_with_how_it_rests_and_whether_it_was_asked() -> None:
    """When its idle limit ends it is told as what would be, and not as its end."""
    rests = Holder(workload="w", owner="ada", idle_since=NOON)
    idle = rests.model_copy(update={"idle_ends": NOON.replace(hour=14)})
    asked = idle.model_copy(update={"asked_at": NOON.replace(minute=7)})
    plain = "ada with no known end"
    assert holder_words(rests, NOON) == f"{plain} (GPU at rest since 12:00 UTC)"
    whole = f"{plain} (idle since 12:00 UTC, ends at 14:00 UTC if still idle)"
    assert holder_words(idle, NOON) == whole
    assert holder_words(asked, NOON) == f"{whole}, asked for it at 12:07 UTC"
    likely = LikelyEnd(early=NOON, late=NOON.replace(hour=14), samples=34)
    done = f"{whole} (likely done by 14:00 UTC, from 34 earlier ones)"
    tells = idle.model_copy(update={"likely_end": likely})
    assert holder_words(tells, NOON) == done
    both = asked.model_copy(update={"likely_end": likely})
    assert holder_words(both, NOON) == f"{done}, asked for it at 12:07 UTC"
