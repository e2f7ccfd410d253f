"""One moment, one answer: whoever asks about a wait is told the same, wherever."""

from __future__ import annotations

from controller_catalogs import ending
from fleet_controller import Fleet
from hypothesis import Phase, given, settings, strategies as st

from fleet_contracts.protocol import AgentEvent
from fleet_hub.controller import exporting, moving
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.moving import Place
from fleet_hub.controller.records import Workload
from fleet_hub.controller.timelines import status_of, timeline_of
from fleet_hub.explaining.answers import answer, line as the_line
from fleet_hub.explaining.document import Question


ROOT = Actor(name="root", role=ActorRole.ADMIN)


def told_everywhere(fleet: Fleet, record: Workload) -> None:
    """Compare what the timeline, the status, an explanation and the line say."""
    timeline = timeline_of(fleet.core, record)
    status = status_of(fleet.core, record, view_token="proof")
    view = exporting.view_of(fleet.core)
    why = answer(view, Question(workload=record.id))
    (row,) = [one for one in the_line(view).waiting if one.workload == record.id]
    assert timeline.limits.starts_by == why.no_later_than == row.no_later_than
    assert timeline.position == status.position == row.ahead
    assert timeline.headline == status.headline == why.headline
    assert timeline.explanation == status.explanation == row.why.explanation
    assert why.why is not None
    assert why.why.explanation == timeline.explanation


@settings(max_examples=25, deadline=None, phases=(Phase.generate,))
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(list(Place)), st.integers(0, 5)), max_size=4
    ),
    ends=st.booleans(),
    seconds=st.integers(0, 4000),
)
def test_a_wait_is_the_same_on_every_way_even_before_it_was_written(
    moves: list[tuple[Place, int]], ends: bool, seconds: int
) -> None:
    """In the same moment, though those who wait are told in turns."""
    fleet = Fleet(catalog=ending())
    agent = fleet.machine()
    holder = fleet.ask(1, class_name="whole")
    line = [
        fleet.ask(2 + number, class_name="whole" if number % 2 else "small")
        for number in range(6)
    ]
    fleet.clock.advance(seconds)
    for place, number in moves:
        moving.move(fleet.core, fleet.get(line[number]), place, by=ROOT)
    if ends:
        assert holder.assignment is not None
        agent.report(holder.assignment.allocation, AgentEvent.FAILED)
    while run_cycle(fleet.core).is_unfinished:
        pass
    for record in line:
        now = fleet.get(record)
        if now.assignment is None:
            told_everywhere(fleet, now)
