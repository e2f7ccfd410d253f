"""What the controller knows reaches whoever decides, and what was decided is kept."""

from __future__ import annotations

from dataclasses import replace

from controller_catalogs import a_catalog
from fleet_controller import Fleet, a_ready_server, allocation_of, an_ask
from scheduling_builders import a_catalog as a_gpu_catalog, a_gpu, some_facts

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress
from fleet_hub.controller import governing, stopping
from fleet_hub.controller.accounting import usage
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.asking import ask
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.retelling import wait_of
from fleet_hub.controller.states import held_by
from fleet_hub.controller.ticking import tick


ROOT = Actor(name="root", role=ActorRole.ADMIN)


def limited(**limits: float) -> Fleet:
    """Return a fleet in whose catalog these classes have time limits."""
    classes = tuple(
        chosen.model_copy(update={"limit_seconds": limits.get(chosen.name)})
        for chosen in a_catalog().classes
    )
    return Fleet(catalog=a_catalog(classes=classes))


def test_a_label_on_the_record_decides_where_a_class_may_run() -> None:
    """Set, it lets the class in at once; taken away, it keeps the next one out."""
    [small, *others] = a_catalog().classes
    rack = small.model_copy(update={"labels": {"rack": "7"}})
    fleet = Fleet(catalog=a_catalog(classes=(rack, *others)))
    fleet.machine()
    assert fleet.ask(1).state is State.REFUSED
    governing.set_labels(fleet.core, ROOT, "box", {"rack": "7"})
    assert fleet.ask(2).state is State.PLACED
    governing.set_labels(fleet.core, ROOT, "box", {})
    assert fleet.ask(3).state is State.REFUSED


def test_since_when_a_machine_is_away_is_told() -> None:
    """An instant, so that nobody has to ask for how long already."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    fleet.clock.advance(3600)
    record = fleet.ask()
    explanation = record.explanation
    assert explanation is not None
    assert explanation.reason is Reason.OFFLINE
    assert explanation.detail == "since 2026-01-02 12:00 UTC"


def test_what_is_held_is_what_was_asked_for_under_the_title_of_its_profile() -> None:
    """As long as the catalog has the profile, and under its name after that."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    assert held_by(fleet.catalogs.catalog, record).title == "JupyterLab"
    assert held_by(a_catalog(profiles=()), record).title == "jupyter"


def test_a_gpu_is_accounted_as_the_device_that_was_asked_for() -> None:
    """On a Mac as well, where no device of a list is held, only the one GPU there is."""
    fleet = Fleet(catalog=a_gpu_catalog())
    fleet.machine("gpu-box")
    fleet.core.model.presence["gpu-box"].facts = some_facts(devices=(a_gpu(),))
    fleet.core.model.stirred.add("gpu-box")
    fleet.cycle()
    record = fleet.ask(profile="lab", class_name="gpu")
    assignment = record.assignment
    assert assignment is not None
    assert assignment.devices_asked == 1
    assert held_by(fleet.catalogs.catalog, record).devices_asked == 1
    on_a_mac = assignment.resources.model_copy(update={"devices": (), "metal": True})
    with fleet.core.transaction() as tx:
        tx.put(replace(record, assignment=replace(assignment, resources=on_a_mac)))
    fleet.clock.advance(60)
    [account] = usage(fleet.core).accounts
    assert account.device_seconds == 60.0


def test_an_end_is_counted_from_ready_on_with_the_time_to_stop() -> None:
    """Until then it counts from the placement, with all that may take time."""
    fleet = limited(whole=600)
    agent = fleet.machine()
    record = fleet.ask(class_name="whole")
    catalog = fleet.catalogs.catalog
    placed = fleet.clock.now().timestamp()
    slow = held_by(catalog, record).ends_by
    assert slow is not None
    assert slow >= placed + 600 + 1800 + 120
    fleet.clock.advance(50)
    agent.serve(allocation_of(record))
    assert held_by(catalog, fleet.get(record)).ends_by == placed + 50 + 600 + 10
    fleet.clock.advance(100_000)
    agent.disconnect()
    assert held_by(catalog, fleet.get(record)).ends_by == placed + 50 + 600 + 10


