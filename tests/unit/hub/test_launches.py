"""What a machine is told to start and to end, and what it is told it with."""

from __future__ import annotations

import pytest
from controller_catalogs import a_catalog
from fake_agent import FakeAgent
from fleet_controller import Fleet, a_ready_server, allocation_of

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Deadlines
from fleet_contracts.protocol import COPYING_PROTOCOL, AgentEvent, Heartbeat, Launch
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress, TimelineKind
from fleet_hub.controller import lifecycle, stopping
from fleet_hub.controller.ticking import tick


def the_launch(agent: FakeAgent) -> Launch:
    """Return the last launch that an agent was told."""
    return [message for message in agent.heard if isinstance(message, Launch)][-1]


def test_a_launch_carries_the_deadlines_of_its_profile() -> None:
    """Each of them its own: preparing, starting and stopping are different waits."""
    [profile] = a_catalog().profiles
    times = Deadlines(prepare_seconds=71, start_seconds=72, stop_seconds=73)
    patient = profile.model_copy(update={"deadlines": times})
    fleet = Fleet(catalog=a_catalog(profiles=(patient,)))
    agent = fleet.machine()
    fleet.ask()
    spec = the_launch(agent).spec
    told = (spec.prepare_seconds, spec.start_seconds, spec.stop_seconds)
    assert told == (71, 72, 73)


def test_a_launch_is_told_again_though_the_catalog_does_not_have_it_any_more() -> None:
    """Running work is untouched by an edit: it goes on with the usual deadlines."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.disconnect()
    fleet.catalogs.catalog = a_catalog(classes=(), profiles=())
    agent.connect()
    spec = the_launch(agent).spec
    assert spec.prepare_seconds == Deadlines().prepare_seconds
    assert spec.lease_seconds is None
    agent.serve(allocation_of(record))
    assert fleet.get(record).ready_at is not None


def test_an_agent_that_cannot_copy_starts_whatever_needs_no_copy() -> None:
    """Only a start that would begin with an empty folder is kept from it."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    agent.connect(protocol=COPYING_PROTOCOL - 1)
    record = fleet.ask()
    assert allocation_of(record) in agent.launched
    assert agent.stops() == []


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        ("user", Reason.STOPPED_BY_USER),
        ("admin", Reason.STOPPED_BY_ADMIN),
        ("hub", Reason.STOPPED_BY_HUB),
    ],
)
def test_the_machine_is_told_who_wants_the_end(by: str, reason: Reason) -> None:
    """So is the timeline: by name of the role, when it is asked for and at its end."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    stopping.stop(fleet.core, fleet.get(record), by=by)
    [stop] = agent.stops()
    assert stop.explanation is not None
    assert stop.explanation.reason is reason
    asked = fleet.store.events(record.id)[-1]
    assert (asked.kind, asked.actor) == (TimelineKind.STOPPING, by)
    agent.report(allocation_of(record), AgentEvent.ENDED)
    over = fleet.store.events(record.id)[-1]
    assert (over.kind, over.actor) == (TimelineKind.STOPPED, "agent")
    assert over.explanation == asked.explanation
    assert over.machine == "box"


def test_who_asked_for_the_end_first_stays_who_asked() -> None:
    """The Hub stops what its user stops; the timeline still names the user."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    stopping.stop(fleet.core, fleet.get(record), by="user", now=True)
    stopping.stop(fleet.core, fleet.get(record), by="hub")
    assert [stop.now for stop in agent.stops()] == [True, True]
    agent.report(allocation_of(record), AgentEvent.ENDED)
    explanation = fleet.get(record).explanation
    assert explanation is not None
    assert explanation.reason is Reason.STOPPED_BY_USER


def test_the_timeline_says_who_did_each_step() -> None:
    """The user asks, the controller places, the agent does the rest."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    told = [(event.kind, event.actor) for event in fleet.store.events(record.id)]
    assert told == [
        (TimelineKind.ASKED, "user"),
        (TimelineKind.PLACED, "controller"),
        (TimelineKind.PREPARING, "agent"),
        (TimelineKind.STARTING, "agent"),
        (TimelineKind.READY, "agent"),
    ]


def test_a_timeline_token_opens_its_own_start_and_nothing_after_it() -> None:
    """It is in the notebook's environment, and void once the notebook is over."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    old = the_launch(agent).spec.environment[lifecycle.TOKEN_VARIABLE]
    found = fleet.core.model.by_token_hash(lifecycle.hash_of(old))
    assert found is not None
    assert found.id == record.id
    stopping.stop(fleet.core, fleet.get(record))
    agent.report(allocation_of(record), AgentEvent.ENDED)
    assert fleet.core.model.by_token_hash(lifecycle.hash_of(old)) is None
    assert fleet.restarted().core.model.by_token_hash(lifecycle.hash_of(old)) is None
    agent = fleet.agents["box"]
    fleet = fleet.restarted()
    agent.connect()
    fleet.ask(attempt="second")
    new = the_launch(agent).spec.environment[lifecycle.TOKEN_VARIABLE]
    assert fleet.core.model.by_token_hash(lifecycle.hash_of(old)) is None
    assert fleet.core.model.by_token_hash(lifecycle.hash_of(new)) is not None


