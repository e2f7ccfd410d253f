"""From asking to a ready server, with an agent and a Hub that the test plays."""

from __future__ import annotations

import pytest
from fleet_builders import a_principal
from fleet_controller import Fleet, an_ask

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent, Launch
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress, TimelineKind
from fleet_contracts.workloads import Choice
from fleet_hub.admission import Outcome, OutcomeKind, Update
from fleet_hub.controller import asking, offering, stopping
from fleet_hub.controller.attendance import Attendance
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.lifecycle import TOKEN_VARIABLE
from fleet_hub.controller.timelines import timeline_of


def kinds(fleet: Fleet, workload: str) -> list[str]:
    """Return the timeline's entries by kind."""
    return [event.kind.value for event in fleet.store.events(workload)]


def test_a_free_machine_is_given_at_once_and_told_after_the_store() -> None:
    """Placed, launched with the whole environment, and nothing waited."""
    fleet = Fleet()
    agent = fleet.machine()
    request = an_ask()
    record = asking.ask(fleet.core, request)
    fleet.core.attended[record.id] = 1
    fleet.cycle()
    record = fleet.get(record)
    assert record.state is State.PLACED
    (launch,) = [message for message in agent.heard if isinstance(message, Launch)]
    assert record.assignment is not None
    assert launch.allocation == record.assignment.allocation
    assert launch.spec.environment["JUPYTERHUB_API_TOKEN"] == "hub-token-of-first"
    assert launch.spec.environment[TOKEN_VARIABLE]
    assert launch.spec.owner == "alice"
    assert kinds(fleet, record.id) == ["asked", "placed"]


