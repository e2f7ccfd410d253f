"""A machine on which every start goes wrong does not take the whole line.

It is always the freest one, so that without this each next start would go there.
"""

from __future__ import annotations

import pytest
from controller_catalogs import a_catalog
from fake_agent import FakeAgent, some_capabilities
from fleet_builders import a_principal
from fleet_controller import Fleet, allocation_of

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Catalog, Relation, Runtime, TrustPolicy
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.controller import governing
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.records import Workload
from fleet_hub.controller.setbacks import ENOUGH, FIRST_REST
from fleet_hub.controller.ticking import tick
from fleet_hub.machine_prose import describe_machines
from fleet_hub.service.gauges import Gauges
from fleet_hub.service.machine_document import fleet_document
from fleet_hub.service.machine_views import machine_view
from fleet_hub.service.people import Visitor


FULL = Explanation(reason=Reason.DISK_FULL)
OWNER = Actor(name="alice", role=ActorRole.OWNER)
ADMIN = Actor(name="root", role=ActorRole.ADMIN)


def containers() -> Catalog:
    """Return a catalog whose one runtime is an image."""
    catalog = a_catalog()
    runtime = Runtime(
        name="c",
        accelerators=(Accelerator.CPU,),
        driver_refs={DriverName.DOCKER: "an-image"},
    )
    profile = catalog.profiles[0].model_copy(update={"runtimes": ("c",)})
    return catalog.model_copy(
        update={
            "runtimes": (runtime,),
            "profiles": (profile,),
            "trust": TrustPolicy(container=Relation.GUEST),
        }
    )


def a_machine(fleet: Fleet, name: str) -> FakeAgent:
    """Return the agent of another machine that runs containers for everybody."""
    told = some_capabilities(driver=DriverName.DOCKER)
    agent = fleet.machine(name, capabilities=told)
    governing.set_lending(fleet.core, OWNER, name, Relation.GUEST)
    governing.set_audience(fleet.core, ADMIN, name, Relation.GUEST)
    return agent


def goes_wrong(
    fleet: Fleet, agent: FakeAgent, number: int, event: AgentEvent = AgentEvent.FAILED
) -> Workload:
    """Let a start of another user go wrong on the machine."""
    record = fleet.ask(principal=a_principal(f"user{number}", number))
    agent.report(allocation_of(record), event, explanation=FULL)
    return fleet.get(record)


def set_aside() -> tuple[Fleet, FakeAgent]:
    """Return a fleet whose only machine is set aside from now on."""
    fleet = Fleet(catalog=containers())
    agent = a_machine(fleet, "box")
    for number in range(1, ENOUGH + 1):
        goes_wrong(fleet, agent, number)
    return fleet, agent


def reason_of(fleet: Fleet, record: Workload) -> Reason | None:
    """Return why *record* waits."""
    found = fleet.get(record).explanation
    return None if found is None else found.reason


@pytest.mark.parametrize("event", [AgentEvent.FAILED, AgentEvent.REJECTED])
def test_the_next_one_goes_to_another_machine(event: AgentEvent) -> None:
    """Whether the starts failed or were rejected; and nobody loses a place for it."""
    fleet = Fleet(catalog=containers())
    agent = a_machine(fleet, "a-broken-one")
    for number in range(1, ENOUGH + 1):
        goes_wrong(fleet, agent, number, event)
    a_machine(fleet, "b-works")
    fleet.cycle()
    placed = fleet.ask(principal=a_principal("zoe", 99))
    assert placed.assignment is not None
    assert placed.assignment.machine == "b-works"
    held = [record.id for record in fleet.core.model.holders("a-broken-one")]
    assert held == []


def test_where_there_is_no_other_they_wait_and_are_told_until_when() -> None:
    """By itself it is tried again then: the first that waits is the try."""
    fleet, agent = set_aside()
    waits = fleet.ask(principal=a_principal("zoe", 99))
    assert waits.state is State.QUEUED
    assert waits.explanation is not None
    assert waits.explanation.reason is Reason.QUARANTINED
    until = fleet.clock.now() + FIRST_REST
    assert waits.explanation.detail == f"until {until:%H:%M} UTC"
    fleet.clock.advance(FIRST_REST.total_seconds() - 1)
    tick(fleet.core)
    fleet.cycle()
    assert fleet.get(waits).state is State.QUEUED
    fleet.clock.advance(1)
    fleet.cycle()
    agent.serve(allocation_of(fleet.get(waits)))
    assert fleet.get(waits).state is State.READY


