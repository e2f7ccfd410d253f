"""The engine lives from cycle to cycle: it forgets nothing, and misses nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from controller_catalogs import ending
from fake_agent import some_capabilities
from fleet_builders import a_principal
from fleet_controller import Fleet, an_ask

from fleet_contracts.catalog import Quota
from fleet_contracts.protocol import AgentEvent, Heartbeat
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import asking, stopping
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.reconciling import update_capabilities
from fleet_hub.controller.records import Workload
from fleet_hub.controller.retelling import AT_A_TIME, retell, wait_of
from fleet_hub.controller.ticking import tick
from fleet_hub.controller.timelines import timeline_of
from fleet_hub.scheduling.snapshot import Allocation
from fleet_hub.service.metrics import Metrics


def a_limited_fleet() -> Fleet:
    """Return a fleet in which everything ends within an hour."""
    return Fleet(catalog=ending())


def broken(fleet: Fleet, record: Workload) -> list[str | None]:
    """Return why promises to *record* were broken, as its timeline tells it."""
    return [
        event.explanation.subject
        for event in fleet.store.events(record.id)
        if event.explanation and event.explanation.reason is Reason.PROMISE_BROKEN
    ]


def test_a_promise_only_moves_earlier_while_its_holder_starts_and_runs() -> None:
    """Preparing, starting and being ready each make the holder's end earlier."""
    fleet = a_limited_fleet()
    agent = fleet.machine()
    holder = fleet.ask(1, class_name="whole")
    waiter = fleet.ask(2, class_name="whole")
    said = [fleet.get(waiter).promise]
    allocation = holder.assignment.allocation
    for event in (AgentEvent.ACCEPTED, AgentEvent.PREPARED):
        fleet.clock.advance(20)
        agent.report(allocation, event)
        fleet.cycle()
        said.append(fleet.get(waiter).promise)
    agent.report(allocation, AgentEvent.SERVING, url="http://127.0.0.1:5000/x/")
    fleet.cycle()
    said.append(fleet.get(waiter).promise)
    assert None not in said
    assert said == sorted(said, reverse=True)
    assert said[-1] < said[0]
    assert broken(fleet, waiter) == []


def test_a_promise_survives_a_restart_of_the_controller() -> None:
    """The next process promises the same machine by the same time, and breaks nothing."""
    fleet = a_limited_fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    waiter = fleet.ask(2, class_name="whole")
    before = fleet.get(waiter)
    assert before.reservation is not None
    again = fleet.restarted()
    for agent in again.agents.values():
        agent.connect()
    again.cycle()
    after = again.get(waiter)
    assert (after.promise, after.reservation) == (before.promise, before.reservation)
    assert broken(again, waiter) == []


def test_a_machine_that_goes_away_breaks_its_promises_with_that_cause() -> None:
    """The timeline says why the time is not kept; there is none until it is back."""
    fleet = a_limited_fleet()
    agent = fleet.machine()
    fleet.ask(1, class_name="whole")
    waiter = fleet.ask(2, class_name="whole")
    agent.disconnect()
    fleet.clock.advance(40)
    tick(fleet.core)
    fleet.cycle()
    assert broken(fleet, waiter) == ["offline"]
    assert fleet.get(waiter).promise is None


def test_what_was_freed_goes_to_the_next_in_line_in_the_same_cycle() -> None:
    """An early end is used at once; the promise is kept by far."""
    fleet = a_limited_fleet()
    agent = fleet.machine()
    holder = fleet.ask(1, class_name="whole")
    waiter = fleet.ask(2, class_name="whole")
    agent.serve(holder.assignment.allocation)
    agent.report(holder.assignment.allocation, AgentEvent.ENDED)
    fleet.cycle()
    assert fleet.get(waiter).assignment is not None
    assert fleet.core.engine.rescues == 0


