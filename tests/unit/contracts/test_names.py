"""An explanation without other people's names still says all the rest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fleet_contracts.names import without_names
from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_contracts.sentences import sentence


NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)
BOBS = Holder(
    workload="w1", owner="bob", title="lab", amount=2, since=NOON, ends_by=NOON
)
MINE = Holder(workload="w2", owner="alice", title="lab", own=True, amount=1)
BUSY = Explanation(
    reason=Reason.GPU_BUSY, machine="box", requested=1, free=0, holders=(BOBS, MINE)
)


def test_others_are_named_no_more_and_the_reader_still_is() -> None:
    """Amounts, times and whatever else the sentence needs stay."""
    told = without_names(BUSY)
    assert told.holders == (
        BOBS.model_copy(update={"owner": None, "title": None}),
        MINE,
    )
    assert told.model_copy(update={"holders": BUSY.holders}) == BUSY
    assert "bob" not in sentence(told)
    assert "bob" in sentence(BUSY)


@pytest.mark.parametrize("reason", [Reason.OWNER_FORBIDS, Reason.RELEASE_WISHED])
def test_whom_a_code_is_about_is_named_no_more(reason: Reason) -> None:
    """A machine's owner, or who asks for something; subjects of others are no names."""
    about = Explanation(reason=reason, machine="box", subject="carol")
    assert "carol" in sentence(about)
    assert without_names(about).subject is None
    assert "carol" not in sentence(without_names(about))
    quota = Explanation(reason=Reason.QUOTA_IN_USE, subject="bio")
    assert without_names(quota) is quota


def test_what_names_nobody_is_left_as_it_is() -> None:
    """It may be asked for each time that something is read."""
    once = without_names(BUSY)
    assert without_names(once) is once
    forbids = Explanation(reason=Reason.OWNER_FORBIDS, machine="box")
    assert without_names(forbids) is forbids