def test_a_start_that_goes_well_ends_the_count() -> None:
    """Two that went wrong before it, and two after it, set nothing aside."""
    fleet = Fleet(catalog=containers())
    agent = a_machine(fleet, "box")
    for number in (1, 2):
        goes_wrong(fleet, agent, number)
    well = fleet.ask(principal=a_principal("well", 50))
    agent.serve(allocation_of(well))
    for number in (3, 4):
        goes_wrong(fleet, agent, number)
    assert fleet.ask(principal=a_principal("zoe", 99)).state is State.PLACED


def test_servers_that_fail_after_they_were_ready_say_nothing_of_the_machine() -> None:
    """What their users do in them is their own."""
    fleet = Fleet(catalog=containers())
    agent = a_machine(fleet, "box")
    for number in range(1, 9):
        record = fleet.ask(principal=a_principal(f"user{number}", number))
        agent.serve(allocation_of(record))
        agent.report(allocation_of(record), AgentEvent.FAILED, explanation=FULL)
    assert fleet.ask(principal=a_principal("zoe", 99)).state is State.PLACED


@pytest.mark.parametrize("actor", [OWNER, ADMIN])
def test_its_owner_or_an_admin_has_it_tried_at_once(actor: Actor) -> None:
    """By the same word that ends a draining; both deeds are in the log."""
    fleet, _ = set_aside()
    waits = fleet.ask(principal=a_principal("zoe", 99))
    governing.resume(fleet.core, actor, "box")
    fleet.cycle()
    assert fleet.get(waits).state is State.PLACED
    log = [(row.entry.actor, row.entry.action) for row in fleet.store.audit(limit=2)]
    assert log == [(actor.name, Action.RESUMED), ("controller", Action.SET_ASIDE)]
    entry = fleet.store.audit(limit=2)[-1].entry
    assert entry.role is ActorRole.CONTROLLER
    assert entry.detail == "until 2026-01-02 12:01 UTC, the last for disk_full"
    governing.resume(fleet.core, actor, "box")
    assert len(fleet.store.audit(limit=2)) == 2


def test_an_owner_who_may_not_end_a_draining_does_not_end_the_rest_either() -> None:
    """The admin's word holds as a whole."""
    fleet, _ = set_aside()
    governing.drain(fleet.core, ADMIN, "box")
    with pytest.raises(RequestRefusedError):
        governing.resume(fleet.core, OWNER, "box")
    waits = fleet.ask(principal=a_principal("zoe", 99))
    assert reason_of(fleet, waits) is Reason.DRAINING
    governing.resume(fleet.core, ADMIN, "box")
    fleet.cycle()
    assert fleet.get(waits).state is State.PLACED


def test_a_link_that_breaks_does_not_end_the_rest_and_a_new_process_forgets_it() -> (
    None
):
    """An agent that flaps would lead the line there again and again."""
    fleet, agent = set_aside()
    agent.disconnect()
    agent.connect()
    waits = fleet.ask(principal=a_principal("zoe", 99))
    assert reason_of(fleet, waits) is Reason.QUARANTINED
    again = fleet.restarted()
    again.agents["box"].connect()
    again.cycle()
    assert again.get(waits).state is State.PLACED


def test_everybody_who_reads_of_the_machine_reads_it() -> None:
    """Its page with what to do, the document, the terminal and the metrics."""
    fleet, _ = set_aside()
    told = "2026-01-02T12:01:00+00:00"

    def read() -> tuple[bool, bool, object, bool, list[str]]:
        record = fleet.core.model.machines["box"]
        view = machine_view(fleet.core, record, Visitor(name="root", admin=True))
        document = fleet_document(fleet.core)
        (gauge,) = (
            metric
            for metric in Gauges(fleet.core).collect()
            if metric.name == "jupyterhub_fleet_machines"
        )
        return (
            view.set_aside,
            any("set aside until 2026-01-02 12:01:00" in text for text in view.trouble),
            document["machines"][0]["set_aside_until"],
            f"set aside   until {told}" in describe_machines(document["machines"]),
            [item.labels["state"] for item in gauge.samples if item.value],
        )

    assert read() == (True, True, told, True, ["set_aside"])
    fleet.clock.advance(FIRST_REST.total_seconds())
    assert read() == (False, False, None, False, ["ready"])
