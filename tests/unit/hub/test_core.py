"""Decide, make durable, tell: what happens when the middle part fails."""

from __future__ import annotations

import pytest
from controller_catalogs import a_catalog
from fleet_builders import NOON, a_record
from fleet_controller import Fleet, an_ask

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Deadlines, Profile
from fleet_contracts.protocol import AgentEvent, Heartbeat, Launch
from fleet_contracts.reasons import Reason
from fleet_hub.adapters.memory_store import MemoryStore
from fleet_hub.controller import asking, offering, stopping
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.errors import StoreWriteError
from fleet_hub.controller.ports import Change
from fleet_hub.service.tokens import ViewTokens


class FullDisk(MemoryStore):
    """A store that can be read, and written only while there is room."""

    def __init__(self) -> None:
        """Begin with room."""
        super().__init__()
        self.is_full = False

    def commit(self, change: Change) -> None:
        """Refuse while the disk is full."""
        if self.is_full:
            raise StoreWriteError("the disk is full")
        super().commit(change)


def test_a_full_disk_places_nothing_and_tells_nobody() -> None:
    """No launch goes out for a decision that is not durable."""
    store = FullDisk()
    fleet = Fleet(store)
    agent = fleet.machine()
    record = asking.ask(fleet.core, an_ask())
    fleet.core.attended[record.id] = 1
    store.is_full = True
    with pytest.raises(StoreWriteError):
        run_cycle(fleet.core)
    assert fleet.get(record).state is State.REQUESTED
    assert not any(isinstance(message, Launch) for message in agent.heard)
    store.is_full = False
    run_cycle(fleet.core)
    assert fleet.get(record).state is State.PLACED
    assert any(isinstance(message, Launch) for message in agent.heard)


def test_a_full_disk_makes_no_workload() -> None:
    """Who asks is told, and nothing half made is left."""
    store = FullDisk()
    fleet = Fleet(store)
    store.is_full = True
    with pytest.raises(StoreWriteError):
        asking.ask(fleet.core, an_ask())
    assert fleet.core.model.workloads == {}


def test_a_report_that_cannot_be_stored_is_not_acknowledged() -> None:
    """The agent tells it again on its next link."""
    store = FullDisk()
    fleet = Fleet(store)
    agent = fleet.machine()
    record = fleet.ask()
    assert record.assignment is not None
    allocation = record.assignment.allocation
    store.is_full = True
    agent.heard.clear()
    with pytest.raises(StoreWriteError):
        agent.report(allocation, AgentEvent.ACCEPTED)
    assert agent.heard == []
    agent.disconnect()
    store.is_full = False
    agent.connect()
    agent.say(Heartbeat(sent_at=NOON))
    assert fleet.get(record).state is State.PREPARING


def test_a_link_whose_hello_cannot_be_stored_is_no_link() -> None:
    """The machine stays offline, so nothing is placed on it."""
    store = FullDisk()
    fleet = Fleet(store)
    agent = fleet.machine()
    agent.disconnect()
    store.is_full = True
    with pytest.raises(StoreWriteError):
        agent.connect()
    agent.disconnect()
    assert not fleet.core.model.presence["box"].online
    store.is_full = False
    record = fleet.ask()
    assert record.state is State.QUEUED


def test_offers_say_what_starts_what_waits_and_what_is_not_for_one() -> None:
    """The same answer as the line would give, in the catalog's order."""
    fleet = Fleet()
    fleet.machine()
    principal = an_ask().principal
    offers = offering.offers_for(fleet.core, principal, None).offers
    assert [(item.class_name, item.startable) for item in offers] == [
        ("small", True),
        ("whole", True),
    ]
    fleet.ask(1, class_name="whole")
    small, whole = offering.offers_for(fleet.core, principal, None).offers
    assert (small.startable, small.choosable) == (False, True)
    assert whole.explanation is not None
    assert whole.explanation.reason is Reason.CPU_BUSY
    guest = principal.model_copy(update={"user_id": 2, "name": "bob"})
    for item in offering.offers_for(fleet.core, guest, None).offers:
        assert (item.startable, item.choosable) == (False, False)
        assert item.explanation is not None
        assert item.explanation.reason is Reason.ISOLATION_TOO_WEAK
    text = offering.offers_for(fleet.core, principal, None).model_dump_json()
    assert "secret-ref" not in text


