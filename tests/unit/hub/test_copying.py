"""Beginning with a copy of files: who is told what, and who may not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from copying_fleet import OLD, a_fleet, choose, explained, gives_a_gpu, speaks
from fleet_builders import a_principal
from fleet_controller import allocation_of

from fleet_contracts.allocations import State
from fleet_contracts.protocol import COPYING_PROTOCOL, AgentEvent, Launch
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress, TimelineKind
from fleet_contracts.workloads import CopyOrder
from fleet_hub.controller import copying, offering, reporting, stopping
from fleet_hub.controller.audit_entry import Action
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.records import Home, Origin
from fleet_hub.controller.settings import Settings


def test_a_copy_is_fetched_by_the_new_machine_and_sent_by_the_old_one() -> None:
    """Each is told of its own end, with the folder's name at that end."""
    fleet, before = a_fleet()
    record = choose(fleet)
    assert record.assignment.machine == "gpu-box"
    launch = next(m for m in fleet.agents["gpu-box"].heard if isinstance(m, Launch))
    assert launch.spec.copy_order == CopyOrder(limit_bytes=50 << 30)
    assert launch.spec.notebook == record.notebook != before.notebook
    order = copying.order_to_send(fleet.core, record)
    assert order is not None
    assert (order.allocation, order.epoch) == (launch.allocation, launch.epoch)
    assert (order.notebook, order.owner) == (before.notebook, "alice")
    told = [e.explanation for e in fleet.store.events(record.id) if e.explanation]
    assert (told[-1].reason, told[-1].machine) == (Reason.FILES_TO_COPY, "cpu-box")


def test_an_ordinary_start_has_no_files_to_fetch() -> None:
    """Nor has anybody any to send."""
    fleet, _ = a_fleet()
    record = choose(fleet, "cpu", None)
    (launch,) = [
        message
        for message in fleet.agents["cpu-box"].heard
        if isinstance(message, Launch) and message.allocation == allocation_of(record)
    ]
    assert launch.spec.copy_order is None
    where = ("cpu-box", launch.allocation, launch.epoch)
    assert copying.fetching(fleet.core, *where) is None
    assert copying.sending(fleet.core, *where) is None
    assert copying.order_to_send(fleet.core, record) is None


def test_once_ready_the_copy_is_its_home_and_the_log_says_who_had_it_made() -> None:
    """The same wish, repeated with each start, changes nothing from then on."""
    fleet, _ = a_fleet()
    record = choose(fleet)
    allocation = allocation_of(record)
    fleet.agents["gpu-box"].serve(allocation)
    ready = fleet.get(record)
    assert ready.home == Home(
        machine="gpu-box", driver=ready.assignment.runtime.driver, class_name="gpu"
    )
    assert ready.origin is None
    (entry,) = [
        numbered.entry
        for numbered in fleet.store.audit()
        if numbered.entry.action is Action.FILES_COPIED
    ]
    assert (entry.actor, entry.target) == ("alice", record.id)
    assert entry.detail == "from cpu-box to gpu-box"
    fleet.agents["gpu-box"].report(allocation, AgentEvent.ENDED)
    again = choose(fleet)
    assert again.notebook == ready.notebook
    assert again.origin is None


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (State.PLACED, []),
        (State.PREPARING, [AgentEvent.ACCEPTED]),
        (State.STARTING, [AgentEvent.ACCEPTED, AgentEvent.PREPARED]),
        (State.STOPPING, [AgentEvent.ACCEPTED]),
        (State.READY, "serve"),
        (State.FAILED, [AgentEvent.ACCEPTED, AgentEvent.FAILED]),
    ],
)
def test_files_travel_only_while_they_are_wanted(
    state: State, said: list[AgentEvent] | str
) -> None:
    """From placed until the server is started; never for anybody else, nor again."""
    fleet, _ = a_fleet()
    fleet.machine("other-box")
    record = choose(fleet)
    agent = fleet.agents["gpu-box"]
    allocation, epoch = allocation_of(record), record.assignment.epoch
    if said == "serve":
        agent.serve(allocation)
    else:
        for event in said:
            agent.report(allocation, AgentEvent(event))
    if state is State.STOPPING:
        stopping.leave(fleet.core, fleet.get(record))
    assert fleet.get(record).state is state
    wanted = state in {State.PLACED, State.PREPARING}
    fetch, send = copying.fetching, copying.sending
    assert (fetch(fleet.core, "gpu-box", allocation, epoch) is not None) is wanted
    assert (send(fleet.core, "cpu-box", allocation, epoch) is not None) is wanted
    for machine in ("other-box", "cpu-box"):
        assert fetch(fleet.core, machine, allocation, epoch) is None
    for machine in ("other-box", "gpu-box"):
        assert send(fleet.core, machine, allocation, epoch) is None
    for wrong in (epoch - 1, epoch + 1):
        assert fetch(fleet.core, "gpu-box", allocation, wrong) is None
        assert send(fleet.core, "cpu-box", allocation, wrong) is None


def test_the_machine_that_is_waited_for_is_named() -> None:
    """The one that fetches the files does not know it, and names no other."""
    fleet, _ = a_fleet()
    record = choose(fleet)
    away = Explanation(
        reason=Reason.COPY_SOURCE_AWAY, subject="a lie", requested=300, unit="seconds"
    )
    fleet.agents["gpu-box"].report(
        allocation_of(record), AgentEvent.NOTE, explanation=away
    )
    *_, last = fleet.store.events(record.id)
    assert last.explanation.subject == "cpu-box"


