"""What every store promises: run against the durable one and the one in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fleet_builders import (
    a_code,
    a_machine_record,
    a_record,
    an_entry,
    an_event,
    an_issued,
    some_secrets,
)

from fleet_contracts.timeline import Progress, TimelineKind
from fleet_hub.adapters.memory_store import MemoryStore
from fleet_hub.adapters.sqlite_store import SqliteStore
from fleet_hub.controller.errors import StoreWriteError
from fleet_hub.controller.ports import EVENTS_KEPT, Change, Store
from fleet_hub.controller.spans import Held, Span
from fleet_hub.scheduling.snapshot import Usage


Reopen = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reopen]:
    """Return a function that opens the store as the next process would."""
    opened: list[MemoryStore | SqliteStore] = []

    def open_again() -> Store:
        for store in opened:
            store.close()
        if request.param == "sqlite":
            opened.append(SqliteStore.open(tmp_path / "store.sqlite"))
        else:
            last = opened[-1] if opened else None
            opened.append(
                last.reopened() if isinstance(last, MemoryStore) else MemoryStore()
            )
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


def test_what_was_committed_is_there_for_the_next_process(reopen: Reopen) -> None:
    """Records, events and secrets all survive."""
    record, machine, issued = a_record(), a_machine_record(), an_issued()
    reopen().commit(
        Change(
            workloads={record.id: record},
            machines={machine.name: machine},
            issued={issued.allocation: issued},
            secrets={record.id: some_secrets()},
            events=[(record.id, an_event())],
        )
    )
    store = reopen()
    contents = store.load()
    assert contents.workloads == (record,)
    assert contents.machines == (machine,)
    assert contents.issued == (issued,)
    assert store.secrets(record.id) == some_secrets()
    assert store.events(record.id) == (an_event(),)


def test_every_opening_has_a_higher_generation(reopen: Reopen) -> None:
    """So an epoch of an earlier process can never come again."""
    generations = [reopen().load().generation for _ in range(3)]
    assert generations == sorted(set(generations))


def test_a_raised_generation_is_kept(reopen: Reopen) -> None:
    """A store that was restored from a backup can be lifted above its past."""
    reopen().commit(Change(generation=40))
    assert reopen().load().generation == 41


def test_scrubbed_secrets_are_gone(reopen: Reopen) -> None:
    """None takes the secrets away and leaves the workload."""
    store = reopen()
    store.commit(Change(workloads={"w1": a_record()}, secrets={"w1": some_secrets()}))
    store.commit(Change(secrets={"w1": None}))
    assert store.secrets("w1") is None
    assert reopen().secrets("w1") is None


def test_a_removed_workload_leaves_nothing_behind(reopen: Reopen) -> None:
    """Its events and secrets go with it, and its server may be asked for anew."""
    store = reopen()
    store.commit(
        Change(
            workloads={"w1": a_record()},
            secrets={"w1": some_secrets()},
            events=[("w1", an_event())],
        )
    )
    again = a_record("w2")
    store.commit(Change(removed={"w1"}, workloads={"w2": again}))
    assert store.events("w1") == ()
    assert store.secrets("w1") is None
    assert reopen().load().workloads == (again,)


def test_events_are_read_after_a_number(reopen: Reopen) -> None:
    """A reader that knows up to a number gets the rest, in order."""
    store = reopen()
    store.commit(Change(events=[("w1", an_event(seq)) for seq in (1, 2, 3)]))
    assert [event.seq for event in store.events("w1", after=1)] == [2, 3]


def test_a_step_keeps_its_latest_progress_only(reopen: Reopen) -> None:
    """Thousands of progress reports are one row per step and generation."""
    store = reopen()
    for seq in range(1, 6):
        progress = Progress(step="install_packages", done=seq, total=5)
        event = an_event(seq, kind=TimelineKind.PROGRESS, progress=progress)
        store.commit(Change(events=[("w1", event)]))
    other = Progress(step="verify_environment")
    store.commit(Change(events=[("w1", an_event(6, progress=other))]))
    assert [event.seq for event in store.events("w1")] == [5, 6]


def test_the_timeline_is_bounded(reopen: Reopen) -> None:
    """Only the newest entries are kept."""
    store = reopen()
    store.commit(
        Change(events=[("w1", an_event(seq)) for seq in range(1, EVENTS_KEPT + 11)])
    )
    kept = store.events("w1")
    assert len(kept) == EVENTS_KEPT
    assert kept[0].seq == 11


@pytest.mark.parametrize(
    "change",
    [
        Change(workloads={"w2": a_record("w2")}),
        Change(issued={"a2": an_issued("a2", epoch=1, workload="w9")}),
        Change(issued={"a2": an_issued("a2", epoch=2)}),
        Change(events=[("w1", an_event(1))]),
    ],
    ids=["second workload", "used epoch", "second allocation", "used number"],
)
def test_a_change_that_breaks_a_promise_is_refused_whole(
    reopen: Reopen, change: Change
) -> None:
    """Nothing of it is written, the innocent part neither."""
    store = reopen()
    store.commit(
        Change(
            workloads={"w1": a_record()},
            issued={"a1": an_issued()},
            events=[("w1", an_event())],
        )
    )
    change.machines["box"] = a_machine_record()
    with pytest.raises(StoreWriteError):
        store.commit(change)
    after = reopen().load()
    assert after.machines == ()
    assert after.workloads == (a_record(),)
    assert after.issued == (an_issued(),)


def test_a_refused_change_leaves_the_store_ready_for_the_next_one(
    reopen: Reopen,
) -> None:
    """Nothing of it comes back with what is written after it."""
    store = reopen()
    store.commit(Change(workloads={"w1": a_record()}, events=[("w1", an_event())]))
    innocent = a_machine_record("innocent")
    with pytest.raises(StoreWriteError):
        store.commit(
            Change(machines={"innocent": innocent}, events=[("w1", an_event())])
        )
    store.commit(Change(machines={"box": a_machine_record()}))
    assert reopen().load().machines == (a_machine_record(),)


def test_what_users_have_used_is_there_for_the_next_process(reopen: Reopen) -> None:
    """Each by the Hub's id, and the latest of what was written."""
    store = reopen()
    store.commit(Change(usage={1: Usage(amount=5.0, as_of=10.0)}))
    store.commit(
        Change(
            usage={
                1: Usage(amount=7.5, as_of=20.0),
                2: Usage(amount=0.25, as_of=15.0),
            }
        )
    )
    assert dict(reopen().load().usage) == {
        1: Usage(amount=7.5, as_of=20.0),
        2: Usage(amount=0.25, as_of=15.0),
    }