def test_the_same_cycle_that_frees_a_quota_tells_the_next_reason() -> None:
    """No stale quota: who is blocked by something else then reads that instead."""
    catalog = ending().model_copy(
        update={"quotas": (Quota(user="alice", workloads=1),)}
    )
    fleet = Fleet(catalog=catalog)
    agent = fleet.machine(cores=4)
    mine = fleet.ask(1, class_name="small")
    waiter = fleet.ask(2, class_name="whole")
    assert fleet.get(waiter).explanation.reason is Reason.USER_LIMIT
    # Her quota has room again, and the machine has become too small meanwhile.
    agent.serve(mine.assignment.allocation)
    agent.report(mine.assignment.allocation, AgentEvent.ENDED)
    update_capabilities(fleet.core, "box", some_capabilities(cores=2))
    fleet.cycle()
    assert fleet.get(waiter).explanation.reason is not Reason.USER_LIMIT


def test_who_looks_before_the_next_cycle_sees_the_machines_of_now() -> None:
    """What a waiter could use is worked out anew for an answer, not for a turn only."""
    fleet = Fleet()
    fleet.machine(cores=4)
    fleet.ask(1, class_name="whole")
    waiter = fleet.ask(2, class_name="whole")
    update_capabilities(fleet.core, "box", some_capabilities(cores=2))
    found = wait_of(fleet.core, fleet.get(waiter))
    assert found is not None
    assert found.explanation.reason is Reason.CPU_TOO_SMALL
    assert found.explanation.machine == "box"


def test_a_leftover_and_a_new_launch_of_one_workload_are_counted_apart() -> None:
    """What was given up and still runs there holds beside what was launched anew."""
    fleet = Fleet()
    agent = fleet.machine(cores=4)
    first = fleet.ask(1, class_name="small")
    agent.serve(first.assignment.allocation)
    agent.disconnect()
    stopping.declare_lost(fleet.core, "box")
    fleet.cycle()
    agent.connect(cores=4)
    agent.say(Heartbeat(sent_at=fleet.clock.now()))
    fleet.cycle()
    second = fleet.ask(1, class_name="small", attempt="second")
    assert second.assignment is not None
    entry = fleet.core.engine.planner(fleet.clock.now()).fleet.entries["box"]
    assert entry.free[0] == 4000 - 2 * 1000


def test_use_is_remembered_across_a_restart() -> None:
    """Fair shares do not begin anew with the process."""
    fleet = a_limited_fleet()
    agent = fleet.machine()
    holder = fleet.ask(1, class_name="whole")
    agent.serve(holder.assignment.allocation)
    fleet.clock.advance(600)
    agent.report(holder.assignment.allocation, AgentEvent.ENDED)
    used = fleet.core.model.usage[a_principal().user_id]
    assert used.amount > 0
    assert fleet.restarted().core.model.usage == {a_principal().user_id: used}


def test_a_sweep_finds_nothing_that_events_brought_up_already() -> None:
    """Whatever happened, a look at everybody is no news; the count stays zero."""
    fleet = a_limited_fleet()
    agent = fleet.machine()
    records = [fleet.ask(number, class_name="whole") for number in range(1, 6)]
    agent.serve(records[0].assignment.allocation)
    stopping.leave(fleet.core, fleet.get(records[2]))
    fleet.cycle()
    for _ in range(3):
        fleet.clock.advance(1)
        assert fleet.core.engine.sweep(fleet.clock.now(), most=100) == 0
    assert fleet.core.engine.rescues == 0


def test_a_sweep_puts_right_and_counts_what_an_event_missed() -> None:
    """A change that nobody announced is found, used, and counted."""
    fleet = a_limited_fleet()
    fleet.machine(cores=4)
    fleet.ask(1, class_name="whole")
    waiter = fleet.ask(2, class_name="whole")
    presence = fleet.core.model.presence["box"]
    presence.facts = presence.facts.model_copy(update={"cores_milli": 8000})
    assert fleet.core.engine.sweep(fleet.clock.now(), most=100) == 1
    fleet.cycle()
    assert fleet.get(waiter).assignment is not None
    assert fleet.core.engine.rescues == 1


