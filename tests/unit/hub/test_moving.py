"""An admin's word on who comes next: before every priority, and told to the others."""

from __future__ import annotations

import pytest
from fleet_controller import Fleet, a_catalog

from fleet_contracts.catalog import Profile
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason
from fleet_hub.controller import moving, stopping
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.moving import Place
from fleet_hub.controller.records import Workload
from fleet_hub.scheduling.decisions import Rule


ROOT = Actor(name="root", role=ActorRole.ADMIN, why="a course begins")
PROFILES = tuple(
    Profile(
        name=name,
        title=name,
        classes=("small", "whole"),
        runtimes=("python",),
        priority=priority,
    )
    for name, priority in (("jupyter", 0), ("urgent", 1_000_000))
)


def a_fleet() -> tuple[Fleet, Workload, list[Workload]]:
    """Return a full machine's holder, and three who wait for it: the last is urgent."""
    fleet = Fleet(catalog=a_catalog(profiles=PROFILES))
    fleet.machine()
    holder = fleet.ask(1, class_name="whole")
    waiting = [
        fleet.ask(number, class_name="whole", profile=profile)
        for number, profile in ((2, "jupyter"), (3, "jupyter"), (4, "urgent"))
    ]
    return fleet, holder, waiting


def move(fleet: Fleet, record: Workload, place: Place) -> None:
    """Do it, and let the controller decide."""
    moving.move(fleet.core, fleet.get(record), place, by=ROOT)
    fleet.cycle()


def ahead(fleet: Fleet, waiting: list[Workload]) -> list[int]:
    """Return how many are ahead of each."""
    return [fleet.core.model.waits[record.id].position for record in waiting]


def test_first_comes_before_every_priority_and_last_behind_all() -> None:
    """Each again before whoever was put there earlier; the usual place comes back."""
    fleet, _, waiting = a_fleet()
    one, two, urgent = waiting
    assert ahead(fleet, waiting) == [1, 2, 0]
    move(fleet, two, Place.FIRST)
    assert ahead(fleet, waiting) == [2, 0, 1]
    move(fleet, one, Place.FIRST)
    assert ahead(fleet, waiting) == [0, 1, 2]
    move(fleet, two, Place.USUAL)
    assert ahead(fleet, waiting) == [0, 2, 1]
    move(fleet, urgent, Place.LAST)
    move(fleet, one, Place.LAST)
    assert ahead(fleet, waiting) == [2, 0, 1]


def test_it_is_told_logged_and_kept_beyond_a_restart() -> None:
    """With the reason in the log, and without it in the timeline."""
    fleet, _, (_, two, _) = a_fleet()
    move(fleet, two, Place.FIRST)
    told = fleet.store.events(two.id)
    assert [
        event.actor
        for event in told
        if event.explanation and event.explanation.reason is Reason.PLACE_MOVED
    ] == ["admin"]
    (entry,) = fleet.store.audit(target=two.id)
    assert entry.entry.action is Action.MOVED_IN_LINE
    assert (entry.entry.detail, entry.entry.why) == (
        "first: alice/server-3",
        "a course begins",
    )
    again = fleet.restarted()
    again.agents["box"].connect()
    again.cycle()
    assert again.core.model.waits[two.id].position == 0


def test_the_next_turn_is_its_own_and_the_list_says_by_whom() -> None:
    """Nothing that runs was ended for it; the next start is an ordinary one."""
    fleet, holder, (_, two, _) = a_fleet()
    move(fleet, two, Place.FIRST)
    assert fleet.get(two).assignment is None
    stopping.stop(fleet.core, fleet.get(holder))
    (stop,) = fleet.agents["box"].stops()
    fleet.agents["box"].report(stop.allocation, AgentEvent.ENDED)
    fleet.cycle()
    started = fleet.get(two)
    assert started.assignment is not None
    assert started.decided is not None
    assert started.decided.rule is Rule.MOVED


def test_who_does_not_wait_is_not_moved() -> None:
    """It has its turn already, or it left."""
    fleet, holder, (one, *_) = a_fleet()
    stopping.leave(fleet.core, fleet.get(one))
    for record in (holder, one):
        with pytest.raises(RequestRefusedError):
            move(fleet, record, Place.FIRST)
    assert fleet.store.audit(target=holder.id) == ()


def test_the_next_start_begins_at_the_usual_place() -> None:
    """What an admin said was said of one start."""
    fleet, _, (one, *_) = a_fleet()
    move(fleet, one, Place.FIRST)
    stopping.leave(fleet.core, fleet.get(one))
    anew = fleet.ask(2, class_name="whole", attempt="second")
    assert anew.generation > one.generation
    assert anew.moved == 0