def test_no_offer_is_made_twice_nor_joins_the_line() -> None:
    """Asking what would happen changes nothing."""
    fleet = Fleet()
    fleet.machine()
    before = fleet.store.load()
    offering.offers_for(fleet.core, an_ask().principal, None)
    assert fleet.store.load() == before
    assert fleet.core.model.waiting() == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, Reason.PROFILE_REQUIRED),
        ({"profile": ""}, Reason.PROFILE_REQUIRED),
        ({"profile": "nonsense"}, Reason.PROFILE_UNKNOWN),
        ({"profile": "jupyter", "class": "nonsense"}, Reason.CLASS_UNKNOWN),
        ({"profile": "jupyter", "image": "mine"}, Reason.OPTION_UNKNOWN),
        ({"profile": ["jupyter"]}, Reason.INVALID_REQUEST),
        ({"profile": "jupyter", "files": []}, Reason.INVALID_REQUEST),
        ({"profile": "jupyter", "files": 0}, Reason.INVALID_REQUEST),
        ({"profile": "jup\x00yter"}, Reason.PROFILE_UNKNOWN),
    ],
)
def test_a_wrong_choice_is_refused_with_its_reason(
    options: dict[str, object], reason: Reason
) -> None:
    """Before anything is asked for, on every path."""
    fleet = Fleet()
    answer = offering.validate(fleet.core, an_ask().principal, options)
    assert answer.choice is None
    assert answer.explanation is not None
    assert answer.explanation.reason is reason
    assert answer.headline


def test_what_is_never_allowed_is_refused_before_it_is_asked_for() -> None:
    """A guest of a native machine gets the sentence, not a place in the line."""
    fleet = Fleet()
    fleet.machine()
    guest = an_ask().principal.model_copy(update={"user_id": 2, "name": "bob"})
    answer = offering.validate(fleet.core, guest, {"profile": "jupyter"})
    assert answer.explanation is not None
    assert answer.explanation.reason is Reason.ISOLATION_TOO_WEAK


def test_what_can_only_wait_is_a_valid_choice() -> None:
    """Queueing is the point."""
    fleet = Fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    options: dict[str, object] = {"profile": "jupyter", "class": "whole"}
    assert offering.validate(fleet.core, an_ask().principal, options).choice
    empty = Fleet()
    assert offering.validate(empty.core, an_ask().principal, options).choice


def test_a_valid_choice_says_how_long_its_start_may_take() -> None:
    """JupyterHub is to wait longer than that: it has no reason to tell."""
    profile = Profile(
        name="jupyter",
        title="JupyterLab",
        classes=("small",),
        runtimes=("python",),
        deadlines=Deadlines(prepare_seconds=7200, start_seconds=300),
    )
    fleet = Fleet(catalog=a_catalog(profiles=(profile,)))
    found = offering.validate(fleet.core, an_ask().principal, {"profile": "jupyter"})
    assert found.start_seconds == 7500


def test_a_catalog_that_lost_a_profile_ends_who_waits_for_it() -> None:
    """Refused with the reason, instead of waiting for ever."""
    fleet = Fleet()
    record = fleet.ask()
    fleet.catalogs.catalog = fleet.catalogs.catalog.model_copy(update={"profiles": ()})
    fleet.cycle()
    refused = fleet.get(record)
    assert refused.state is State.REFUSED
    assert refused.explanation is not None
    assert refused.explanation.reason is Reason.PROFILE_UNKNOWN


def test_what_runs_is_not_touched_by_a_change_of_the_catalog() -> None:
    """A profile that is gone ends nobody's notebook."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    assert record.assignment is not None
    agent.serve(record.assignment.allocation)
    fleet.catalogs.catalog = fleet.catalogs.catalog.model_copy(update={"profiles": ()})
    fleet.cycle()
    assert fleet.get(record).state is State.READY
    stopping.stop(fleet.core, fleet.get(record))


def test_a_view_token_reads_one_workload_only() -> None:
    """Neither another workload's, nor one of another secret, nor a shortened one."""
    tokens, others = ViewTokens(b"secret"), ViewTokens(b"other")
    token = tokens.make("w1")
    assert tokens.workload_of(token) == "w1"
    for wrong in (
        token.replace("w1", "w2"),
        others.make("w1"),
        token[:-1],
        "",
        "view",
        "view..",
        "ä.w1.ö",
    ):
        assert tokens.workload_of(wrong) is None


def test_records_of_the_store_show_no_secret_in_their_text() -> None:
    """Whatever is logged by accident holds no token and no environment."""
    fleet = Fleet()
    record = asking.ask(fleet.core, an_ask())
    secrets = fleet.store.secrets(record.id)
    shown = f"{record} {secrets} {a_record()} {an_ask()}"
    assert "hub-token-of-first" not in shown
    assert secrets is not None
    assert secrets.timeline_token not in shown


@pytest.mark.parametrize("lease", [None, 900.0])
def test_a_launch_says_how_long_it_may_run_unheard(lease: float | None) -> None:
    """As its class asks, and otherwise for as long as it likes."""
    catalog = a_catalog()
    small, *others = catalog.classes
    leased = small.model_copy(update={"lease_seconds": lease})
    fleet = Fleet(catalog=a_catalog(classes=(leased, *others)))
    agent = fleet.machine()
    fleet.ask()

    [launch] = [message for message in agent.heard if isinstance(message, Launch)]
    assert launch.spec.lease_seconds == lease