def test_time_alone_brings_a_cycle_when_a_promise_is_due() -> None:
    """A holder that overstays breaks the promise with that cause, and not silently."""
    fleet = a_limited_fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    waiter = fleet.ask(2, class_name="whole")
    promise = fleet.get(waiter).promise
    assert not fleet.core.engine.is_due(fleet.clock.now())
    fleet.clock.advance(promise - fleet.clock.now().timestamp() + 1)
    assert fleet.core.engine.is_due(fleet.clock.now())
    fleet.cycle()
    assert broken(fleet, waiter) == ["holder_overdue"]


def test_a_long_line_is_told_in_turns_and_nobody_is_left_out() -> None:
    """New ones first; who looks before their turn gets the true answer."""
    fleet = a_limited_fleet()
    agent = fleet.machine()
    holder = fleet.ask(1, class_name="whole")
    line = [fleet.ask(number, class_name="whole") for number in range(2, 130)]
    last = line[-1]
    assert wait_of(fleet.core, fleet.get(last)).position == len(line) - 1
    agent.serve(holder.assignment.allocation)
    agent.report(holder.assignment.allocation, AgentEvent.ENDED)
    run_cycle(fleet.core)
    assert fleet.core.engine.has_untold
    assert fleet.core.model.waits[last.id].position == len(line) - 1
    assert wait_of(fleet.core, fleet.get(last)).position == len(line) - 2
    while retell(fleet.core, AT_A_TIME):
        pass
    assert fleet.core.model.waits[last.id].position == len(line) - 2


def test_nobody_waits_a_second_look_to_be_told_why() -> None:
    """The first entry after "asked" is the reason, even in a line that is full of news."""
    fleet = a_limited_fleet()
    fleet.machine()
    for number in range(1, 100):
        fleet.ask(number, class_name="whole")
    newest = fleet.ask(100, class_name="whole")
    kinds = [event.kind for event in fleet.store.events(newest.id)]
    assert kinds[:2] == [TimelineKind.ASKED, TimelineKind.WAITING]


def test_a_new_catalog_keeps_the_promises_that_it_leaves_the_ground_of() -> None:
    """Another text of the same classes moves nobody's time later."""
    fleet = a_limited_fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    waiter = fleet.ask(2, class_name="whole")
    promise = fleet.get(waiter).promise
    fleet.catalogs.catalog = ending()
    fleet.core.want_cycle()
    fleet.cycle()
    assert fleet.get(waiter).promise == pytest.approx(promise)
    assert broken(fleet, waiter) == []


def test_an_allocation_of_ours_and_the_engines_own_are_equal() -> None:
    """What the engine placed and what was written are one fact: nothing is put anew."""
    fleet = a_limited_fleet()
    fleet.machine()
    record = fleet.ask(1)
    planner = fleet.core.engine.planner(fleet.clock.now())
    held = planner.fleet.entries["box"].allocations[record.id]
    fleet.core.engine.forget()
    rebuilt = fleet.core.engine.planner(fleet.clock.now())
    assert rebuilt is not planner
    again = rebuilt.fleet.entries["box"].allocations[record.id]
    assert replace(again, since=held.since) == held
    assert again.since == held.since


def test_promises_wait_for_their_machines_after_a_restart() -> None:
    """The first looks find no machine yet: nothing is broken until recovery is over."""
    fleet = a_limited_fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    waiter = fleet.ask(2, class_name="whole")
    before = fleet.get(waiter)
    again = fleet.restarted()
    again.cycle()
    again.clock.advance(5)
    tick(again.core)
    again.cycle()
    assert again.get(waiter).promise == before.promise
    for agent in again.agents.values():
        agent.connect()
    again.cycle()
    after = again.get(waiter)
    assert (after.promise, after.reservation) == (before.promise, before.reservation)
    assert broken(again, waiter) == []


