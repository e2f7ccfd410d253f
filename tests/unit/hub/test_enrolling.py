"""Codes, tokens and whom a machine serves."""

from __future__ import annotations

from contextlib import suppress

import pytest
from fleet_builders import a_principal
from fleet_controller import Fleet

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Relation
from fleet_contracts.protocol import Goodbye
from fleet_hub.controller import enrolling, governing
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.errors import CodeRefusedError, RequestRefusedError
from fleet_hub.controller.ticking import tick


ALICE = Actor(name="alice", role=ActorRole.OWNER)
ROOT = Actor(name="root", role=ActorRole.ADMIN)


def a_code(fleet: Fleet, name: str = "box", owner: str = "alice") -> str:
    """Return a fresh code."""
    return enrolling.make_code(fleet.core, ALICE, name=name, owner=owner)


def actions(fleet: Fleet) -> list[Action]:
    """Return what the audit log tells, oldest first."""
    return [item.entry.action for item in reversed(fleet.store.audit())]


def test_a_code_becomes_a_machine_of_its_owner_once() -> None:
    """Neither code nor token is kept, only what recognises them."""
    fleet = Fleet()
    code = a_code(fleet)
    assert code not in repr(fleet.core.model.codes)
    record, token = enrolling.exchange(fleet.core, code)
    assert (record.name, record.owner, record.local) == ("box", "alice", False)
    assert (record.admin_allows, record.owner_allows) == (Relation.OWNER,) * 2
    assert enrolling.machine_of(fleet.core, token) == "box"
    assert token not in repr(record)
    with pytest.raises(CodeRefusedError):
        enrolling.exchange(fleet.core, code)
    assert actions(fleet) == [Action.CODE_MADE, Action.ENROLLED]


def test_a_used_code_stays_used_after_a_restart() -> None:
    """And an open one stays open."""
    fleet = Fleet()
    used, kept = a_code(fleet), a_code(fleet, "other")
    enrolling.exchange(fleet.core, used)
    again = fleet.restarted()
    with pytest.raises(CodeRefusedError):
        enrolling.exchange(again.core, used)
    record, _ = enrolling.exchange(again.core, kept)
    assert record.name == "other"


def test_a_code_is_valid_for_fifteen_minutes() -> None:
    """Then it buys nothing, and is forgotten by itself."""
    fleet = Fleet()
    code = a_code(fleet)
    fleet.clock.advance(15 * 60)
    with pytest.raises(CodeRefusedError):
        enrolling.exchange(fleet.core, code)
    tick(fleet.core)
    assert fleet.core.model.codes == {}
    assert fleet.store.load().codes == ()


@pytest.mark.parametrize("code", ["", "enrol-", "nonsense", "0" * 64])
def test_a_code_that_was_never_given_is_refused(code: str) -> None:
    """A hash of a code is no code either."""
    fleet = Fleet()
    given = a_code(fleet)
    for wrong in (code, enrolling.hash_of(given)):
        with pytest.raises(CodeRefusedError):
            enrolling.exchange(fleet.core, wrong)


def test_the_name_of_somebody_elses_machine_is_taken() -> None:
    """Of one that joined and of one that is about to; the owner may join again."""
    fleet = Fleet()
    code = a_code(fleet)
    with pytest.raises(RequestRefusedError):
        a_code(fleet, owner="bob")
    _, first = enrolling.exchange(fleet.core, code)
    with pytest.raises(RequestRefusedError):
        a_code(fleet, owner="bob")
    _, second = enrolling.exchange(fleet.core, a_code(fleet))
    assert enrolling.machine_of(fleet.core, first) is None
    assert enrolling.machine_of(fleet.core, second) == "box"


def test_nobody_has_more_than_twenty_open_codes() -> None:
    """Somebody else may still have one, and expired ones do not count."""
    fleet = Fleet()
    for number in range(enrolling.MOST_CODES_OF_ONE):
        a_code(fleet, f"box-{number}")
    with pytest.raises(RequestRefusedError):
        a_code(fleet, "one-more")
    a_code(fleet, "bobs", "bob")
    fleet.clock.advance(15 * 60)
    a_code(fleet, "one-more")