def test_a_rejection_passes_the_agents_reason_on_and_is_over_with() -> None:
    """The wait says why the machine said no; nothing of the try is left."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    full = Explanation(reason=Reason.DISK_FULL)
    agent.report(allocation_of(record), AgentEvent.REJECTED, explanation=full)
    back = fleet.store.events(record.id)[-1]
    assert back.kind is TimelineKind.WAITING
    assert back.explanation is not None
    assert back.explanation.reason is Reason.DISK_FULL
    assert fleet.core.model.issued == {}
    assert fleet.get(record).rejected_by == {"box": Reason.DISK_FULL}


def progress_of(fleet: Fleet, record_id: str) -> list[tuple[str, int]]:
    """Return who told of which progress in the timeline."""
    return [
        (event.actor, event.progress.done)
        for event in fleet.store.events(record_id)
        if event.progress is not None
    ]


def test_progress_is_the_agents_word_at_the_time_when_it_was_made() -> None:
    """It is written a moment later, together with others."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.report(allocation_of(record), AgentEvent.ACCEPTED)
    step = Progress(step="install_packages", done=3)
    agent.report(allocation_of(record), AgentEvent.PROGRESS, progress=step)
    made = fleet.clock.now()
    fleet.clock.advance(0.5)
    tick(fleet.core)
    last = fleet.store.events(record.id)[-1]
    assert (last.kind, last.actor, last.at) == (TimelineKind.PROGRESS, "agent", made)


def test_no_progress_is_told_of_what_is_to_end_or_has_ended() -> None:
    """A bar that goes on moving behind the last entry would be a lie."""
    fleet = Fleet()
    agent = fleet.machine()
    first, second = fleet.ask(1), fleet.ask(2)
    step = Progress(step="install_packages", done=3)
    for record in (first, second):
        agent.report(allocation_of(record), AgentEvent.ACCEPTED)
    stopping.stop(fleet.core, fleet.get(first))
    agent.report(allocation_of(first), AgentEvent.PROGRESS, progress=step)
    agent.report(allocation_of(second), AgentEvent.PROGRESS, progress=step)
    agent.report(allocation_of(second), AgentEvent.FAILED)
    tick(fleet.core)
    assert progress_of(fleet, first.id) == []
    assert progress_of(fleet, second.id) == []


def test_a_note_is_told_at_its_time() -> None:
    """Of a machine that was cut off, hours later perhaps."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    note = Explanation(reason=Reason.FILES_COPIED)
    with agent.holding_back() as held:
        agent.report(allocation_of(record), AgentEvent.NOTE, explanation=note)
    noted = fleet.clock.now()
    fleet.clock.advance(600)
    for message in held:
        agent.say(message)
    last = fleet.store.events(record.id)[-1]
    assert (last.kind, last.actor, last.at) == (TimelineKind.NOTE, "agent", noted)


def test_a_server_without_an_address_is_ended_and_not_led_to() -> None:
    """Its machine says that it serves, and not where."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.report(allocation_of(record), AgentEvent.SERVING)
    assert fleet.get(record).url is None
    assert fleet.get(record).ready_at is None
    [stop] = agent.stops()
    assert stop.now
    assert stop.explanation is not None
    assert stop.explanation.reason is Reason.START_FAILED


def test_an_end_that_the_agent_began_is_told_with_its_reason() -> None:
    """A time limit, say; where the agent gives no reason, its machine's people did it."""
    fleet = Fleet()
    agent = fleet.machine()
    limit = Explanation(reason=Reason.TIME_LIMIT)
    for server, given, reason in (
        (1, limit, Reason.TIME_LIMIT),
        (2, None, Reason.STOPPED_BY_ADMIN),
    ):
        record = fleet.ask(server)
        agent.serve(allocation_of(record))
        agent.report(allocation_of(record), AgentEvent.STOPPING, explanation=given)
        last = fleet.store.events(record.id)[-1]
        assert (last.kind, last.actor) == (TimelineKind.STOPPING, "agent")
        assert last.explanation is not None
        assert last.explanation.reason is reason


@pytest.mark.parametrize("silence", [0, 31])
def test_a_rejection_of_what_was_to_be_stopped_is_its_end(silence: int) -> None:
    """It does not return to the line that its user has left."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    launch = the_launch(agent)
    stopping.stop(fleet.core, record)
    agent.disconnect()
    fleet.clock.advance(silence)
    tick(fleet.core)
    agent.launched[launch.allocation] = launch
    agent.report(launch.allocation, AgentEvent.REJECTED)
    agent.connect()
    agent.say(Heartbeat(sent_at=fleet.clock.now()))
    ended = fleet.get(record)
    assert ended.state is State.STOPPED
    assert ended.explanation is not None
    assert ended.explanation.reason is Reason.STOPPED_BY_USER