def test_a_machine_that_never_comes_back_after_a_restart_breaks_its_promises() -> None:
    """Once the time for that is over, who waits behind it is told."""
    fleet = a_limited_fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    waiter = fleet.ask(2, class_name="whole")
    again = fleet.restarted()
    again.cycle()
    again.clock.advance(40)
    tick(again.core)
    again.cycle()
    assert again.get(waiter).promise is None
    assert broken(again, waiter) == ["offline"]


def test_an_agent_that_dials_again_breaks_no_promise() -> None:
    """A link that drops for a moment moves nobody's time."""
    fleet = a_limited_fleet()
    agent = fleet.machine()
    holder = fleet.ask(1, class_name="whole")
    agent.serve(holder.assignment.allocation)
    waiter = fleet.ask(2, class_name="whole")
    promise = fleet.get(waiter).promise
    agent.disconnect()
    fleet.cycle()
    fleet.clock.advance(3)
    tick(fleet.core)
    fleet.cycle()
    assert fleet.get(waiter).promise == promise
    agent.connect()
    fleet.cycle()
    assert fleet.get(waiter).promise == promise
    assert broken(fleet, waiter) == []


@pytest.mark.parametrize(
    ("part", "came"), [(0.2, "early"), (0.6, "late"), (0.9, "later")]
)
def test_how_starts_compare_to_what_was_said_to_be_likely_is_counted(
    part: float, came: str
) -> None:
    """An admin sees whether half and nine in ten come by the times that people read.

    What was said at first counts, whatever is remembered of others meanwhile.
    """
    fleet = a_limited_fleet()
    agent = fleet.machine()
    holder = fleet.ask(class_name="whole")
    history = fleet.core.model.history
    for taken in (*[0.3] * 21, *[0.8] * 19):
        history.note("whole", taken)
    waiter = fleet.ask(2, class_name="whole")
    outset = waiter.outset
    said = history.likely("whole", outset, now=outset.since, bound=outset.bound)
    assert [outset.part(said.early), outset.part(said.late)] == pytest.approx(
        [0.3, 0.8]
    )
    for _ in range(60):
        history.note("whole", 1.0)
    metrics = Metrics(fleet.core)
    fleet.clock.advance(part * (outset.bound - outset.since))
    shown = timeline_of(fleet.core, fleet.get(waiter)).limits
    assert shown.longer_than_usual is (came == "later")
    agent.report(holder.assignment.allocation, AgentEvent.ENDED)
    fleet.cycle()
    counted = {
        sample.labels["came"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "jupyterhub_fleet_likely_starts_total"
    }
    assert counted == {came: 1}


def test_a_turn_that_is_handed_over_late_ends_as_much_later() -> None:
    """Nobody is promised its place for a time at which it may still run.

    The Hub was away for longer than a hand-over is reckoned with: the machine counts
    the limit from when the server was ready.
    """
    fleet = a_limited_fleet()
    agent = fleet.machine()
    record = fleet.ask(class_name="whole", attended=False)
    reckoned = held(fleet).ends_by
    assert reckoned is not None
    waiter = fleet.ask(2, class_name="whole")
    fleet.clock.advance(1500)
    claimed = asking.ask(fleet.core, an_ask(class_name="whole", attempt="second"))
    fleet.cycle()
    assert claimed.id == record.id
    launched = held(fleet).ends_by
    assert launched is not None
    assert launched == pytest.approx(reckoned + 1200)
    (cause,) = broken(fleet, waiter)
    assert cause == "less_room"
    assert claimed.assignment is not None
    fleet.clock.advance(1900)
    agent.serve(claimed.assignment.allocation)
    fleet.cycle()
    ready = fleet.clock.now().timestamp()
    assert held(fleet).ends_by == pytest.approx(ready + 3600 + 10)
    promise = fleet.get(waiter).promise
    assert promise is not None
    assert promise == pytest.approx(ready + 3600 + 10 + 30)


def held(fleet: Fleet) -> Allocation:
    """Return what is held of the machine, as placement sees it."""
    planner = fleet.core.engine.planner(fleet.clock.now())
    (allocation,) = planner.fleet.entries["box"].allocations.values()
    return allocation