def test_a_rotated_token_ends_the_link_and_leaves_the_notebook() -> None:
    """The agent is told for good; with the new code it is let in again."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.serve(next(iter(agent.launched)))
    code = enrolling.rotate(fleet.core, ALICE, "box")
    goodbye = agent.heard[-1]
    assert isinstance(goodbye, Goodbye)
    assert (goodbye.code, goodbye.retry) == ("revoked", False)
    assert agent.session is None
    assert fleet.get(record).state is State.READY
    _, token = enrolling.exchange(fleet.core, code)
    assert enrolling.machine_of(fleet.core, token) == "box"


def test_a_revoked_machine_cannot_come_back_with_an_open_code() -> None:
    """What was open for it is withdrawn with the token."""
    fleet = Fleet()
    _, token = enrolling.exchange(fleet.core, a_code(fleet))
    code = a_code(fleet)
    enrolling.revoke(fleet.core, ROOT, "box")
    assert enrolling.machine_of(fleet.core, token) is None
    assert enrolling.machine_of(fleet.core, "") is None
    with pytest.raises(CodeRefusedError):
        enrolling.exchange(fleet.core, code)


def test_a_drained_machine_takes_nothing_new_until_it_is_resumed() -> None:
    """What runs there runs on, and an admin's word outlives the owner's."""
    fleet = Fleet()
    agent = fleet.machine()
    runs = fleet.ask()
    agent.serve(next(iter(agent.launched)))
    governing.drain(fleet.core, ALICE, "box")
    waits = fleet.ask(2)
    assert fleet.get(runs).state is State.READY
    assert fleet.get(waits).state is State.QUEUED
    governing.drain(fleet.core, ROOT, "box")
    with pytest.raises(RequestRefusedError):
        governing.resume(fleet.core, ALICE, "box")
    governing.resume(fleet.core, ROOT, "box")
    fleet.cycle()
    assert fleet.get(waits).state is State.PLACED


def test_a_new_machine_serves_its_owner_alone_whatever_one_side_says() -> None:
    """The stricter of admin and owner wins; weak isolation is never lent."""
    fleet = Fleet()
    fleet.machine()
    bob = a_principal("bob", 2)
    record = fleet.ask(principal=bob)
    assert fleet.get(record).state is State.REFUSED
    governing.set_audience(fleet.core, ROOT, "box", Relation.GUEST)
    governing.set_lending(fleet.core, ALICE, "box", Relation.GUEST)
    record = fleet.ask(principal=bob)
    assert fleet.get(record).state is State.REFUSED


def test_a_second_agent_is_told_of_once_an_hour() -> None:
    """The count goes on, the log is not flooded."""
    fleet = Fleet()
    fleet.machine()
    for _ in range(3):
        governing.report_second_link(fleet.core, "box")
    assert actions(fleet).count(Action.SECOND_LINK_REFUSED) == 1
    assert fleet.core.model.second_links["box"].count == 3
    fleet.clock.advance(3600)
    governing.report_second_link(fleet.core, "box")
    assert actions(fleet).count(Action.SECOND_LINK_REFUSED) == 2


def test_the_hour_of_a_second_agent_runs_from_when_it_was_told_of_last() -> None:
    """One that tries all the time is told of again, and not put off by each try."""
    fleet = Fleet()
    fleet.machine()
    told = []
    for _ in range(5):
        governing.report_second_link(fleet.core, "box")
        told.append(actions(fleet).count(Action.SECOND_LINK_REFUSED))
        fleet.clock.advance(1200)
    assert told == [1, 1, 1, 2, 2]


def test_a_code_keeps_who_supplies_the_machine_until_it_is_used() -> None:
    """Across a restart; a code that names nobody leaves the machine its owner's."""
    fleet = Fleet()
    supplied = enrolling.make_code(
        fleet.core, ROOT, name="box", owner="alice", provider="university"
    )
    plain = a_code(fleet, "other")
    core = fleet.restarted().core
    record, _ = enrolling.exchange(core, supplied)
    other, _ = enrolling.exchange(core, plain)
    assert (record.supplier, other.supplier) == ("university", "alice")


