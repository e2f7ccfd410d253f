"""When does something fit beside what is held and promised?  To the second."""

from __future__ import annotations

import pytest

from fleet_contracts.workloads import DriverName
from fleet_hub.scheduling.profile import (
    FOREVER,
    Claim,
    Hold,
    Opening,
    Segment,
    earliest,
    is_kept,
    opening_at,
    segments_of,
)
from fleet_hub.scheduling.vectors import Need, Vector


def cores(count: int) -> Vector:
    """Return so many cores of one machine, and nothing else."""
    return (count, 0, 0, 0)


def need(count: int) -> Need:
    """Return a request for so many cores."""
    fixed = (count, 0, 0, 0)
    return Need(DriverName.NATIVE, fixed, devices=0, types=())


SEGMENTS: list[Segment] = [(0.0, cores(2)), (100.0, cores(1)), (200.0, cores(4))]


@pytest.mark.parametrize(
    ("count", "seconds", "start"),
    [
        (2, 100.0, 0.0),
        (2, 100.5, 200.0),
        (1, FOREVER, 0.0),
        (3, 1.0, 200.0),
        (5, 1.0, None),
    ],
)
def test_the_first_opening_is_as_long_as_it_has_to_be(
    count: int, seconds: float, start: float | None
) -> None:
    """What ends at the very moment when the next one begins is in nobody's way."""
    found = earliest(SEGMENTS, need(count), seconds=seconds, now=0.0)
    assert found == (None if start is None else Opening(start, cores(count)))


def test_an_opening_does_not_begin_before_now() -> None:
    """The segment began earlier; what is asked for begins now, and lasts from now."""
    assert earliest(SEGMENTS, need(2), seconds=60.0, now=40.0) == Opening(
        40.0, cores(2)
    )
    found = earliest(SEGMENTS, need(2), seconds=61.0, now=40.0)
    assert found == Opening(200.0, cores(2))


@pytest.mark.parametrize(
    ("start", "seconds", "fits"),
    [
        (0.0, 100.0, True),
        (0.0, 101.0, False),
        (50.0, 50.0, True),
        (99.0, 2.0, False),
        (100.0, 1.0, False),
        (199.0, 1.0, False),
        (200.0, 1000.0, True),
    ],
)
def test_a_time_that_was_promised_is_looked_at_as_a_whole(
    start: float,
    seconds: float,
    fits: bool,
) -> None:
    """From its first second to its last, and not a second beyond."""
    found = opening_at(SEGMENTS, need(2), start=start, seconds=seconds)
    assert found == (Opening(start, cores(2)) if fits else None)


def test_a_claim_is_kept_where_all_that_it_needs_is_there_for_its_whole_time() -> None:
    """What it does not need may be overdrawn; what is over before now is not asked."""
    assert is_kept(SEGMENTS, Claim(0.0, 100.0, cores(2)), 0.0)
    assert not is_kept(SEGMENTS, Claim(0.0, 101.0, cores(2)), 0.0)
    assert is_kept(SEGMENTS, Claim(150.0, 400.0, cores(1)), 0.0)
    assert not is_kept(SEGMENTS, Claim(150.0, 400.0, cores(2)), 0.0)
    assert is_kept(SEGMENTS, Claim(150.0, 400.0, cores(2)), 210.0)
    overdrawn: list[Segment] = [(0.0, (2, -5, 0, 0))]
    assert is_kept(overdrawn, Claim(0.0, 10.0, (2, 0, 0, 0)), 0.0)
    assert not is_kept(overdrawn, Claim(0.0, 10.0, (2, 1, 0, 0)), 0.0)


def test_free_amounts_follow_ends_and_claims() -> None:
    """A hold frees at its end; a claim takes from its start and gives back at its end."""
    holds = [Hold(100.0, cores(2)), Hold(FOREVER, cores(1)), Hold(-5.0, cores(7))]
    claims = [Claim(50.0, 150.0, cores(1)), Claim(-10.0, 20.0, cores(1))]
    assert segments_of(cores(3), holds, claims, 0.0) == [
        (0.0, cores(2)),
        (20.0, cores(3)),
        (50.0, cores(2)),
        (100.0, cores(4)),
        (150.0, cores(5)),
    ]
    over = [Claim(-10.0, 0.0, cores(1))]
    assert segments_of(cores(3), [], over, 0.0) == [(0.0, cores(3))]


def test_two_changes_at_one_moment_are_one_change() -> None:
    """Nothing is free in between them."""
    holds = [Hold(100.0, cores(1)), Hold(100.0, cores(1))]
    claims = [Claim(100.0, 200.0, cores(2))]
    assert segments_of(cores(0), holds, claims, 0.0) == [
        (0.0, cores(0)),
        (100.0, cores(0)),
        (200.0, cores(2)),
    ]
