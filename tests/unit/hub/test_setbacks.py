"""How many starts that go wrong set a machine aside, and for how long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from fleet_builders import NOON

from fleet_contracts.reasons import Reason
from fleet_hub.controller.setbacks import (
    ENOUGH,
    FIRST_REST,
    LONGEST_REST,
    WITHIN,
    Setback,
    Setbacks,
)


SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def a_setback(
    number: int, reason: Reason = Reason.DISK_FULL, **changes: Any
) -> Setback:
    """Return that the start of another user's workload went wrong, a second later."""
    values: dict[str, Any] = {
        "workload": f"w{number}",
        "user_id": number,
        "profile": "jupyter",
        "reason": reason,
        "at": NOON + number * SECOND,
    }
    return Setback(**(values | changes))


def after(*setbacks: Setback, known: Setbacks | None = None) -> Setbacks:
    """Return what is known of a machine after these."""
    found = known or Setbacks()
    for setback in setbacks:
        found = found.after(setback)
    return found


def test_as_many_as_are_enough_set_it_aside_and_one_fewer_does_not() -> None:
    """From the last of them on, for the first rest."""
    several = [a_setback(number) for number in range(ENOUGH)]
    assert after(*several[:-1]).until is None
    found = after(*several)
    assert found.until == several[-1].at + FIRST_REST
    assert found.set_aside_until(several[-1].at) == found.until
    assert found.set_aside_until(several[-1].at + FIRST_REST) is None


@pytest.mark.parametrize(
    "alike",
    [
        {"workload": "w"},
        {"user_id": 1},
        {"reason": Reason.PREPARE_FAILED},
        {"reason": Reason.OUT_OF_MEMORY},
        {"reason": Reason.FOREIGN_PROCESS},
        {"reason": Reason.CPU_BUSY},
        {"reason": Reason.OUTSIDE_HOURS},
        {"reason": Reason.COPY_FAILED},
        {"reason": Reason.ISOLATION_TOO_WEAK},
    ],
    ids=str,
)
def test_what_one_request_user_or_profile_brings_along_says_nothing(
    alike: dict[str, Any],
) -> None:
    """Nor does a refusal for something that passes, or that placement knows itself."""
    assert after(*(a_setback(number, **alike) for number in range(9))).until is None


def test_a_fault_that_may_be_the_profiles_counts_once_a_second_profile_meets_it() -> (
    None
):
    """Three of one profile, and then one of another."""
    reason = Reason.PREPARE_FAILED
    one = after(*(a_setback(number, reason) for number in range(5)))
    assert one.until is None
    assert after(a_setback(6, reason, profile="torch"), known=one).until is not None


def test_starts_that_went_wrong_long_ago_are_not_counted() -> None:
    """Exactly as long ago as is looked at still is."""
    for later, is_bad in ((WITHIN, True), (WITHIN + SECOND, False)):
        found = after(a_setback(0), a_setback(1), a_setback(2, at=NOON + later))
        assert (found.until is not None) is is_bad


def test_it_rests_twice_as_long_each_time_up_to_a_bound() -> None:
    """When it is tried again, one start that goes wrong is enough."""
    found = after(*(a_setback(number) for number in range(ENOUGH)))
    rests = []
    for number in range(10, 19):
        assert found.until is not None
        at = found.until
        found = after(a_setback(number, at=at), known=found)
        assert found.until is not None
        rests.append(found.until - at)
    assert rests[:6] == [
        2 * MINUTE,
        4 * MINUTE,
        8 * MINUTE,
        16 * MINUTE,
        32 * MINUTE,
        60 * MINUTE,
    ]
    assert set(rests[5:]) == {LONGEST_REST}


def test_when_it_is_tried_again_one_fault_of_a_profile_is_not_enough() -> None:
    """The profile may be wrong on a machine that is well again."""
    found = after(*(a_setback(number) for number in range(ENOUGH)))
    assert found.until is not None
    profiles_own = a_setback(9, Reason.PREPARE_FAILED, at=found.until + WITHIN)
    assert after(profiles_own, known=found).until == found.until


def test_after_a_long_time_it_begins_anew() -> None:
    """Somebody who was set aside last week is not treated as set aside just now."""
    found = after(*(a_setback(number) for number in range(ENOUGH)))
    assert found.until is not None
    later = found.until + LONGEST_REST + SECOND
    assert after(a_setback(9, at=later), known=found).until == found.until
    again = [a_setback(number, at=later) for number in range(10, 10 + ENOUGH)]
    assert after(*again, known=found).until == later + FIRST_REST


def test_what_was_under_way_when_it_was_set_aside_adds_nothing() -> None:
    """Else a burst of starts would count as many tries."""
    found = after(*(a_setback(number) for number in range(ENOUGH)))
    assert (
        after(*(a_setback(number) for number in range(ENOUGH, 9)), known=found) == found
    )