def test_a_machine_stays_with_its_owner_when_names_change() -> None:
    """Whoever got the earlier name owns nothing of it, and runs nothing there."""
    fleet = Fleet()
    fleet.machine()
    alice = a_principal("alice", 1)
    first = fleet.ask(principal=alice)
    assert fleet.core.model.machines["box"].owner_id == 1
    fleet.ask(principal=a_principal("alicia", 1))
    assert fleet.core.model.machines["box"].owner == "alicia"
    assert fleet.get(first).state is State.PLACED

    stranger = fleet.ask(2, principal=a_principal("alice", 9))
    assert fleet.get(stranger).state is State.REFUSED
    assert fleet.core.model.machines["box"].owner == "alicia"


def test_who_gets_a_gone_owners_name_gets_no_machine() -> None:
    """The owner never came back under another name, so nobody owns it now."""
    fleet = Fleet()
    fleet.machine()
    fleet.ask(principal=a_principal("alice", 1))
    stranger = fleet.ask(2, principal=a_principal("alice", 9))
    assert fleet.get(stranger).state is State.REFUSED
    assert fleet.core.model.machines["box"].owner == ""
    governing.set_audience(fleet.core, ROOT, "box", Relation.GUEST)
    for actor, owner in ((ALICE, "alice"), (ROOT, "alice")):
        with suppress(RequestRefusedError):
            code = enrolling.make_code(
                fleet.core, actor, name="box", owner=owner, local=True
            )
            assert actor is ROOT, "only an admin gives it away"
    record, _ = enrolling.exchange(fleet.core, code)
    assert record.admin_allows is Relation.OWNER
    fleet.agents["box"].connect()
    again = fleet.ask(3, principal=a_principal("alice", 9))
    assert fleet.core.model.machines["box"].owner_id == 9
    assert fleet.get(again).state is not State.REFUSED


def test_a_revoked_machine_is_sent_away_at_once_and_its_notebook_runs_on() -> None:
    """Its token is nobody's; the log says who took it back."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    assert record.assignment is not None
    agent.serve(record.assignment.allocation)
    enrolling.revoke(fleet.core, ROOT, "box")
    assert agent.session is None
    assert isinstance(agent.heard[-1], Goodbye)
    assert fleet.get(record).state is State.READY
    machine = fleet.core.model.machines["box"]
    assert machine.token_hash == ""
    assert fleet.core.model.machine_of_token("") is None
    [newest, *_] = fleet.store.audit(target="box")
    assert (newest.entry.actor, newest.entry.action) == ("root", Action.REVOKED)


def test_a_rotated_token_leaves_the_codes_of_other_machines_alone() -> None:
    """The earlier codes of this one are void with the token."""
    fleet = Fleet()
    fleet.machine()
    mine = enrolling.make_code(fleet.core, ALICE, name="box", owner="alice", local=True)
    others = a_code(fleet, "other")
    new = enrolling.rotate(fleet.core, ROOT, "box")
    with pytest.raises(CodeRefusedError):
        enrolling.exchange(fleet.core, mine)
    enrolling.exchange(fleet.core, new)
    enrolling.exchange(fleet.core, others)
    assert Action.ROTATED in actions(fleet)


@pytest.mark.parametrize(
    ("name", "owner", "fault"),
    [
        ("No Name", "alice", "name"),
        ("../box", "alice", "name"),
        ("box", "", "owner"),
        ("box", "a" * 256, "name"),
    ],
)
def test_a_machine_needs_a_name_like_a_hosts_and_an_owner(
    name: str, owner: str, fault: str
) -> None:
    """Whoever enrols it, and however."""
    fleet = Fleet()
    for enrol in (
        lambda: enrolling.enrol(fleet.core, name=name, owner=owner, local=True),
        lambda: enrolling.make_code(fleet.core, ROOT, name=name, owner=owner),
    ):
        with pytest.raises(RequestRefusedError) as refused:
            enrol()
        assert refused.value.explanation.subject == fault
        assert refused.value.explanation.detail
    assert fleet.core.model.machines == {}
    assert fleet.core.model.codes == {}


def test_who_may_drain_and_resume_and_what_the_log_keeps_of_it() -> None:
    """An owner does not undo an admin's word; twice is once."""
    fleet = Fleet()
    fleet.machine()
    for _ in range(2):
        governing.drain(fleet.core, ALICE, "box")
    assert fleet.core.model.machines["box"].draining_by == governing.BY_OWNER
    governing.drain(fleet.core, ROOT, "box")
    assert fleet.core.model.machines["box"].draining_by == governing.BY_ADMIN
    governing.drain(fleet.core, ALICE, "box")
    assert fleet.core.model.machines["box"].draining_by == governing.BY_ADMIN
    with pytest.raises(RequestRefusedError) as refused:
        governing.resume(fleet.core, ALICE, "box")
    assert "only an admin" in (refused.value.explanation.detail or "")
    for _ in range(2):
        governing.resume(fleet.core, ROOT, "box")
    governing.drain(fleet.core, ALICE, "box")
    governing.resume(fleet.core, ALICE, "box")
    told = [
        (item.entry.actor, item.entry.action)
        for item in reversed(fleet.store.audit(target="box"))
        if item.entry.action in {Action.DRAINED, Action.RESUMED}
    ]
    assert told == [
        ("alice", Action.DRAINED),
        ("root", Action.DRAINED),
        ("root", Action.RESUMED),
        ("alice", Action.DRAINED),
        ("alice", Action.RESUMED),
    ]