def test_a_server_becomes_ready_and_its_secrets_are_scrubbed() -> None:
    """Every step is told, the URL is known, and the environment is gone."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    assert record.assignment is not None
    agent.serve(record.assignment.allocation)
    record = fleet.get(record)
    assert record.state is State.READY
    assert record.url == f"http://127.0.0.1:5000/{record.assignment.allocation}/"
    assert fleet.store.secrets(record.id) is None
    assert record.home is not None
    assert record.home.machine == "box"
    assert kinds(fleet, record.id) == [
        "asked",
        "placed",
        "preparing",
        "starting",
        "ready",
    ]


def test_a_full_machine_makes_the_next_one_wait_with_the_reason() -> None:
    """The line keeps its order, and the end of one starts the next at once."""
    fleet = Fleet()
    agent = fleet.machine()
    first = fleet.ask(1, class_name="whole")
    second = fleet.ask(2, class_name="whole")
    third = fleet.ask(3, class_name="whole")
    assert fleet.get(second).state is State.QUEUED
    assert fleet.core.model.waits[second.id].position == 0
    assert fleet.core.model.waits[third.id].position == 1
    explanation = fleet.get(second).explanation
    assert explanation is not None
    assert explanation.reason is Reason.CPU_BUSY
    assert [holder.workload for holder in explanation.holders] == [first.id]

    assert first.assignment is not None
    agent.serve(first.assignment.allocation)
    stopping.stop(fleet.core, fleet.get(first))
    fleet.cycle()
    assert fleet.get(second).state is State.QUEUED, "nothing is free before the end"
    agent.report(first.assignment.allocation, AgentEvent.ENDED)
    fleet.cycle()
    assert fleet.get(first).state is State.STOPPED
    assert fleet.get(second).state is State.PLACED
    assert fleet.get(third).state is State.QUEUED


def test_waiting_is_told_when_its_reason_changes_and_not_each_cycle() -> None:
    """A hundred cycles without news write nothing."""
    fleet = Fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    second = fleet.ask(2, class_name="whole")
    for _ in range(100):
        fleet.cycle()
    assert kinds(fleet, second.id) == ["asked", "waiting"]


def test_asking_again_keeps_the_place_and_takes_the_new_environment() -> None:
    """The same choice is the same place; the old token is gone from the store."""
    fleet = Fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    second = fleet.ask(2, class_name="whole")
    third = fleet.ask(3, class_name="whole")
    again = fleet.ask(2, class_name="whole", attempt="second")
    assert again.id == second.id
    assert again.generation == second.generation
    assert again.line < third.line
    secrets = fleet.store.secrets(second.id)
    assert secrets is not None
    assert secrets.environment["JUPYTERHUB_API_TOKEN"] == "hub-token-of-second"


def test_another_choice_is_another_place() -> None:
    """Who changes what they ask for goes to the end of the line."""
    fleet = Fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    second = fleet.ask(2, class_name="whole")
    third = fleet.ask(3, class_name="whole")
    changed = fleet.ask(2, class_name="small", attempt="second")
    assert changed.id == second.id
    assert changed.generation == second.generation + 1
    assert changed.line > third.line
    assert "stopped" in kinds(fleet, second.id)


def test_an_unknown_profile_is_refused_and_leaves_nothing() -> None:
    """A wrong request makes no workload."""
    fleet = Fleet()
    with pytest.raises(RequestRefusedError) as caught:
        asking.ask(fleet.core, an_ask(profile="nonsense"))
    assert caught.value.explanation.reason is Reason.PROFILE_UNKNOWN
    assert fleet.core.model.workloads == {}


def test_native_execution_is_refused_for_whoever_does_not_own_the_machine() -> None:
    """The refusal is final, has its reason, and holds nothing."""
    fleet = Fleet()
    fleet.machine(owner="alice")
    guest = fleet.ask(principal=a_principal("bob", 2))
    assert guest.state is State.REFUSED
    assert guest.explanation is not None
    assert guest.explanation.reason is Reason.ISOLATION_TOO_WEAK
    assert fleet.store.secrets(guest.id) is None
    assert kinds(fleet, guest.id) == ["asked", "refused"]


@pytest.mark.asyncio
async def test_a_late_refusal_says_what_an_early_one_says() -> None:
    """The fleet may know a moment later whose machine it is: one "no", one sentence."""
    fleet = Fleet()
    bob = a_principal("bob", 2)
    told = Attendance(fleet.core, an_ask(principal=bob)).messages()
    assert isinstance(await anext(told), Update)
    fleet.machine(owner="alice")
    fleet.cycle()
    late = [message async for message in told][-1]
    early = offering.validate(fleet.core, bob, {"profile": "jupyter"})
    assert isinstance(late, Outcome)
    assert late.kind is OutcomeKind.REFUSED
    assert late.explanation == early.explanation
    assert late.headline == early.headline


def test_without_a_machine_one_waits() -> None:
    """An empty fleet is a matter of now, not of never."""
    fleet = Fleet()
    record = fleet.ask()
    assert record.state is State.QUEUED
    assert record.explanation is not None
    assert record.explanation.reason is Reason.NO_MACHINES


def test_a_rejection_keeps_the_place_and_rests_the_machine() -> None:
    """The workload waits in front of later ones; the machine is tried again later."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    assert record.assignment is not None
    agent.report(
        record.assignment.allocation,
        AgentEvent.REJECTED,
        explanation=Explanation(reason=Reason.SELECTION_MISMATCH),
    )
    back = fleet.get(record)
    assert back.state is State.QUEUED
    assert back.line == record.line
    assert back.rejections == 1
    fleet.cycle()
    assert fleet.get(record).state is State.QUEUED, "not the same machine at once"
    from fleet_hub.controller.ticking import tick  # noqa: PLC0415

    fleet.clock.advance(61)
    tick(fleet.core)
    fleet.cycle()
    again = fleet.get(record)
    assert again.state is State.PLACED
    assert again.assignment is not None
    assert again.assignment.epoch > record.assignment.epoch


