"""Whoever waits asks a holder for what they hold: a word that stops nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fleet_builders import a_principal
from fleet_controller import Fleet, allocation_of
from held_gpu import a_held_gpu, an_open_box, rests
from scheduling_builders import (
    BOTH_DRIVERS,
    NOON,
    OPEN,
    a_catalog,
    a_gpu_box,
    a_gpu_hold,
    a_gpu_request,
    a_planner,
)

from fleet_contracts.catalog import Quota
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Holder, Reason
from fleet_contracts.sentences import sentence
from fleet_contracts.timeline import TimelineEvent, TimelineKind
from fleet_hub.adapters.codec import WORKLOADS
from fleet_hub.controller import releasing, stopping
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.errors import RequestRefusedError, StoreWriteError
from fleet_hub.controller.ports import Change
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.controller.timelines import etag_of, timeline_of
from fleet_hub.scheduling.holders import MOST_ASKERS
from fleet_hub.scheduling.releasing import held_up_by


def waits(fleet: Fleet, name: str = "bob", user_id: int = 2, **more: str) -> Workload:
    """Let somebody ask for the GPU that is taken."""
    principal = a_principal(name, user_id)
    wanted = {"profile": "lab", "class_name": "gpu"} | more
    record = fleet.ask(1, principal=principal, attempt=f"of-{name}", **wanted)
    assert record.assignment is None
    return record


def holder_of(fleet: Fleet) -> Workload:
    """Return the one that holds something."""
    [record] = [one for one in fleet.core.model.workloads.values() if one.holds]
    return record


def told(fleet: Fleet, record: Workload) -> Holder:
    """Return the holder that a waiting workload is told of."""
    explanation = timeline_of(fleet.core, fleet.get(record)).explanation
    assert explanation is not None
    [holder] = explanation.holders
    return holder


def ask(fleet: Fleet, record: Workload, handle: str | None = None) -> None:
    """Ask the holder, and let the controller decide."""
    handle = handle or told(fleet, record).handle
    assert handle is not None
    by = Actor(name=record.principal.name, role=ActorRole.USER)
    releasing.ask(fleet.core, fleet.get(record), handle, by=by)
    fleet.cycle()


def notes(fleet: Fleet, record: Workload) -> list[TimelineEvent]:
    """Return what the timeline has noted."""
    events = fleet.store.events(record.id)
    return [event for event in events if event.kind is TimelineKind.NOTE]


def refused(fleet: Fleet, record: Workload, handle: str) -> str:
    """Return why it may not be asked."""
    with pytest.raises(RequestRefusedError) as caught:
        ask(fleet, record, handle)
    assert caught.value.explanation.reason is Reason.INVALID_REQUEST
    return caught.value.explanation.detail or ""


def test_a_gpu_notebook_idle_for_three_hours_is_shown_idle_and_can_be_asked_for() -> (
    None
):
    """The holder reads who waits and since when; the asker reads that it was asked."""
    fleet = a_held_gpu()
    began = fleet.clock.now()
    rests(fleet, 0, minutes=180)
    bob = waits(fleet)
    assert told(fleet, bob).idle_since == began
    ask(fleet, bob)

    [wished] = notes(fleet, holder_of(fleet))
    assert wished.at == fleet.clock.now()
    assert wished.actor == "user"
    assert wished.explanation is not None
    assert sentence(wished.explanation) == (
        "Somebody, bob, waits for what this server holds, and asks for it."
    )
    [asked] = notes(fleet, bob)
    assert asked.explanation is not None
    assert asked.explanation.reason is Reason.RELEASE_ASKED
    assert [one.owner for one in asked.explanation.holders] == ["alice"]
    holder = told(fleet, bob)
    assert (holder.handle, holder.asked_at) == (None, fleet.clock.now())
    assert "asked for it at" in timeline_of(fleet.core, fleet.get(bob)).headline


def test_a_holder_that_is_at_work_can_be_asked_as_well() -> None:
    """Nobody but the holder knows whether they still need it."""
    fleet = a_held_gpu()
    rests(fleet, 97, minutes=15)
    bob = waits(fleet)
    assert told(fleet, bob).idle_since is None
    ask(fleet, bob)
    assert len(notes(fleet, holder_of(fleet))) == 1


def test_asking_changes_no_hold_no_place_and_no_promise() -> None:
    """What the holder has and when it ends is the same, and nobody is told to stop."""
    fleet = a_held_gpu()
    bob, carol = waits(fleet), waits(fleet, "carol", 3)

    def state() -> list[object]:
        holder = holder_of(fleet)
        assert holder.assignment is not None
        held = replace(holder.assignment, asked=())
        line = fleet.core.model.waits
        return [
            *(held, holder.state, holder.stop),
            *((line[one.id].position, fleet.get(one).promise) for one in (bob, carol)),
        ]

    before = state()
    ask(fleet, carol)
    assert state() == before
    assert fleet.agents["box"].stops() == []
    assert fleet.core.engine.sweep(fleet.clock.now(), most=10) == 0


def test_each_asks_once_and_a_repetition_changes_nothing() -> None:
    """With another of their servers too; somebody else may ask as well."""
    fleet = a_held_gpu()
    bob = waits(fleet)
    handle = told(fleet, bob).handle
    assert handle is not None
    ask(fleet, bob)
    first = told(fleet, bob).asked_at
    fleet.clock.advance(60)
    ask(fleet, bob, handle)
    other = fleet.ask(
        2, principal=a_principal("bob", 2), profile="lab", class_name="gpu"
    )
    assert told(fleet, other).asked_at == first
    ask(fleet, other, handle)
    assert len(notes(fleet, holder_of(fleet))) == 1
    assert len(notes(fleet, other)) == 0
    ask(fleet, waits(fleet, "carol", 3))
    assert len(notes(fleet, holder_of(fleet))) == 2


def test_a_holder_is_asked_by_a_few_and_not_by_a_crowd() -> None:
    """Whoever comes later is offered nothing, and told why if they ask all the same."""
    fleet = a_held_gpu()
    crowd = [waits(fleet, f"user-{number}", 10 + number) for number in range(6)]
    handle = told(fleet, crowd[0]).handle
    assert handle is not None
    for one in crowd[:MOST_ASKERS]:
        ask(fleet, one)
    assert told(fleet, crowd[-1]).handle is None
    assert "Enough others" in refused(fleet, crowd[-1], handle)
    assert len(notes(fleet, holder_of(fleet))) == MOST_ASKERS


def test_only_who_waits_for_what_is_held_may_ask() -> None:
    """Not who has what they asked for, not by a guess, and not who left the line."""
    fleet = a_held_gpu()
    bob = waits(fleet)
    handle = told(fleet, bob).handle
    assert handle is not None
    cores = fleet.ask(
        2, principal=a_principal("carol", 3), profile="lab", class_name="cpu"
    )
    assert cores.assignment is not None, "there are cores enough"
    assert "does not wait" in refused(fleet, cores, handle)
    assert "look again" in refused(fleet, bob, "0" * 24)
    stopping.leave(fleet.core, fleet.get(bob))
    assert "does not wait" in refused(fleet, bob, handle)
    held = [one for one in fleet.core.model.workloads.values() if one.holds]
    assert [notes(fleet, one) for one in held] == [[], []]


def test_of_several_holders_one_is_asked() -> None:
    """The others read nothing of it."""
    fleet = an_open_box(gpus=2)
    alice = fleet.ask(profile="lab", class_name="gpu")
    dave = fleet.ask(
        1, principal=a_principal("dave", 4), profile="lab", class_name="gpu"
    )
    bob = waits(fleet)
    explanation = timeline_of(fleet.core, fleet.get(bob)).explanation
    assert explanation is not None
    handles = {one.owner: one.handle for one in explanation.holders}
    assert handles.keys() == {"alice", "dave"}
    handle = handles["dave"]
    assert handle is not None
    ask(fleet, bob, handle)
    assert len(notes(fleet, dave)) == 1
    assert notes(fleet, alice) == []


def test_ones_own_server_is_nobody_to_ask() -> None:
    """Its user stops it themselves."""
    fleet = a_held_gpu()
    second = fleet.ask(2, profile="lab", class_name="gpu")
    holder = told(fleet, second)
    assert (holder.own, holder.handle) == (True, None)
    bob = waits(fleet)
    handle = told(fleet, bob).handle
    assert handle is not None
    assert "look again" in refused(fleet, second, handle)


def test_a_quota_is_asked_of_those_who_use_it_up() -> None:
    """Not of who holds a GPU beside: their end would not help."""
    quota = Quota(group="bio", devices=1)
    fleet = an_open_box(a_catalog(quotas=(quota,)), gpus=2)
    names = {"alice": 1, "bob": 2}
    members = {
        name: a_principal(name, at, groups=("bio",)) for name, at in names.items()
    }
    alice = fleet.ask(1, principal=members["alice"], profile="lab", class_name="gpu")
    dave = fleet.ask(
        1, principal=a_principal("dave", 4), profile="lab", class_name="gpu"
    )
    bob = fleet.ask(1, principal=members["bob"], profile="lab", class_name="gpu")
    carol = waits(fleet, "carol", 3)
    assert told(fleet, bob).owner == "alice"
    explanation = timeline_of(fleet.core, fleet.get(carol)).explanation
    assert explanation is not None
    handles = {one.owner: one.handle for one in explanation.holders}
    assert "look again" in refused(fleet, bob, handles["dave"] or "")
    ask(fleet, bob)
    assert (len(notes(fleet, alice)), notes(fleet, dave)) == (1, [])
    assert told(fleet, bob).asked_at is not None


def test_hidden_names_stay_hidden_on_both_sides() -> None:
    """A handle says nothing, not even which workload it is; the log knows who asked."""
    fleet = a_held_gpu(settings=Settings(names_visible=False))
    bob, alice = waits(fleet), holder_of(fleet)
    holder = told(fleet, bob)
    assert holder.handle not in {alice.id, allocation_of(alice)}
    shown = timeline_of(fleet.core, fleet.get(bob)).model_dump_json()
    ask(fleet, bob)
    shown += timeline_of(fleet.core, fleet.get(bob)).model_dump_json()
    for secret in ("alice", alice.id, allocation_of(alice)):
        assert secret not in shown
    seen = timeline_of(fleet.core, fleet.get(alice)).model_dump_json()
    assert "release_wished" in seen
    for secret in ("bob", bob.id):
        assert secret not in seen
    [entry] = [
        one.entry
        for one in fleet.store.audit()
        if one.entry.action is Action.RELEASE_ASKED
    ]
    assert (entry.actor, entry.target, entry.detail) == ("bob", bob.id, "alice/")


def test_an_ask_outlives_a_restart_and_ends_with_what_is_held() -> None:
    """The next launch of the same server was asked by nobody, and has another handle."""
    fleet = a_held_gpu()
    bob = waits(fleet)
    handle = told(fleet, bob).handle
    assert handle is not None
    ask(fleet, bob)
    alice = holder_of(fleet)
    fleet = fleet.restarted()
    assert holder_of(fleet).assignment == alice.assignment
    ask(fleet, bob, handle)
    assert len(notes(fleet, alice)) == 1

    agent = fleet.agents["box"]
    agent.connect()
    assert fleet.get(alice).assignment is not None
    fleet.core.model.presence["box"].facts = (
        a_held_gpu().core.model.presence["box"].facts
    )
    agent.report(allocation_of(alice), AgentEvent.FAILED)
    fleet.cycle()
    carol = waits(fleet, "carol", 3)
    assert "look again" in refused(fleet, carol, handle)
    assert told(fleet, carol).handle not in {None, handle}


def test_what_ends_already_is_not_asked_to() -> None:
    """Who pressed a moment too late is told to look again."""
    fleet = a_held_gpu()
    bob = waits(fleet)
    handle = told(fleet, bob).handle
    assert handle is not None
    fleet.agents["box"].serve(allocation_of(holder_of(fleet)))
    stopping.stop(fleet.core, holder_of(fleet))
    fleet.cycle()
    assert told(fleet, bob).handle is None
    assert "look again" in refused(fleet, bob, handle)


def test_an_ask_that_cannot_be_written_was_not_made() -> None:
    """Neither side reads of it, and it can be made again."""
    fleet = a_held_gpu()
    bob = waits(fleet)
    commit = fleet.store.commit

    def fails(change: Change) -> None:
        raise StoreWriteError("the disk is full")

    fleet.store.commit = fails  # type: ignore[method-assign]
    with pytest.raises(StoreWriteError):
        ask(fleet, bob)
    fleet.store.commit = commit  # type: ignore[method-assign]
    assert (notes(fleet, bob), notes(fleet, holder_of(fleet))) == ([], [])
    ask(fleet, bob)
    assert len(notes(fleet, holder_of(fleet))) == 1


def test_a_record_from_before_asks_is_read() -> None:
    """A store that an earlier version wrote is still the truth."""
    fleet = a_held_gpu()
    text = WORKLOADS.encode(holder_of(fleet))
    assert '"asked":[]' in text
    assert WORKLOADS.decode(text.replace(',"asked":[]', "")) == holder_of(fleet)


def test_who_waits_is_told_anew_once_a_holder_rests() -> None:
    """A page that is open shows it: the answer of a moment ago is not the truth any more."""
    fleet = a_held_gpu()
    bob = waits(fleet)
    before = etag_of(timeline_of(fleet.core, fleet.get(bob)))
    rests(fleet, 0, minutes=11)
    for _ in range(2):
        timeline = timeline_of(fleet.core, fleet.get(bob))
        assert told(fleet, bob).idle_since is not None
        assert "GPU at rest since" in timeline.headline
    assert etag_of(timeline) != before


def test_what_is_held_where_the_machine_is_gone_helps_nobody() -> None:
    """A machine that was taken out of the fleet gives no place, whoever ends there."""
    hold = replace(a_gpu_hold("box"), handle="bob-holds")
    planner = a_planner(
        a_gpu_box("box", gpus=1, sharing=OPEN, drivers=BOTH_DRIVERS, held=(hold,)),
        waiting=(a_gpu_request("next"),),
    )
    planner.decide(NOON)
    waiter = planner.waiters["next"]
    found = held_up_by(planner, waiter, "box", "bob-holds")
    assert found is not None
    assert found.handle == "bob-holds"
    planner.remove_machine("box")
    assert held_up_by(planner, waiter, "box", "bob-holds") is None