def test_one_allocation_may_end_as_the_next_begins(reopen: Reopen) -> None:
    """Both in one change, in whichever order they are named."""
    store = reopen()
    store.commit(Change(issued={"a1": an_issued()}))
    store.commit(
        Change(
            issued={
                "a2": an_issued("a2", epoch=2),
                "a1": an_issued(open=False),
            }
        )
    )
    assert [item.open for item in reopen().load().issued] == [False, True]


def test_a_forgotten_allocation_is_gone(reopen: Reopen) -> None:
    """Once the machine has forgotten it, nobody need remember it."""
    store = reopen()
    store.commit(Change(issued={"a1": an_issued(open=False)}))
    store.commit(Change(issued={"a1": None}))
    assert reopen().load().issued == ()


def test_a_code_is_there_until_it_is_used(reopen: Reopen) -> None:
    """It outlives a restart, and is gone for every process once it was used."""
    code = a_code()
    reopen().commit(Change(codes={code.code_hash: code}))
    store = reopen()
    assert store.load().codes == (code,)
    store.commit(Change(codes={code.code_hash: None}))
    assert reopen().load().codes == ()


def test_the_audit_log_is_read_from_its_newest_entry_backwards(reopen: Reopen) -> None:
    """Page by page, of everything or of one target, after a restart as well."""
    entries = [an_entry(target=name) for name in ("box", "other", "box")]
    store = reopen()
    store.commit(Change(audit=entries[:2]))
    store.commit(Change(audit=entries[2:]))
    store = reopen()
    assert [item.seq for item in store.audit()] == [3, 2, 1]
    assert [item.entry for item in store.audit(target="box")] == [
        entries[2],
        entries[0],
    ]
    assert [item.seq for item in store.audit(before=3, limit=1)] == [2]
    assert store.audit(before=1) == ()


def test_a_refused_change_leaves_no_entry(reopen: Reopen) -> None:
    """The log tells of what happened, never of what was tried in vain."""
    store = reopen()
    store.commit(Change(workloads={"w1": a_record()}))
    with pytest.raises(StoreWriteError):
        store.commit(Change(workloads={"w2": a_record("w2")}, audit=[an_entry()]))
    assert store.audit() == ()


def a_span(allocation: str = "a1", **changes: Any) -> Span:
    """Return alice's allocation of a core, held from 10 to 30."""
    held = Held(
        user_id=1, user="alice", class_name="c", devices=0, cpu_milli=1, memory_bytes=1
    )
    values = {"held": held, "profile": "p", "machine": "m", "began": 10, "ended": 30}
    return Span(allocation=allocation, **(values | changes))


def test_what_was_held_adds_up_within_any_period(reopen: Reopen) -> None:
    """In a later process as well; what only touches the period is not of it."""
    other = replace(a_span().held, user="bob")
    spans = [a_span("a1"), a_span("a2", began=20, ended=20), a_span("a3", held=other)]
    reopen().commit(Change(spans=spans))
    store = reopen()
    for period, expected in (
        ((0, 100), [("alice", 2, 20), ("bob", 1, 20)]),
        ((20, 25), [("alice", 2, 5), ("bob", 1, 5)]),
        ((21, 25), [("alice", 1, 4), ("bob", 1, 4)]),
        ((30, 40), []),
        ((0, 10), []),
    ):
        found = store.totals(*period)
        assert [
            (one.held.user, one.allocations, one.microseconds) for one in found
        ] == expected


def test_what_was_held_follows_a_user_to_another_name(reopen: Reopen) -> None:
    """Nobody else's does, of the same id or of the same name, nor what comes later."""
    other_id = replace(a_span().held, user_id=9)
    other_name = replace(a_span().held, user="bob")
    spans = [a_span("a1"), a_span("a2", held=other_id), a_span("a3", held=other_name)]
    reopen().commit(Change(spans=spans))
    renamed = {(a_span().held.user_id, a_span().held.user): "ada"}
    reopen().commit(Change(renamed=renamed, spans=[a_span("a4")]))
    found = {(one.held.user_id, one.held.user) for one in reopen().totals(0, 100)}
    assert found == {
        (1, "ada"),
        (1, "alice"),
        (1, "bob"),
        (9, "alice"),
    }


def test_an_allocation_is_accounted_once(reopen: Reopen) -> None:
    """A second release of it is refused, with everything in the same change."""
    store = reopen()
    store.commit(Change(spans=[a_span()]))
    with pytest.raises(StoreWriteError):
        store.commit(Change(spans=[a_span()], workloads={"w1": a_record()}))
    assert reopen().load().workloads == ()
