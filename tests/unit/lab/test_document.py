"""Only named fields of bounded size reach a browser."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fleet_contracts.allocations import Phase, State
from fleet_contracts.reasons import Explanation, Holder, LikelyEnd, Reason
from fleet_contracts.time_limits import SetBy, TimeLimit, TimeLimits
from fleet_contracts.timeline import (
    LikelyStart,
    Limits,
    Progress,
    Timeline,
    TimelineEvent,
    TimelineKind,
)
from fleet_lab.document import (
    MAX_EVENTS,
    NotUnderstoodError,
    last_seq,
    merge,
    read_timeline,
)


NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def an_event(seq: int, **more: Any) -> dict[str, Any]:
    """Return an event as the controller sends it."""
    return {
        "seq": seq,
        "generation": 1,
        "at": "2026-11-29T10:00:00Z",
        "kind": "asked",
        "state": "queued",
        **more,
    }


def a_timeline(*events: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a timeline as the controller sends it."""
    return {
        "as_of": "2026-11-29T10:00:00.123456Z",
        "workload": "w1",
        "generation": 1,
        "user": "ada",
        "server": "",
        "state": "queued",
        "phase": "waiting",
        "headline": "1 ahead of you",
        "events": list(events),
        **more,
    }


def read(timeline: Any) -> dict[str, Any]:
    """Return what is left of *timeline* after its way through the extension."""
    return read_timeline(json.dumps(timeline).encode())


def test_fields_without_a_name_here_are_dropped() -> None:
    """What the controller might add by mistake goes no further, at any depth."""
    explanation = {"reason": "gpu_busy", "ref": "registry/image", "free": 0}
    timeline = a_timeline(
        an_event(1, explanation=explanation, environment={"TOKEN": "x"}),
        driver_refs={"docker": "registry/image"},
        limits={"memory_bytes": 1, "ref": "registry/image"},
    )

    text = json.dumps(read(timeline))

    assert "registry" not in text
    assert "TOKEN" not in text
    assert read(timeline)["events"][0]["explanation"]["reason"] == "gpu_busy"
    assert read(timeline)["limits"]["memory_bytes"] == 1


def test_whatever_a_timeline_has_arrives() -> None:
    """No field of the contract is dropped on the way, at any depth."""
    holder = Holder(
        workload="w0",
        owner="grace",
        title="GPU large",
        amount=1,
        since=NOON,
        ends_by=NOON,
        idle_since=NOON,
        likely_end=LikelyEnd(early=NOON, late=NOON, samples=34),
    )
    explanation = Explanation(
        reason=Reason.GPU_BUSY,
        machine="gpu-17",
        subject="a100",
        requested=1,
        capacity=8,
        free=0,
        unit="devices",
        position=2,
        holders=(holder,),
        detail="a detail",
    )
    whole = Timeline(
        as_of=NOON,
        workload="w1",
        generation=1,
        user="ada",
        server="",
        profile="gpu",
        profile_title="GPU",
        profile_version="3",
        **{"class": "gpu-large"},
        machine="gpu-17",
        state=State.QUEUED,
        phase=Phase.WAITING,
        position=2,
        parked=True,
        headline="2 ahead of you.",
        explanation=explanation,
        limits=Limits(
            starts_by=NOON,
            likely=LikelyStart(early=NOON, late=NOON, samples=40),
            longer_than_usual=True,
            cpu_milli=1000,
            memory_bytes=1024,
            devices=1,
            metal_reserved=True,
            ends_at=NOON,
            time_limits=TimeLimits(
                limit=TimeLimit(seconds=7200, set_by=SetBy.CLASS),
                idle_limit=TimeLimit(seconds=90.5),
            ),
        ),
        events=(
            TimelineEvent(
                seq=1,
                generation=1,
                at=NOON,
                kind=TimelineKind.PROGRESS,
                state=State.QUEUED,
                machine="gpu-17",
                explanation=explanation,
                progress=Progress(step="install_packages", done=1, total=2),
            ),
        ),
        truncated=True,
    )
    sent = whole.model_dump(mode="json", by_alias=True)

    assert read(sent) == sent


@pytest.mark.parametrize("seconds", [True, "60", -1, float("nan"), 1e300])
def test_a_limit_that_is_no_length_of_time_is_dropped(seconds: Any) -> None:
    """The rest of the limits is still told."""
    limits = {"devices": 1, "time_limits": {"limit": {"seconds": seconds}}}
    kept = read(a_timeline(limits=limits))["limits"]
    assert (kept["devices"], kept["time_limits"]["limit"]) == (1, None)


def test_long_texts_are_cut() -> None:
    """A hostile machine name or headline cannot fill a browser."""
    timeline = read(a_timeline(headline="h" * 10_000, machine="m" * 10_000))

    assert len(timeline["headline"]) == 1000
    assert len(timeline["machine"]) == 255


def test_only_the_last_events_are_kept() -> None:
    """A timeline of thousands of events stays a small document."""
    timeline = read(a_timeline(*(an_event(seq) for seq in range(1, 2000))))

    assert len(timeline["events"]) == MAX_EVENTS
    assert last_seq(timeline) == 1999


def test_an_event_that_is_not_understood_does_not_hide_the_others() -> None:
    """One strange entry is left out."""
    timeline = read(a_timeline(an_event(1), {"seq": "two"}, an_event(3)))

    assert [event["seq"] for event in timeline["events"]] == [1, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "<script>"},
        {"as_of": "yesterday"},
        {"events": {}},
        {"generation": True},
        {"generation": -1},
        {"generation": 2**60},
        {"headline": None},
    ],
    ids=str,
)
def test_a_required_field_of_another_type_spoils_the_answer(
    wrong: dict[str, Any],
) -> None:
    """What every panel relies on is there and right, or nothing is shown."""
    with pytest.raises(NotUnderstoodError):
        read(a_timeline(**wrong))


def test_later_events_are_added_to_the_known_ones() -> None:
    """An answer with the new events only completes what is known, in order."""
    known = read(a_timeline(an_event(1), an_event(2)))
    newer = read(a_timeline(an_event(2), an_event(3), state="ready"))

    merged = merge(known, newer)

    assert [event["seq"] for event in merged["events"]] == [1, 2, 3]
    assert merged["state"] == "ready"


def test_another_workload_starts_anew() -> None:
    """Events of one workload are never shown under another's name."""
    known = read(a_timeline(an_event(1), an_event(2)))

    merged = merge(known, read(a_timeline(an_event(3), workload="w2")))

    assert [event["seq"] for event in merged["events"]] == [3]


def test_merging_says_when_older_events_had_to_go() -> None:
    """The bound holds over many answers, and the panel is told."""
    known = read(a_timeline(*(an_event(seq) for seq in range(1, MAX_EVENTS + 1))))

    merged = merge(known, read(a_timeline(an_event(MAX_EVENTS + 1))))

    assert len(merged["events"]) == MAX_EVENTS
    assert merged["truncated"] is True


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text(max_size=8), children, max_size=4)
    ),
    max_leaves=10,
)
FIELDS = sorted({*a_timeline(), "position", "limits", "explanation", "parked", "class"})


@given(st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_whatever_arrives_is_refused_or_safe(replaced: dict[str, Any]) -> None:
    """No answer raises anything but the one error, or comes through with more fields."""
    try:
        timeline = read(a_timeline(an_event(1)) | replaced)
    except NotUnderstoodError:
        return

    assert set(timeline) == set(read(a_timeline()))
    assert len(json.dumps(timeline)) < 10_000
