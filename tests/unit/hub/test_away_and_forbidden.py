"""A machine that is away and may not be used anyway: one answer wherever one looks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import scheduling_builders as builders
from controller_catalogs import through
from fleet_builders import a_principal
from fleet_controller import Fleet
from scheduling_builders import NOON, a_gpu_class, a_profile, a_snapshot, a_waiting

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Relation
from fleet_contracts.reasons import Reason, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.controller import governing, offering
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.exporting import view_of
from fleet_hub.explaining.answers import answer
from fleet_hub.explaining.document import Question
from fleet_hub.scheduling.explain import explain
from fleet_hub.scheduling.snapshot import MachineState


BOB = a_principal(user_id=2, name="bob")
ALICE = Actor(name="alice", role=ActorRole.OWNER)


def gone(fleet: Fleet) -> Fleet:
    """Return the fleet after its machine went."""
    fleet.agents["box"].disconnect()
    return fleet


def not_back(fleet: Fleet) -> Fleet:
    """Return the fleet after a restart of the controller that met no machine."""
    again = gone(fleet).restarted()
    again.cycle()
    return again


def here(fleet: Fleet) -> Fleet:
    """Return the fleet as it is."""
    return fleet


@pytest.mark.parametrize("happens", [here, gone, not_back])
def test_what_the_record_forbids_is_told_while_the_machine_is_away(
    happens: Callable[[Fleet], Fleet],
) -> None:
    """Spawn form, validation, explanation and the line say the same sentence of it.

    Nobody waits for a machine that would not serve them when it is back.
    """
    fleet = Fleet()
    fleet.machine(owner="alice")
    fleet = happens(fleet)
    offer = offering.offers_for(fleet.core, BOB, None).offers[0]
    choice = {"profile": "jupyter", "class": "small"}
    valid = offering.validate(fleet.core, BOB, choice)
    question = Question.model_validate({**choice, "user": "bob"})
    asked = answer(view_of(fleet.core), question)
    record = fleet.ask(principal=BOB)
    assert record.state is State.REFUSED
    assert record.explanation is not None
    assert record.explanation.reason is Reason.ISOLATION_TOO_WEAK
    told = sentence(record.explanation)
    assert not offer.choosable
    assert asked.why is not None
    assert valid.choice is None
    assert {offer.headline, valid.headline, asked.why.sentence} == {told}
    (machine,) = asked.machines
    assert machine.why_not is not None
    assert machine.why_not.kind is ReasonKind.NOT_ALLOWED


@pytest.mark.parametrize("happens", [gone, not_back])
def test_who_may_use_it_waits_for_it(happens: Callable[[Fleet], Fleet]) -> None:
    """Its owner keeps the hope, whatever the machine can do."""
    fleet = Fleet()
    fleet.machine(owner="alice")
    fleet = happens(fleet)
    assert offering.offers_for(fleet.core, a_principal(), None).offers[0].choosable
    record = fleet.ask()
    assert record.state is State.QUEUED


def test_who_is_lent_it_meanwhile_waits_for_it_as_well() -> None:
    """The rule counts as it is now; it needs no word of the machine."""
    fleet = Fleet(catalog=through(DriverName.DOCKER))
    fleet.machine(owner="alice")
    fleet = not_back(fleet)
    choice = {"profile": "jupyter", "class": "small"}
    refused = offering.validate(fleet.core, BOB, choice)
    assert refused.explanation is not None
    assert refused.explanation.reason is Reason.OWNER_FORBIDS
    governing.set_lending(fleet.core, ALICE, "box", Relation.MEMBER)
    fleet.cycle()
    assert offering.validate(fleet.core, BOB, choice).choice is None
    governing.set_lending(fleet.core, ALICE, "box", Relation.GUEST)
    governing.set_audience(fleet.core, ALICE, "box", Relation.GUEST)
    trust = fleet.catalogs.catalog.trust.model_copy(
        update={"container": Relation.GUEST}
    )
    fleet.catalogs.catalog = fleet.catalogs.catalog.model_copy(update={"trust": trust})
    fleet.core.want_cycle()
    fleet.cycle()
    assert offering.validate(fleet.core, BOB, choice).choice is not None
    assert fleet.ask(principal=BOB).state is State.QUEUED


def test_what_no_runtime_can_run_there_is_told_while_nobody_knows_the_machine() -> None:
    """The catalog alone says that a guest has nothing to wait for."""
    fleet = Fleet()
    fleet.machine(owner="alice")
    for set_rule in (governing.set_lending, governing.set_audience):
        set_rule(fleet.core, ALICE, "box", Relation.GUEST)
    fleet = not_back(fleet)
    record = fleet.ask(principal=BOB)
    assert record.explanation is not None
    # Containers would be allowed, and this profile has no image for them.
    assert record.explanation.reason is Reason.ISOLATION_TOO_WEAK
    assert record.state is State.REFUSED


@pytest.mark.parametrize(
    ("labels", "accelerator", "reason"),
    [
        ({"role": "train"}, Accelerator.CUDA, Reason.OFFLINE),
        ({"role": "serve"}, Accelerator.CUDA, Reason.LABEL_MISMATCH),
        ({"role": "train"}, Accelerator.ROCM, Reason.SUPPORT_MISSING),
    ],
)
def test_what_record_and_catalog_rule_out_is_told_of_a_machine_that_never_spoke(
    labels: dict[str, str], accelerator: Accelerator, reason: Reason
) -> None:
    """Only what the machine itself would have to say keeps the hope."""
    chosen = a_gpu_class(accelerator=accelerator, labels={"role": "train"})
    box = MachineState(
        name="away", owner="alice", online=False, offline_since=NOON, labels=labels
    )
    catalog = builders.a_catalog(
        classes=(chosen,), profiles=(a_profile(classes=("gpu",)),)
    )
    asked = a_waiting(class_name="gpu")
    snapshot = a_snapshot(catalog=catalog, machines=(box,), waiting=(asked,))
    found = explain(snapshot, asked.workload)
    assert found.explanation is not None
    assert found.explanation.reason is reason
    assert found.choosable is (reason is Reason.OFFLINE)