def test_a_failure_passes_the_agents_reason_on() -> None:
    """What the machine says is what the user reads."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    assert record.assignment is not None
    agent.report(record.assignment.allocation, AgentEvent.ACCEPTED)
    agent.report(
        record.assignment.allocation,
        AgentEvent.FAILED,
        explanation=Explanation(reason=Reason.DISK_FULL),
    )
    failed = fleet.get(record)
    assert failed.state is State.FAILED
    assert failed.explanation is not None
    assert failed.explanation.reason is Reason.DISK_FULL
    assert not failed.holds
    assert fleet.store.secrets(record.id) is None


def test_progress_is_one_entry_per_step() -> None:
    """The newest of each step, written when the clock ticks."""
    from fleet_hub.controller.ticking import tick  # noqa: PLC0415

    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    assert record.assignment is not None
    agent.report(record.assignment.allocation, AgentEvent.ACCEPTED)
    for done in range(1, 50):
        agent.report(
            record.assignment.allocation,
            AgentEvent.PROGRESS,
            progress=Progress(step="install_packages", done=done, total=50),
        )
        if done % 7 == 0:
            tick(fleet.core)
    tick(fleet.core)
    progress = [
        event.progress
        for event in fleet.store.events(record.id)
        if event.kind is TimelineKind.PROGRESS
    ]
    assert [item.done for item in progress if item] == [49]


def test_a_restart_of_a_notebook_returns_to_its_machine() -> None:
    """A second machine that would serve as well is not taken."""
    fleet = Fleet()
    fleet.machine("zebra")
    record = fleet.ask()
    assert record.assignment is not None
    fleet.agents["zebra"].serve(record.assignment.allocation)
    stopping.stop(fleet.core, fleet.get(record))
    fleet.agents["zebra"].report(record.assignment.allocation, AgentEvent.ENDED)
    fleet.machine("aardvark")
    again = fleet.ask(attempt="second")
    assert again.generation == 2
    assert again.assignment is not None
    assert again.assignment.machine == "zebra"
    assert again.notebook == record.notebook


def test_the_timeline_of_a_new_launch_begins_anew() -> None:
    """The current generation has all its steps; earlier ones are only told of."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    assert record.assignment is not None
    agent.serve(record.assignment.allocation)
    stopping.stop(fleet.core, fleet.get(record))
    agent.report(record.assignment.allocation, AgentEvent.ENDED)
    again = fleet.ask(attempt="second")
    document = timeline_of(fleet.core, fleet.get(again))
    current = [event for event in document.events if event.generation == 2]
    assert [event.kind for event in current] == [
        TimelineKind.ASKED,
        TimelineKind.PLACED,
    ]
    assert document.events[-2:] == tuple(current)
    assert not document.truncated
    assert "secret-ref" not in document.model_dump_json()


def test_a_choice_without_a_class_means_the_first() -> None:
    """The class is named in the record, so that a later catalog changes nothing."""
    fleet = Fleet()
    fleet.machine()
    record = fleet.ask(class_name=None)
    assert record.choice == Choice.model_validate(
        {"profile": "jupyter", "class": "small"}
    )


def test_a_workload_keeps_the_version_of_the_profile_that_it_was_placed_with() -> None:
    """A later edit changes what is offered, and not what is told of what runs."""
    fleet = Fleet()
    agent = fleet.machine()
    running = fleet.ask(1, class_name="whole")
    waiting = fleet.ask(2, class_name="small")
    catalog = fleet.catalogs.catalog
    (profile,) = catalog.profiles
    newer = profile.model_copy(update={"version": "2"})
    fleet.catalogs.catalog = catalog.model_copy(update={"profiles": (newer,)})
    fleet.core.want_cycle()
    fleet.cycle()
    assert timeline_of(fleet.core, fleet.get(running)).profile_version == "1"
    assert running.assignment is not None
    stopping.stop(fleet.core, fleet.get(running), by="user")
    agent.report(running.assignment.allocation, AgentEvent.ENDED)
    fleet.cycle()
    assert timeline_of(fleet.core, fleet.get(running)).profile_version == "1"
    assert fleet.get(waiting).holds
    assert timeline_of(fleet.core, fleet.get(waiting)).profile_version == "2"
