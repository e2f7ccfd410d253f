"""Of several who may forbid or limit, the one whose word it is: owner, admin, catalog."""

from __future__ import annotations

import pytest
from fleet_builders import NOON, a_principal
from fleet_controller import allocation_of
from fleet_pictures import GIB, a_picture
from scenario_fleets import a_box, another, the_catalog
from scheduling_builders import a_class
from told_everywhere import answer_to, told

from fleet_contracts.capabilities import Observed, OwnerTerm
from fleet_contracts.catalog import Relation
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import DriverName
from fleet_hub.controller import governing
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.settings import Settings


ROOT = Actor(name="root", role=ActorRole.ADMIN)
ALICE = Actor(name="alice", role=ActorRole.OWNER)
BOB = a_principal("bob", 2)


def test_a_part_that_its_owner_lends_is_not_called_a_small_machine() -> None:
    """The machine has the cores; whose word it is that they are not to be had is told."""
    lent = OwnerTerm(
        name="cpu",
        amount=4000,
        unit="milli_cores",
        observed=Observed(source="configuration", observed_at=NOON),
    )
    fleet = a_box(the_catalog(a_class(cpu_milli=6000)), terms=(lent,))
    fleet.machine("small", capabilities=a_picture(cores=2))
    record = fleet.ask(profile="lab", class_name=None)
    why = told(fleet, record)
    assert (why.reason, why.machine, why.capacity) == (
        Reason.CPU_TOO_SMALL,
        "box",
        4000,
    )
    assert why.detail == "the machine has 8 cores, and its owner lends no more"


def test_memory_that_an_owner_keeps_back_is_told_in_the_same_way() -> None:
    """And what is beyond the machine itself is no word of its owner."""
    lent = OwnerTerm(
        name="memory",
        amount=8 * GIB,
        unit="bytes",
        observed=Observed(source="configuration", observed_at=NOON),
    )
    fleet = a_box(the_catalog(a_class(memory_bytes=16 * GIB)), terms=(lent,))
    why = told(fleet, fleet.ask(profile="lab", class_name=None))
    assert why.detail == "the machine has 32 GiB, and its owner lends no more"
    beyond = a_box(the_catalog(a_class(memory_bytes=64 * GIB)), terms=(lent,))
    why = told(beyond, beyond.ask(profile="lab", class_name=None))
    assert (why.reason, why.detail) == (Reason.EXCEEDS_ANY_MACHINE, None)


@pytest.mark.parametrize(
    ("admin", "owner", "reason", "text"),
    [
        (
            Relation.GUEST,
            Relation.MEMBER,
            Reason.OWNER_FORBIDS,
            "On box, the machine's owner, alice, does not lend it to you.",
        ),
        (
            Relation.OWNER,
            Relation.GUEST,
            Reason.NOT_IN_AUDIENCE,
            "(an admin lets this machine serve fewer people).",
        ),
        (
            Relation.GUEST,
            Relation.GUEST,
            Reason.ISOLATION_TOO_WEAK,
            "(the trust policy of the catalog says so).",
        ),
    ],
)
def test_of_several_words_on_whom_a_machine_serves_the_one_that_forbids_is_named(
    admin: Relation, owner: Relation, reason: Reason, text: str
) -> None:
    """Whom to ask is the owner, an admin, or whoever keeps the catalog."""
    fleet = a_box(driver=DriverName.DOCKER)
    trust = fleet.catalogs.catalog.trust.model_copy(
        update={"container": Relation.MEMBER}
    )
    fleet.catalogs.catalog = fleet.catalogs.catalog.model_copy(update={"trust": trust})
    governing.set_audience(fleet.core, ROOT, "box", admin)
    governing.set_lending(fleet.core, ALICE, "box", owner)
    fleet.cycle()
    record = another(fleet, 1, principal=BOB)
    why = told(fleet, record)
    assert (why.reason, why.kind) == (reason, ReasonKind.NOT_ALLOWED)
    assert sentence(why).endswith(text)


def test_an_owner_s_name_is_told_only_where_others_names_are() -> None:
    """Which machine it is stays."""
    fleet = a_box(driver=DriverName.DOCKER, settings=Settings(names_visible=False))
    governing.set_audience(fleet.core, ROOT, "box", Relation.GUEST)
    why = told(fleet, another(fleet, 1, principal=BOB))
    assert sentence(why) == "On box, the machine's owner does not lend it to you."


@pytest.mark.parametrize(
    ("profile_limit", "class_limit", "whose", "told_as"),
    [
        (300.0, 28_800.0, "profile lab", "5m"),
        (None, 300.0, "class cpu", "5m"),
        (28_800.0, 600.0, "class cpu", "10m"),
    ],
)
def test_of_two_time_limits_the_shorter_one_is_named_with_who_set_it(
    profile_limit: float | None, class_limit: float, whose: str, told_as: str
) -> None:
    """Whoever asked for a class of eight hours reads which entry said five minutes."""
    catalog = the_catalog(a_class(limit_seconds=class_limit))
    profile = catalog.profiles[0].model_copy(update={"limit_seconds": profile_limit})
    fleet = a_box(catalog.model_copy(update={"profiles": (profile,)}))
    record = fleet.ask(profile="lab", class_name=None)
    agent, allocation = fleet.agents["box"], allocation_of(record)
    agent.serve(allocation)
    agent.report(
        allocation,
        AgentEvent.STOPPING,
        explanation=Explanation(reason=Reason.TIME_LIMIT),
    )
    agent.report(allocation, AgentEvent.ENDED)
    fleet.cycle()
    assert sentence(told(fleet, record)) == (
        f"The time limit of {whose} was reached: {told_as}."
    )


def test_a_time_limit_of_another_catalog_is_told_without_a_name() -> None:
    """What is written there now was not in force when it started."""
    fleet = a_box()
    record = another(fleet, 1)
    agent, allocation = fleet.agents["box"], allocation_of(record)
    agent.serve(allocation)
    fleet.catalogs.catalog = the_catalog(a_class("cpu", limit_seconds=60))
    agent.report(
        allocation,
        AgentEvent.STOPPING,
        explanation=Explanation(reason=Reason.TIME_LIMIT),
    )
    agent.report(allocation, AgentEvent.ENDED)
    assert sentence(told(fleet, record)) == "The time limit was reached: 1h."


def test_each_machine_names_the_owner_who_does_not_lend_it() -> None:
    """Beside one that would do and is busy, every other says whose word it is."""
    fleet = a_box(
        the_catalog(a_class("cpu", cpu_milli=8000)), driver=DriverName.SIMULATION
    )
    fleet.machine(
        "cys", owner="cy", capabilities=a_picture(driver=DriverName.SIMULATION)
    )
    governing.set_audience(fleet.core, ROOT, "cys", Relation.GUEST)
    another(fleet, 1)
    record = another(fleet, 2)
    assert told(fleet, record).reason is Reason.CPU_BUSY
    said = {one.machine: one.why_not for one in answer_to(fleet, record).machines}
    assert said["cys"] is not None
    assert said["cys"].sentence == (
        "On cys, the machine's owner, cy, does not lend it to you."
    )
