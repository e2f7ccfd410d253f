"""When a server ends by itself, in every place where somebody may read it."""

from __future__ import annotations

import json

from controller_catalogs import a_catalog
from fleet_builders import a_principal
from fleet_controller import Fleet, allocation_of
from told_everywhere import answer_to, in_a_terminal, timeline_to, what_if

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.telling import limit_lines
from fleet_contracts.time_limits import SetBy, TimeLimit, TimeLimits
from fleet_hub.controller import offering
from fleet_hub.controller.exporting import state_of
from fleet_hub.explaining.answers import answer
from fleet_hub.explaining.document import Question
from fleet_hub.explaining.state import dump, load
from fleet_hub.explaining.view import view_of


WHOLE = TimeLimits(
    limit=TimeLimit(seconds=7200, set_by=SetBy.CLASS),
    idle_limit=TimeLimit(seconds=1800, set_by=SetBy.PROFILE),
)
TOLD = (
    "Ends after 2 h (set by the class), or after 30 min in which nothing is computed "
    "(set by the profile)"
)


def a_limited_fleet() -> Fleet:
    """Return a fleet whose classes end after two hours, its profiles when idle."""
    catalog = a_catalog()
    classes = [
        one.model_copy(update={"limit_seconds": 7200.0, "idle_limit_seconds": 7200.0})
        for one in catalog.classes
    ]
    profiles = [
        one.model_copy(update={"idle_limit_seconds": 1800.0})
        for one in catalog.profiles
    ]
    parts = {"classes": tuple(classes), "profiles": tuple(profiles)}
    return Fleet(catalog=catalog.model_copy(update=parts))


def test_the_same_sentence_is_told_before_a_start_while_it_waits_and_as_it_runs() -> (
    None
):
    """On the form, to a question, in REST and a terminal, and in the timeline."""
    fleet = a_limited_fleet()
    agent = fleet.machine()
    holder = fleet.ask(2, class_name="whole")
    (*_, offer) = offering.offers_for(fleet.core, a_principal(), None).offers
    assert offer.time_limits == WHOLE
    asked = what_if(fleet, "alice", offer.profile, offer.class_name)
    assert asked.ends is not None
    assert (asked.ends.time_limits, asked.ends.sentence) == (WHOLE, f"{TOLD}.")
    waits = fleet.ask(profile=offer.profile, class_name="whole")
    for state in (State.QUEUED, State.READY):
        assert fleet.get(waits).state is state
        told = answer_to(fleet, waits)
        assert told.ends == asked.ends, state
        assert f"{TOLD}." in in_a_terminal(told), state
        timeline = timeline_to(fleet, waits)
        assert TOLD in limit_lines(timeline.limits, timeline.as_of), state
        if state is State.QUEUED:
            agent.report(allocation_of(holder), AgentEvent.ENDED)
            fleet.cycle()
            agent.serve(allocation_of(fleet.get(waits)))
    agent.report(allocation_of(fleet.get(waits)), AgentEvent.ENDED)
    assert answer_to(fleet, waits).ends is None, "it has ended"
    assert timeline_to(fleet, waits).limits.time_limits == TimeLimits()


def test_an_exported_state_tells_the_same() -> None:
    """Whoever helps reads what the user read."""
    fleet = a_limited_fleet()
    fleet.machine()
    record = fleet.ask(class_name="whole")
    state = load(json.dumps(dump(state_of(fleet.core))))
    found = answer(view_of(state), Question(workload=record.id))
    assert found.ends == answer_to(fleet, record).ends
    assert found.ends is not None


def test_what_has_no_limit_or_is_unknown_is_told_no_end() -> None:
    """Neither an empty sentence nor one of another profile, nor of what never runs."""
    fleet = Fleet()
    fleet.machine()
    free = what_if(fleet, "alice", "jupyter", "whole")
    assert (free.starts_now, free.ends) == (True, None)
    assert what_if(a_limited_fleet(), "alice", "none").ends is None
    limited = a_limited_fleet()
    limited.machine()
    (whole,) = (one for one in limited.catalogs.catalog.classes if one.name == "whole")
    huge = whole.model_copy(update={"cpu_milli": 10**6})
    limited.catalogs.catalog = limited.catalogs.catalog.model_copy(
        update={"classes": (huge,)}
    )
    never = what_if(limited, "alice", "jupyter", "whole")
    assert (never.may_be_asked, never.ends) == (False, None), "it never runs"
    record = fleet.ask()
    fleet.catalogs.catalog = a_catalog(profiles=())
    assert timeline_to(fleet, record).limits.time_limits == TimeLimits()
