"""A machine's members: between its owner and everybody, and named in its record."""

from __future__ import annotations

import pytest
from controller_catalogs import through
from fleet_builders import a_principal
from fleet_controller import Fleet
from scheduling_builders import some_facts

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Relation
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName, Principal
from fleet_hub.controller import enrolling, governing
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.records import Workload
from fleet_hub.service.deeds import DEEDS, LONGEST_NAME, MOST_MEMBERS


ALICE = Actor(name="alice", role=ActorRole.OWNER)
ROOT = Actor(name="root", role=ActorRole.ADMIN)
BOB = a_principal("bob", 2)
CAROL = a_principal("carol", 3).model_copy(update={"groups": ("bio",)})
DAVE = a_principal("dave", 4)


def a_fleet(driver: DriverName = DriverName.DOCKER) -> Fleet:
    """Return alice's machine, which offers *driver* alone."""
    fleet = Fleet(catalog=through(driver))
    fleet.machine()
    fleet.core.model.presence["box"].facts = some_facts(drivers={driver: True})
    fleet.core.model.stirred.add("box")
    fleet.cycle()
    return fleet


def with_members(fleet: Fleet, choice: str) -> None:
    """Let alice say who the members are, as the page does."""
    DEEDS["members"].run(fleet.core, ALICE, "box", choice)
    fleet.cycle()


def lend(fleet: Fleet, owner: Relation, admin: Relation) -> None:
    """Let owner and admin say how far it serves."""
    governing.set_lending(fleet.core, ALICE, "box", owner)
    governing.set_audience(fleet.core, ROOT, "box", admin)


def state(fleet: Fleet, principal: Principal, server: int = 1) -> State:
    """Return what becomes of a start of *principal*."""
    return fleet.ask(server, principal=principal).state


def test_members_are_served_where_owner_and_admin_let_them() -> None:
    """By name or by group, and nobody else; after a restart as before."""
    fleet = a_fleet()
    lend(fleet, Relation.MEMBER, Relation.MEMBER)
    assert state(fleet, BOB) is State.REFUSED
    with_members(fleet, "bob, @bio")
    assert state(fleet, BOB, 2) is State.PLACED
    assert state(fleet, CAROL) is State.PLACED
    assert state(fleet, DAVE) is State.REFUSED
    again = fleet.restarted()
    again.agents["box"].connect()
    again.core.model.presence["box"].facts = some_facts(
        drivers={DriverName.DOCKER: True}
    )
    again.core.model.stirred.add("box")
    again.cycle()
    assert state(again, BOB, 3) is State.PLACED
    with_members(again, "@bio")
    assert state(again, BOB, 4) is State.REFUSED
    assert state(again, CAROL, 2) is State.PLACED


@pytest.mark.parametrize(
    ("owner", "admin", "reason"),
    [
        (Relation.OWNER, Relation.GUEST, Reason.OWNER_FORBIDS),
        (Relation.GUEST, Relation.OWNER, Reason.NOT_IN_AUDIENCE),
    ],
)
def test_the_list_widens_nothing_by_itself(
    owner: Relation, admin: Relation, reason: Reason
) -> None:
    """The stricter word counts for members as for everybody."""
    fleet = a_fleet()
    lend(fleet, owner, admin)
    with_members(fleet, "bob")
    refused = fleet.ask(principal=BOB)
    assert refused.state is State.REFUSED
    assert refused.explanation is not None
    assert refused.explanation.reason is reason


def test_weak_isolation_serves_no_member() -> None:
    """The sandbox is the owner's alone, whoever is named."""
    fleet = a_fleet(DriverName.NATIVE)
    lend(fleet, Relation.GUEST, Relation.GUEST)
    with_members(fleet, "bob")
    refused = fleet.ask(principal=BOB)
    assert refused.explanation is not None
    assert refused.explanation.reason is Reason.ISOLATION_TOO_WEAK


def test_another_owner_begins_without_members() -> None:
    """Whoever gets the machine names their own."""
    fleet = a_fleet()
    with_members(fleet, "bob")
    # Its owner is gone: somebody else has their name by now.
    fleet.ask(principal=a_principal("alice", 1))
    fleet.ask(2, principal=a_principal("alice", 9))
    code = enrolling.make_code(fleet.core, ROOT, name="box", owner="eve", local=True)
    record, _ = enrolling.exchange(fleet.core, code)
    assert (record.members, record.member_groups) == ((), ())