def test_whom_a_machine_serves_is_in_the_log_in_words() -> None:
    """By an admin's word and by its owner's, with members and labels as written."""
    fleet = Fleet()
    agent = fleet.machine()
    core = fleet.core
    governing.set_audience(core, ROOT, "box", Relation.GUEST)
    governing.set_lending(core, ALICE, "box", Relation.MEMBER)
    governing.set_members(core, ALICE, "box", users=("bob",), groups=("staff",))
    governing.set_members(core, ALICE, "box", users=(), groups=())
    governing.set_labels(core, ROOT, "box", {"rack": "7"})
    governing.set_labels(core, ROOT, "box", {})
    assert governing.look_again(core, ROOT, "box")
    agent.disconnect()
    assert not governing.look_again(core, ROOT, "box")
    governing.declare_lost(core, ROOT, "box")
    told = [
        (item.entry.action, item.entry.detail)
        for item in reversed(fleet.store.audit(target="box"))
    ][-8:]
    assert told == [
        (Action.AUDIENCE_SET, "guest"),
        (Action.LENDING_SET, "member"),
        (Action.MEMBERS_SET, "bob, @staff"),
        (Action.MEMBERS_SET, "-"),
        (Action.LABELS_SET, "rack=7"),
        (Action.LABELS_SET, "-"),
        (Action.LOOKED_AGAIN, ""),
        (Action.DECLARED_LOST, ""),
    ]


def test_a_code_is_forgotten_as_soon_as_its_time_is_over() -> None:
    """Each at its own time, whatever others are open still."""
    fleet = Fleet()
    a_code(fleet)
    fleet.clock.advance(600)
    a_code(fleet, "other")
    fleet.clock.advance(300)
    tick(fleet.core)
    assert [code.machine for code in fleet.core.model.codes.values()] == ["other"]
    assert [code.machine for code in fleet.store.load().codes] == ["other"]


def test_a_machine_that_joins_anew_by_a_code_sends_its_earlier_agent_away() -> None:
    """Whoever has the earlier token speaks for nobody any more."""
    fleet = Fleet()
    agent = fleet.machine()
    code = enrolling.make_code(fleet.core, ALICE, name="box", owner="alice", local=True)
    enrolling.exchange(fleet.core, code)
    assert agent.session is None
    assert isinstance(agent.heard[-1], Goodbye)