def test_a_machine_that_is_away_for_a_moment_breaks_no_promise() -> None:
    """Its link broke; its agent is about to dial again."""
    fleet = limited(whole=600)
    agent = fleet.machine()
    a_ready_server(fleet, agent)
    waiting = fleet.ask(2, class_name="whole")
    promised = fleet.get(waiting).promise
    assert promised is not None
    agent.disconnect()
    fleet.cycle()
    entry = fleet.core.engine.planner(fleet.clock.now()).fleet.entries["box"]
    assert entry.machine.expected_back
    agent.connect()
    fleet.cycle()
    assert fleet.get(waiting).promise == promised
    told = [
        event.explanation.reason
        for event in fleet.store.events(waiting.id)
        if event.explanation is not None
    ]
    assert Reason.PROMISE_BROKEN not in told


def test_nothing_is_placed_on_a_machine_whose_link_has_just_broken() -> None:
    """Silence frees nothing, and nothing new is sent into it."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    assert fleet.ask().state is State.QUEUED


def test_a_cycle_tells_the_new_ones_before_it_is_over() -> None:
    """Who has just asked gets the reason with the same decision, not a moment later."""
    fleet = Fleet()
    record = ask(fleet.core, an_ask())
    run_cycle(fleet.core)
    told = fleet.get(record)
    assert told.state is State.QUEUED
    assert told.explanation is not None
    assert told.explanation.reason is Reason.NO_MACHINES
    assert not fleet.core.wanted, "what the cycle itself changed needs no second look"


def test_who_starts_does_not_wait_any_more() -> None:
    """Nothing of its wait is shown, nor remembered, once it has its place."""
    fleet = Fleet()
    record = fleet.ask()
    assert wait_of(fleet.core, record) is not None
    fleet.machine()
    placed = fleet.get(record)
    assert placed.state is State.PLACED
    assert wait_of(fleet.core, placed) is None
    assert record.id not in fleet.core.model.waits
    assert placed.explanation is None


def test_a_wait_is_never_shorter_than_nothing() -> None:
    """The clock went back between asking and the turn."""
    fleet = Fleet()
    record = fleet.ask()
    fleet.clock.advance(-3600)
    fleet.machine()
    decided = fleet.get(record).decided
    assert decided is not None
    assert decided.waited == 0.0


def test_a_deleted_server_leaves_nothing_in_memory() -> None:
    """Neither its wait nor its progress."""
    fleet = Fleet()
    waits = fleet.ask(1)
    stopping.retire(fleet.core, waits)
    assert waits.id not in fleet.core.model.waits
    agent = fleet.machine()
    runs = fleet.ask(2)
    agent.report(allocation_of(runs), AgentEvent.ACCEPTED)
    step = Progress(step="install_packages", done=1)
    agent.report(allocation_of(runs), AgentEvent.PROGRESS, progress=step)
    stopping.retire(fleet.core, fleet.get(runs))
    agent.report(allocation_of(runs), AgentEvent.ENDED)
    assert runs.id not in fleet.core.model.progress


def test_no_ref_is_in_what_an_agent_says_of_its_work() -> None:
    """Neither in a reason nor in the progress of a step."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    allocation = allocation_of(record)
    agent.report(allocation, AgentEvent.ACCEPTED)
    step = Progress(step="install secret-ref", unit="parts of secret-ref", done=1)
    agent.report(allocation, AgentEvent.PROGRESS, progress=step)
    tick(fleet.core)
    why = Explanation(
        reason=Reason.START_FAILED, subject="secret-ref", detail="no secret-ref, sorry"
    )
    agent.report(allocation, AgentEvent.FAILED, explanation=why)
    told = fleet.store.events(record.id)
    assert "secret-ref" not in "".join(event.model_dump_json() for event in told)
    assert told[-1].explanation is not None
    assert told[-1].explanation.detail == "no the runtime, sorry"
    assert told[-1].explanation.subject == "the runtime"


def test_a_word_that_only_contains_a_ref_is_left_as_it_is() -> None:
    """``jupyter-secret-reference`` is another thing."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    why = Explanation(reason=Reason.START_FAILED, detail="my-secret-ref secret-refs")
    agent.report(allocation_of(record), AgentEvent.FAILED, explanation=why)
    ended = fleet.get(record).explanation
    assert ended is not None
    assert ended.detail == "my-secret-ref secret-refs"
