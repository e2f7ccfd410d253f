"""Names that look alike, or like something else, lead to nobody else's server."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fleet_builders import a_principal
from fleet_controller import Fleet, allocation_of, an_ask
from odd_names import BEYOND, LONG, ODD, PUNCTUATION

from fleet_contracts.protocol import AgentEvent
from fleet_contracts.workloads import ServerKey, WorkloadSpec
from fleet_hub.controller import asking, stopping
from fleet_hub.controller.records import Workload


ALIKE = (
    # what another spawner renders as one
    *("foo_bar", "foo-bar", "foo.bar", "foo bar", "foo_5fbar", "foo_5Fbar", "FOO_BAR"),
    # what begins, ends or looks like a part of a name of ours
    *("_leading", "-leading", "leading", "--", "_", "alice-w1", "alice-w1-2", "w1"),
    # what looks like the hash that is appended to a name
    *("x---1a2b3c4d", "x--1a2b3c4d", "x-1a2b3c4d", "a--lice", "a-lice", "alice"),
    # of other alphabets, and of none
    *(
        "日本",
        "日木",
        "🦉",
        "🦅",
        "\N{CYRILLIC SMALL LETTER A}lice",
        "ünï",
        "u\u0308nï",
    ),
    # of any length
    *("x" * 80, "x" * 81, "x" * 82, LONG, LONG[:-1] + "y"),
    *(ODD, PUNCTUATION, BEYOND, "..", ".", "../../etc", "con", "nul", "%2e%2e", "a/b"),
)
PAIRS = (
    # pairs of user and server that read the same when joined
    *(("alice", "b-c"), ("alice-b", "c"), ("alice-b-c", "")),
    *(("alice", "--b"), ("alice-", "-b"), ("alice--", "b")),
    *(("alice", ""), ("alice", "default"), ("alice", "server-1")),
    *(("bob", "alice"), ("alice", "bob"), ("alicebob", "")),
)
SAFE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """A fleet to which each test adds a machine per user."""
    return Fleet()


def launched(fleet: Fleet, user: str, server: str, number: int) -> WorkloadSpec:
    """Return what *user*'s own machine is told to run as their server."""
    agent = fleet.machine(f"box-{number}", owner=user)
    record = fleet.ask(
        number + 1,
        principal=a_principal(user_id=100 + number, name=user),
        server_name=server,
    )
    return agent.launched[allocation_of(record)].spec


def test_users_whose_names_look_alike_have_folders_of_their_own(fleet: Fleet) -> None:
    """Whatever is left of a name in the folder's, the rest tells them apart."""
    specs = [launched(fleet, name, "", n) for n, name in enumerate(ALIKE)]
    assert [spec.owner for spec in specs] == list(ALIKE)
    folders = [spec.notebook for spec in specs]
    assert len(set(folders)) == len(ALIKE)
    for folder in folders:
        # Safe in a path, an address and a container's name, on any system.
        assert SAFE.fullmatch(folder), folder
        assert len(folder) < 64


def test_pairs_of_user_and_server_that_read_the_same_are_different(
    fleet: Fleet,
) -> None:
    """Nothing is made by joining the two."""
    specs = [launched(fleet, *pair, n) for n, pair in enumerate(PAIRS)]
    assert [(spec.owner, spec.server_name) for spec in specs] == list(PAIRS)
    assert len({spec.notebook for spec in specs}) == len(PAIRS)


def test_the_default_server_is_no_server_called_default(fleet: Fleet) -> None:
    """An empty name is a name of its own, also for one user on one machine."""
    agent = fleet.machine(cores=8)
    names = ("", "default", "server", "none", "0")
    specs = []
    for number, name in enumerate(names, 1):
        record = fleet.ask(number, server_name=name)
        specs.append(agent.launched[allocation_of(record)].spec)
    assert [spec.server_name for spec in specs] == list(names)
    assert len({spec.notebook for spec in specs}) == len(names)


def test_a_name_that_somebody_else_gets_leads_to_nothing_of_the_first(
    fleet: Fleet,
) -> None:
    """The Hub gives names and ids out again: a deleted user's files are nobody's."""
    agent = fleet.machine(owner="alice")
    first = fleet.ask(1)
    folder = agent.launched[allocation_of(first)].spec.notebook
    stopping.retire(fleet.core, fleet.get(first))
    agent.report(allocation_of(first), AgentEvent.ENDED)
    fleet.cycle()
    again = fleet.ask(1)
    assert again.id != first.id
    assert agent.launched[allocation_of(again)].spec.notebook != folder


def test_a_user_who_is_called_otherwise_now_keeps_their_folder(fleet: Fleet) -> None:
    """By the Hub's ids they are the same, however odd the new name."""
    agent = fleet.machine(owner="alice")
    first = fleet.ask(1)
    folder = agent.launched[allocation_of(first)].spec.notebook
    agent.serve(allocation_of(first))
    stopping.stop(fleet.core, fleet.get(first))
    agent.report(allocation_of(first), AgentEvent.ENDED)
    fleet.cycle()
    renamed = a_principal(name="日本 _renamed")
    second = fleet.ask(1, attempt="second", principal=renamed)
    spec = agent.launched[allocation_of(second)].spec
    assert (spec.notebook, spec.owner) == (folder, "日本 _renamed")


def test_a_key_is_the_hubs_numbers_and_no_name() -> None:
    """1-11 and 11-1 are two servers; no name can be mistaken for either."""
    keys = {str(ServerKey(user_id=a, server_id=b)) for a in (1, 11) for b in (1, 11)}
    assert keys == {"1-1", "1-11", "11-1", "11-11"}


def test_servers_with_equal_names_of_two_users_end_apart(fleet: Fleet) -> None:
    """Stopping one stops one."""
    mine = fleet.machine("mine", owner="alice")
    theirs = fleet.machine("theirs", owner="alice-")
    first = fleet.ask(1, server_name="-b")
    other = a_principal(user_id=9, name="alice-")
    second = fleet.ask(1, principal=other, server_name="b")
    mine.serve(allocation_of(first))
    theirs.serve(allocation_of(second))
    stopping.stop(fleet.core, fleet.get(first))
    assert [stop.allocation for stop in mine.stops()] == [allocation_of(first)]
    assert theirs.stops() == []


def test_a_server_that_is_asked_for_anew_under_another_name_is_the_same(
    fleet: Fleet,
) -> None:
    """The Hub renamed it: it is found by its key, and told its new name."""
    fleet.machine()
    first = fleet.ask(1, server_name="before")
    again: Workload = asking.ask(fleet.core, an_ask(1, server_name="_after"))
    assert again.id == first.id
    assert fleet.get(first).server_name == "_after"
