"""When holders are likely done: from earlier ones of their class, for who waits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from controller_catalogs import a_catalog
from fake_agent import some_capabilities
from fleet_builders import a_principal
from fleet_controller import Fleet, allocation_of
from scheduling_builders import NOON as AT, an_allocation
from told_everywhere import (
    answer_to,
    in_a_terminal,
    the_line,
    the_line_in_a_terminal,
    timeline_to,
    told,
)

from fleet_contracts.catalog import Relation, Runtime
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Holder, LikelyEnd, Reason
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.controller import governing, offering
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.scheduling.holders import told as holders_of
from fleet_hub.scheduling.likely import LEAST, MOST
from fleet_hub.scheduling.likely_ends import (
    Ran,
    Runs,
    likely_ends,
    with_ends,
    with_likely_ends,
)


ROOT = Actor(name="root", role=ActorRole.ADMIN)
BOB = a_principal("bob", 2)
HOUR = 3600.0


def the_end(runs: Runs, *, now: float = 0.0, bound: float | None = None) -> object:
    """Return when a run of class c that began at 0 is likely done, and from how many."""
    return runs.likely_end("c", since=0.0, now=now, bound=bound)


def test_half_and_nine_in_ten_of_those_that_went_on_for_longer_say_it() -> None:
    """Whoever has held on for a while is no longer compared to who was quick."""
    runs = Runs({"c": [float(minutes) for minutes in range(1, 41)]})
    assert the_end(runs) == (21.0, 39.0, 40)
    assert the_end(runs, now=10.0) == (26.0, 39.0, 30)
    assert the_end(runs, now=20.0) == (31.0, 40.0, LEAST)
    assert the_end(runs, now=21.0) is None
    assert runs.likely_end("other", since=0.0, now=0.0, bound=None) is None


def test_an_end_hardly_before_the_limit_is_not_told() -> None:
    """It would say the same again, and sound more certain than it is."""
    runs = Runs({"c": [90.0] * LEAST})
    assert the_end(runs, bound=100.0) == (90.0, 90.0, LEAST)
    assert the_end(runs, bound=99.0) is None
    assert the_end(runs, bound=None) is not None


def test_the_latest_are_remembered_whichever_is_noted_first() -> None:
    """After a restart they come in the order of the records."""
    runs = Runs()
    for at in reversed(range(MOST + 5)):
        runs.note(Ran(float(at), float(at), "c"))
    assert runs.seconds() == {"c": tuple(float(at) for at in range(5, MOST + 5))}
    assert Runs(runs.seconds()).seconds() == runs.seconds()


def test_only_who_holds_something_is_said_to_be_done() -> None:
    """Whoever is promised a place has not begun."""
    promised = Holder(workload="w", promised=True)
    why = Explanation(reason=Reason.BEHIND, holders=(promised,))
    assert with_likely_ends(why, Runs({"": [HOUR] * LEAST}), now=0.0) is why


def test_of_many_machines_only_whoever_ends_first_is_looked_at() -> None:
    """Forty of ten holders each would take half as long as the rest of an answer."""
    held = [
        an_allocation(f"h{number}", class_name="c", since=AT) for number in range(10)
    ]
    viewer = a_principal("bob", 2)
    holders = holders_of(held, lambda _: 1, viewer=viewer, names_visible=True)
    why = Explanation(reason=Reason.CPU_BUSY, holders=holders)
    runs = Runs({"c": [HOUR] * LEAST})
    for most in (1, 10):
        found = with_ends(why, likely_ends(why, runs, now=AT, most=most)).holders
        assert [one.likely_end is not None for one in found] == (
            [True] * most + [False] * (10 - most)
        )
    assert with_likely_ends(why, runs, now=AT).holders == found


def a_box(settings: Settings | None = None, *, limit: float | None = None) -> Fleet:
    """Return a fleet with one box that serves everybody."""
    runtime = Runtime(
        name="pretended", accelerators=(Accelerator.CPU,), ref="pretended"
    )
    catalog = a_catalog(runtimes=(runtime,))
    (profile,) = catalog.profiles
    update = {"runtimes": ("pretended",), "limit_seconds": limit}
    profile = profile.model_copy(update=update)
    catalog = catalog.model_copy(update={"profiles": (profile,)})
    fleet = Fleet(catalog=catalog, settings=settings)
    fleet.machine(capabilities=some_capabilities(driver=DriverName.SIMULATION))
    for widen in (governing.set_audience, governing.set_lending):
        widen(fleet.core, ROOT, "box", Relation.GUEST)
    return fleet


def runs_for(fleet: Fleet, number: int, minutes: float) -> None:
    """Have another server of the whole box run for so long, and end."""
    record = fleet.ask(number, class_name="whole", attempt=f"{fleet.clock.now()}")
    agent, allocation = fleet.agents["box"], allocation_of(record)
    agent.serve(allocation)
    fleet.clock.advance(minutes * 60)
    agent.report(allocation, AgentEvent.ENDED)
    fleet.cycle()


def a_wait(fleet: Fleet) -> Workload:
    """Return bob's server, which waits for alice's."""
    holder = fleet.ask(1, class_name="whole", attempt="holds")
    fleet.agents["box"].serve(allocation_of(holder))
    return fleet.ask(2, class_name="whole", principal=BOB)


def holder_of(why: Explanation | None) -> Holder:
    """Return the one who is told to hold it up."""
    assert why is not None
    (holder,) = why.holders
    return holder


@pytest.mark.parametrize("visible", [True, False])
def test_who_waits_reads_in_every_place_when_the_holder_is_likely_done(
    *, visible: bool
) -> None:
    """With names or without, and nothing more of the class than that."""
    fleet = a_box(Settings(names_visible=visible))
    for number in range(10, 10 + LEAST):
        runs_for(fleet, number, 30)
    began, waits = fleet.clock.now(), a_wait(fleet)
    done = began + timedelta(minutes=30)
    end = LikelyEnd(early=done, late=done, samples=LEAST)
    text = f"likely done by {done:%H:%M} UTC, from {LEAST} earlier ones"

    holder = holder_of(told(fleet, waits))
    assert (holder.likely_end, holder.owner) == (end, "alice" if visible else None)
    answer = answer_to(fleet, waits)
    assert text in in_a_terminal(answer)
    (machine,) = answer.machines
    assert machine.why_not is not None
    assert holder_of(machine.why_not.explanation).likely_end == end
    assert "class_name" not in machine.why_not.explanation.model_dump_json()
    (line,) = the_line(fleet).waiting
    assert text in line.why.sentence
    assert text in the_line_in_a_terminal(fleet)
    timeline = timeline_to(fleet, waits)
    assert holder_of(timeline.explanation).likely_end == end
    assert text in timeline.headline
    (*_, offer) = offering.offers_for(fleet.core, BOB, None).offers
    assert offer.class_name == "whole"
    assert text in offer.headline


def test_the_answer_stays_true_while_the_holder_goes_on() -> None:
    """Though nothing happens that would have anybody told anew."""
    fleet = a_box()
    for number in range(10, 10 + LEAST):
        runs_for(fleet, number, 20)
    for number in range(40, 40 + LEAST):
        runs_for(fleet, number, 60)
    began, waits = fleet.clock.now(), a_wait(fleet)
    likely = holder_of(told(fleet, waits)).likely_end
    assert likely is not None
    assert likely.samples == 2 * LEAST
    assert likely.early == began + timedelta(minutes=60)
    fleet.clock.advance(30 * 60)
    likely = holder_of(told(fleet, waits)).likely_end
    assert likely is not None
    assert likely.samples == LEAST
    fleet.clock.advance(31 * 60)
    assert holder_of(told(fleet, waits)).likely_end is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda fleet: None,
        lambda fleet: [runs_for(fleet, 10, 30) for _ in range(LEAST - 1)],
        lambda fleet: [runs_for(fleet, n, 114) for n in range(10, 10 + LEAST)],
    ],
    ids=["nobody", "too few", "all until their limit"],
)
def test_where_too_little_is_known_the_bound_alone_is_told(
    spoil: Callable[[Fleet], object],
) -> None:
    """As before: no guess stands beside it."""
    fleet = a_box(limit=2 * HOUR)
    spoil(fleet)
    waits = a_wait(fleet)
    holder = holder_of(told(fleet, waits))
    assert holder.ends_by is not None
    assert holder.likely_end is None
    assert "likely done" not in timeline_to(fleet, waits).headline


def test_what_never_got_ready_is_no_run() -> None:
    """A start that failed after a second says nothing of how long people stay."""
    fleet = a_box()
    record = fleet.ask(10, class_name="whole")
    fleet.agents["box"].report(allocation_of(record), AgentEvent.FAILED)
    fleet.cycle()
    assert fleet.core.model.runs.seconds() == {}


def test_a_restart_forgets_no_run() -> None:
    """The last one of each server is kept with it, and goes with its next start."""
    fleet = a_box()
    for number in range(10, 10 + LEAST):
        runs_for(fleet, number, number)
    known = fleet.core.model.runs.seconds()
    assert [len(some) for some in known.values()] == [LEAST]
    again = fleet.restarted()
    assert again.core.model.runs.seconds() == known
    again.agents["box"].connect()
    again.cycle()
    again.ask(10, class_name="whole", attempt="again")
    assert again.restarted().core.model.runs.seconds() == known