def test_a_fleet_that_copies_nothing_says_so() -> None:
    """By the admin's limit of nothing."""
    fleet, record = a_fleet(copy_limit_bytes=0)
    offers = offering.offers_for(fleet.core, a_principal(), record.key).offers
    (gpu,) = [offer for offer in offers if offer.class_name == "gpu"]
    assert gpu.no_copy.reason is Reason.COPY_NOT_OFFERED
    with pytest.raises(RequestRefusedError) as refused:
        choose(fleet)
    assert refused.value.explanation.reason is Reason.COPY_NOT_OFFERED


def test_what_begins_with_a_copy_is_placed_once_the_files_can_be_sent() -> None:
    """Until then it waits, holds nothing, names the machine that is away, and other
    ways are told; as soon as that machine is back it starts.
    """
    fleet, record = a_fleet()
    fleet.agents["cpu-box"].disconnect()
    fleet.cycle()
    home = fleet.get(record).home
    assert home is not None
    obstacle = copying.obstacle(fleet.core, home)
    assert obstacle is not None
    assert obstacle.reason is Reason.COPY_SOURCE_AWAY
    waiting = choose(fleet)
    assert (waiting.state, waiting.assignment) == (State.QUEUED, None)
    assert waiting.explanation == Explanation(
        reason=Reason.COPY_SOURCE_AWAY, subject="cpu-box", position=0
    )
    told = explained(fleet, waiting)
    assert told.may_be_asked
    assert not told.starts_now
    assert "the machine with your files, cpu-box, cannot send them" in (
        told.headline.lower()
    )
    assert told.counts[Reason.COPY_SOURCE_AWAY] == 1
    assert told.changes == ()
    kinds = [way.told.explanation.reason for way in told.ways_out]
    assert kinds == [Reason.KEEP_CLASS, Reason.FRESH_FOLDER]
    assert told.no_copy is not None
    assert told.no_copy.explanation.machine == "cpu-box"
    fleet.agents["cpu-box"].connect()
    fleet.cycle()
    assert fleet.get(waiting).assignment.machine == "gpu-box"
    assert fleet.core.engine.rescues == 0


def test_files_that_are_right_where_it_is_placed_are_not_copied() -> None:
    """What kept it from them is over: it goes back to its own folder."""
    fleet, before = a_fleet()
    speaks(fleet, "gpu-box", OLD)
    waiting = choose(fleet)
    origin = Origin(
        home=replace(before.home, machine="gpu-box"), notebook=before.notebook
    )
    with fleet.core.transaction() as tx:
        tx.put(replace(fleet.get(waiting), origin=origin))
    speaks(fleet, "gpu-box", COPYING_PROTOCOL)
    placed = fleet.get(waiting)
    assert placed.assignment.machine == "gpu-box"
    assert (placed.notebook, placed.origin) == (before.notebook, None)


def test_bytes_and_files_are_both_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps that go on together are both in the timeline; a flood is not."""
    fleet, _ = a_fleet()
    record = choose(fleet)
    agent = fleet.agents["gpu-box"]
    agent.report(allocation_of(record), AgentEvent.ACCEPTED)
    for step in ("copy_bytes", "copy_files"):
        progress = Progress(step=step, done=1, total=2)
        agent.report(allocation_of(record), AgentEvent.PROGRESS, progress=progress)
    monkeypatch.setattr(reporting, "MOST_STEPS", 2)
    flood = Progress(step="another", done=1)
    agent.report(allocation_of(record), AgentEvent.PROGRESS, progress=flood)
    reporting.write_progress(fleet.core)
    steps = [
        event.progress.step
        for event in fleet.store.events(record.id)
        if event.kind is TimelineKind.PROGRESS and event.progress is not None
    ]
    assert steps == ["copy_bytes", "copy_files"]


def test_a_controller_that_was_killed_knows_of_the_copy() -> None:
    """It is in the record, so that the transfer can begin anew."""
    fleet, before = a_fleet()
    record = choose(fleet)
    again = fleet.restarted()
    for agent in again.agents.values():
        agent.connect()
    epoch = record.assignment.epoch
    found = copying.sending(again.core, "cpu-box", allocation_of(record), epoch)
    assert found is not None
    assert found.origin == Origin(home=before.home, notebook=before.notebook)


def test_a_copy_that_the_fleet_offers_no_more_is_refused_with_other_ways() -> None:
    """Who waited for it is told as soon as the controller has started anew."""
    fleet, _ = a_fleet()
    fleet.agents["cpu-box"].disconnect()
    fleet.cycle()
    waiting = choose(fleet)
    assert waiting.state is State.QUEUED
    fleet._settings = Settings(copy_limit_bytes=0)
    again = fleet.restarted()
    for agent in again.agents.values():
        agent.connect()
    gives_a_gpu(again)
    ended = again.get(waiting)
    assert ended.state is State.REFUSED
    assert (ended.explanation.reason, ended.explanation.machine) == (
        Reason.COPY_NOT_OFFERED,
        "cpu-box",
    )
    notes = {
        event.explanation.reason
        for event in again.store.events(ended.id)
        if event.kind is TimelineKind.NOTE and event.explanation
    }
    assert {Reason.KEEP_CLASS, Reason.FRESH_FOLDER} <= notes
    assert ended.home is not None
    assert ended.home.machine == "cpu-box"
