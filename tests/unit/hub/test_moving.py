"""An admin's word on who comes next: before every priority, and told to the others."""

from __future__ import annotations

import pytest
from controller_catalogs import a_catalog, ending, through
from fake_agent import some_capabilities
from fleet_builders import a_principal
from fleet_controller import Fleet

from fleet_contracts.catalog import Profile, Relation
from fleet_contracts.language import speaking
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import DriverName
from fleet_hub.controller import governing, moving, stopping
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.moving import Place
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
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


def test_the_latest_word_counts_whatever_the_profiles_say() -> None:
    """Whoever was put first or last earlier keeps no lead by a profile's priority."""
    fleet, _, waiting = a_fleet()
    one, two, urgent = waiting
    move(fleet, urgent, Place.FIRST)
    move(fleet, one, Place.FIRST)
    assert ahead(fleet, waiting) == [0, 2, 1]
    move(fleet, one, Place.LAST)
    move(fleet, urgent, Place.LAST)
    assert ahead(fleet, waiting) == [1, 0, 2]
    move(fleet, two, Place.LAST)
    assert ahead(fleet, waiting) == [0, 2, 1]


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


# ------------------------------------------------------------- who is pushed back


def a_promised_line(**settings: bool) -> tuple[Fleet, Workload, Workload]:
    """Return a full machine, and alice's and bob's servers that were promised a time."""
    # What a machine pretends to run may be anybody's.
    catalog = through(DriverName.SIMULATION, ending())
    fleet = Fleet(catalog=catalog, settings=Settings(**settings))
    fleet.machine(capabilities=some_capabilities(driver=DriverName.SIMULATION))
    for widen in (governing.set_audience, governing.set_lending):
        widen(fleet.core, ROOT, "box", Relation.GUEST)
    fleet.ask(1, class_name="whole")
    alices = fleet.ask(2, class_name="whole")
    bobs = fleet.ask(3, class_name="whole", principal=a_principal("bob", 2))
    assert alices.promise is not None
    assert bobs.promise is not None
    assert alices.promise < bobs.promise
    return fleet, alices, bobs


def breaks(fleet: Fleet, record: Workload) -> list[str]:
    """Return what a record's owner reads of promises that were not kept."""
    return [
        sentence(event.explanation)
        for event in fleet.store.events(record.id)
        if event.explanation and event.explanation.reason is Reason.PROMISE_BROKEN
    ]


BEFORE = "On box, the promised time cannot be kept because an admin put "


@pytest.mark.parametrize(
    ("names_visible", "who"),
    [(True, "a server of bob"), (False, "somebody else's server")],
)
def test_who_is_pushed_back_reads_that_an_admin_put_somebody_first(
    who: str, *, names_visible: bool
) -> None:
    """The name as far as they may know it; whoever was moved has nothing to be told."""
    fleet, alices, bobs = a_promised_line(names_visible=names_visible)
    move(fleet, bobs, Place.FIRST)
    after = fleet.get(alices).promise
    assert after is not None
    assert alices.promise is not None
    assert after > alices.promise + 3000
    assert breaks(fleet, alices) == [f"{BEFORE}{who} first in the line."]
    assert breaks(fleet, bobs) == []


def test_who_is_pushed_back_is_told_by_the_same_decision() -> None:
    """However many wait: a time that is not kept any more is said to nobody."""
    fleet, alices, bobs = a_promised_line()
    moving.move(fleet.core, fleet.get(bobs), Place.FIRST, by=ROOT)
    run_cycle(fleet.core)
    assert len(breaks(fleet, alices)) == 1


def test_who_pushes_themselves_back_reads_of_their_own_server() -> None:
    """And an admin who looks reads of its user's."""
    fleet, alices, _ = a_promised_line()
    own = fleet.ask(4, class_name="whole")
    move(fleet, own, Place.FIRST)
    assert breaks(fleet, alices) == [
        f"{BEFORE}another of your servers first in the line."
    ]
    with speaking(of_another=True):
        assert breaks(fleet, alices) == [
            f"{BEFORE}another of its user's servers first in the line."
        ]


def test_who_is_put_last_reads_that_an_admin_did_it() -> None:
    """Their own time moves later; whoever comes before them now has an earlier one."""
    fleet, alices, bobs = a_promised_line()
    move(fleet, alices, Place.LAST)
    (told,) = breaks(fleet, alices)
    assert told.endswith("kept because an admin gave it another place in the line.")
    later, sooner = fleet.get(alices).promise, fleet.get(bobs).promise
    assert later is not None
    assert sooner is not None
    assert sooner < later
    assert breaks(fleet, bobs) == []


def test_each_move_is_told_to_those_whose_time_it_puts_off_and_to_nobody_else() -> None:
    """There, back and there again: as many words as times that moved later."""
    fleet, *line = a_promised_line()
    own = fleet.ask(4, class_name="whole")
    line.append(own)
    put_off = 0
    for place in (Place.FIRST, Place.USUAL, Place.FIRST, Place.LAST):
        before = [fleet.get(record).promise or 0.0 for record in line]
        told = [len(breaks(fleet, record)) for record in line]
        move(fleet, own, place)
        for record, promise, count in zip(line, before, told, strict=True):
            later = (fleet.get(record).promise or 0.0) > promise
            assert len(breaks(fleet, record)) == count + later
            put_off += later
    assert put_off >= 4
    assert fleet.core.engine.rescues == 0