@pytest.mark.parametrize(
    "choice",
    [
        "@",
        "bob, @",
        "bo\x00b",
        "x" * (LONGEST_NAME + 1),
        ",".join(f"u{number}" for number in range(MOST_MEMBERS + 1)),
    ],
)
def test_what_names_nobody_changes_nothing(choice: str) -> None:
    """It says how to write members."""
    fleet = a_fleet()
    with_members(fleet, " bob ,, bob,@bio")
    with pytest.raises(RequestRefusedError):
        with_members(fleet, choice)
    record = fleet.core.model.machines["box"]
    assert (record.members, record.member_groups) == (("bob",), ("bio",))
    (noted,) = [
        item.entry
        for item in fleet.store.audit(limit=10)
        if item.entry.action is Action.MEMBERS_SET
    ]
    assert (noted.actor, noted.detail) == ("alice", "bob, @bio")


# ------------------------------------------- between a turn and who comes for it


def a_turn_of_carol(driver: DriverName = DriverName.DOCKER) -> tuple[Fleet, Workload]:
    """Return a place that waits for carol's start, whom the machine serves by her group."""
    fleet = a_fleet(driver)
    lend(fleet, Relation.MEMBER, Relation.MEMBER)
    with_members(fleet, "@bio")
    record = fleet.ask(principal=CAROL, attended=False)
    assert record.state is State.PLACED
    assert fleet.agents["box"].launched == {}
    return fleet, record


def comes(fleet: Fleet, principal: Principal) -> Workload:
    """Let the Hub come for the turn, as somebody who is *principal* by now."""
    return fleet.ask(principal=principal, attempt="second")


def test_who_left_the_group_before_their_turn_is_launched_nowhere() -> None:
    """The machine serves them no more, so they are told no, and nothing is held."""
    fleet, record = a_turn_of_carol()
    left = comes(fleet, CAROL.model_copy(update={"groups": ()}))
    assert left.id == record.id
    assert (left.state, left.assignment) == (State.REFUSED, None)
    assert left.explanation is not None
    assert left.explanation.reason is Reason.OWNER_FORBIDS
    assert fleet.agents["box"].launched == {}
    assert fleet.core.model.issued == {}
    assert state(fleet, CAROL, 2) is State.PLACED


@pytest.mark.parametrize("narrowed", ["members", "admin", "owner"])
def test_an_audience_that_was_narrowed_before_the_turn_counts(narrowed: str) -> None:
    """Whoever said it last: the list, an admin, the owner."""
    fleet, _ = a_turn_of_carol()
    if narrowed == "members":
        with_members(fleet, "bob")
    elif narrowed == "admin":
        governing.set_audience(fleet.core, ROOT, "box", Relation.OWNER)
    else:
        governing.set_lending(fleet.core, ALICE, "box", Relation.OWNER)
    assert comes(fleet, CAROL).state is State.REFUSED
    assert fleet.agents["box"].launched == {}


def test_who_finds_the_audience_as_it_was_starts() -> None:
    """And what runs already is left alone when it is narrowed later."""
    fleet, _ = a_turn_of_carol()
    record = comes(fleet, CAROL)
    assert record.assignment is not None
    fleet.agents["box"].serve(record.assignment.allocation)
    with_members(fleet, "bob")
    assert comes(fleet, CAROL).state is State.READY
    assert fleet.agents["box"].stops() == []


def test_a_turn_on_a_machine_that_serves_no_more_goes_to_another() -> None:
    """Its place in the line was kept, and says what happened."""
    fleet, _ = a_turn_of_carol()
    fleet.machine("other", owner="carol")
    fleet.core.model.presence["other"].facts = some_facts(
        drivers={DriverName.DOCKER: True}
    )
    fleet.core.model.stirred.add("other")
    with_members(fleet, "bob")
    record = comes(fleet, CAROL)
    assert record.assignment is not None
    assert record.assignment.machine == "other"
    told = [
        event.explanation
        for event in fleet.store.events(record.id)
        if event.explanation and event.explanation.machine == "box"
    ]
    assert told[-1].reason is Reason.OWNER_FORBIDS
