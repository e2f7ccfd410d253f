"""Asking again: what stays, what is taken over, and what begins anew."""

from __future__ import annotations

import pytest
from fleet_builders import a_principal
from fleet_controller import (
    Fleet,
    a_ready_server,
    allocation_of,
    an_ask,
    kinds,
)

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent, Launch
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import asking, enrolling, stopping
from fleet_hub.controller.asking import folder_name
from fleet_hub.controller.errors import RequestRefusedError


def test_another_choice_does_not_touch_a_server_that_was_launched() -> None:
    """It has its machine: the other choice counts from its next start on."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent, "small")
    again = fleet.ask(class_name="whole", attempt="second")
    assert again.generation == 1
    assert again.choice.class_name == "small"
    assert agent.stops() == []
    assert again.assignment == record.assignment


def test_another_choice_for_a_turn_that_nobody_claimed_gives_the_turn_back() -> None:
    """It waits at the end of the line for what is asked for now; the old turn is free."""
    fleet = Fleet()
    agent = fleet.machine()
    turn = fleet.ask(attended=False, class_name="small")
    behind = fleet.ask(2, class_name="whole")
    assert behind.state is State.QUEUED
    again = asking.ask(fleet.core, an_ask(class_name="whole", attempt="second"))
    assert again.generation == 2
    assert again.line > behind.line
    left = [
        event
        for event in fleet.store.events(turn.id)
        if event.kind is TimelineKind.STOPPED
    ]
    assert [
        (one.actor, one.explanation and one.explanation.reason) for one in left
    ] == [("user", Reason.LEFT_THE_LINE)]
    fleet.cycle()
    assert fleet.get(behind).state is State.PLACED
    assert agent.stops() == []


def test_who_asks_again_is_known_as_they_are_now() -> None:
    """Their groups, their server's name and their arguments may have changed."""
    fleet = Fleet()
    record = fleet.ask()
    grown = a_principal(groups=("staff",))
    fleet.ask(
        attempt="second",
        principal=grown,
        server_name="renamed",
        arguments=("--debug",),
    )
    known = fleet.get(record)
    assert known.principal == grown
    assert (known.server_name, known.attempt) == ("renamed", "second")
    agent = fleet.machine()
    [launch] = [message for message in agent.heard if isinstance(message, Launch)]
    assert launch.spec.arguments == ("--debug",)
    assert launch.spec.environment["JUPYTERHUB_API_TOKEN"] == "hub-token-of-second"


def test_a_parked_start_that_is_asked_for_again_is_not_parked_any_more() -> None:
    """Somebody attends it again, at the place that it kept."""
    fleet = Fleet()
    record = fleet.ask()
    stopping.park(fleet.core, record.id)
    again = fleet.ask(attempt="second")
    assert not again.parked
    assert again.line == record.line


def test_asking_again_does_not_launch_a_server_twice_that_runs_or_is_to_end() -> None:
    """Only where nothing answers yet does a new environment still help."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent, "small")
    launches = len(agent.heard)
    fleet.ask(attempt="second")
    assert len(agent.heard) == launches
    starting = fleet.ask(2)
    stopping.stop(fleet.core, starting)
    told = len(agent.heard)
    asking.ask(fleet.core, an_ask(2, attempt="second"))
    assert len(agent.heard) == told
    assert fleet.get(record).state is State.READY


def test_a_claimed_turn_is_claimed_for_good() -> None:
    """Its time to come does not run on, and its launch is not told a second time."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask(attended=False)
    asking.ask(fleet.core, an_ask(attempt="second"))
    claimed = fleet.get(record).assignment
    assert claimed is not None
    assert claimed.launched
    assert claimed.claim_by is None
    asking.ask(fleet.core, an_ask(attempt="second"))
    launches = [message for message in agent.heard if isinstance(message, Launch)]
    assert len(launches) == 1


def test_who_asks_after_a_restart_stands_behind_whoever_asked_before_it() -> None:
    """The order of asking outlives the process."""
    fleet = Fleet()
    first, second = fleet.ask(1), fleet.ask(2)
    again = fleet.restarted()
    third = again.ask(3)
    lines = [again.get(one).line for one in (first, second, third)]
    assert lines == sorted(set(lines))
    assert [one.id for one in again.core.model.waiting()] == [
        first.id,
        second.id,
        third.id,
    ]


def test_a_workload_that_was_rejected_is_held_only_where_it_went_next() -> None:
    """The machine that said no is free for the next one, and ends with nobody's loss."""
    fleet = Fleet()
    fleet.machine("one")
    fleet.machine("two")
    record = fleet.ask(class_name="whole")
    assert record.assignment is not None
    first = record.assignment.machine
    fleet.agents[first].report(allocation_of(record), AgentEvent.REJECTED)
    fleet.cycle()
    moved = fleet.get(record)
    assert moved.assignment is not None
    second = moved.assignment.machine
    assert second != first
    assert list(fleet.core.model.holders(first)) == []
    assert [one.id for one in fleet.core.model.holders(second)] == [record.id]
    fleet.agents[first].disconnect()
    stopping.declare_lost(fleet.core, first)
    assert fleet.get(record).holds


def test_a_machine_that_somebody_else_enrols_is_not_its_first_owners_any_more() -> None:
    """Not even when the first owner comes again, under a new name."""
    fleet = Fleet()
    fleet.machine(owner="alice")
    fleet.ask()
    assert fleet.core.model.machines["box"].owner_id == 1
    enrolling.enrol(fleet.core, name="box", owner="bob", local=True)
    fleet.ask(2, principal=a_principal("alicia", 1))
    machine = fleet.core.model.machines["box"]
    assert machine.owner == "bob"
    known = fleet.core.model
    assert known.not_owned_as(a_principal("alicia", 1)) == []
    assert [one.name for one in known.not_owned_as(a_principal("bob", 2))] == ["box"]


def test_a_name_that_is_given_again_brings_no_machine_with_it() -> None:
    """The Hub deleted alice, and another alice came: the machine stays the first one's."""
    fleet = Fleet()
    fleet.machine(owner="alice")
    fleet.ask()
    fleet.ask(7, principal=a_principal("alice", 99))
    machine = fleet.core.model.machines["box"]
    assert (machine.owner, machine.owner_id) == ("", 1)
    fleet.ask(attempt="second", principal=a_principal("ada", 1))
    assert fleet.core.model.machines["box"].owner == "ada"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("Alice Liddell", "alice-liddell-w1"),
        ("../../etc", "etc-w1"),
        ("日本", "user-w1"),
        ("a" * 40, f"{'a' * 30}-w1"),
        ("a" * 29 + "--b", f"{'a' * 29}-w1"),
    ],
)
def test_a_notebook_folder_has_a_name_that_is_safe_in_a_path(
    name: str, folder: str
) -> None:
    """For people it begins with the user's name; what makes it one is the workload's."""
    assert folder_name(a_principal(name), "w1") == folder


def test_what_was_refused_in_the_line_tells_that_it_was() -> None:
    """A choice that became wrong while its server waited ends with the reason."""
    fleet = Fleet()
    record = fleet.ask()
    with pytest.raises(RequestRefusedError):
        asking.ask(fleet.core, an_ask(profile="nowhere", attempt="second"))
    assert fleet.get(record).state is State.REFUSED
    assert kinds(fleet, record)[-1] is TimelineKind.REFUSED
    assert fleet.store.secrets(record.id) is None
