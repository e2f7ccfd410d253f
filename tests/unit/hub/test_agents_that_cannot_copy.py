"""Files of a start where an agent is too old to send or receive them, or keeps none."""

from __future__ import annotations

import pytest
from copying_fleet import OLD, a_fleet, choose, explained, gives_a_gpu, speaks
from fleet_builders import a_principal
from fleet_controller import Fleet
from scheduling_builders import a_catalog, a_class, a_gpu, a_gpu_class, some_facts

from fleet_contracts.allocations import State
from fleet_contracts.protocol import COPYING_PROTOCOL, Launch, Stop
from fleet_contracts.reasons import Reason
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import DriverName
from fleet_hub.admission import Offer
from fleet_hub.controller import offering, reconciling
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.records import Workload


def offered_gpu(fleet: Fleet, record: Workload) -> Offer:
    """Return what the form offers of the GPU class to whoever has the files."""
    (gpu,) = [
        offer
        for offer in offering.offers_for(fleet.core, a_principal(), record.key).offers
        if offer.class_name == "gpu"
    ]
    return gpu


def test_an_old_agent_with_the_files_is_told_as_the_reason() -> None:
    """The offer is not made, and asking all the same is refused with the reason."""
    fleet, record = a_fleet()
    speaks(fleet, "cpu-box", OLD)
    gpu = offered_gpu(fleet, record)
    assert [way.kind for way in gpu.ways_out] == ["keep_class", "fresh_folder"]
    assert (gpu.no_copy.reason, gpu.no_copy.machine) == (
        Reason.AGENT_TOO_OLD,
        "cpu-box",
    )
    with pytest.raises(RequestRefusedError) as refused:
        choose(fleet)
    assert refused.value.explanation.reason is Reason.AGENT_TOO_OLD
    assert fleet.get(record).home is not None


def test_an_old_agent_is_not_chosen_to_receive_files() -> None:
    """It waits, told why, and starts as soon as that agent has been renewed."""
    fleet, record = a_fleet()
    speaks(fleet, "gpu-box", OLD)
    gpu = offered_gpu(fleet, record)
    assert [way.kind for way in gpu.ways_out] == ["keep_class", "fresh_folder"]
    assert gpu.no_copy.machine == "gpu-box"
    waiting = choose(fleet)
    assert waiting.state is State.QUEUED
    assert waiting.explanation.reason is Reason.AGENT_TOO_OLD
    # A change of its picture is no news of its version.
    fleet.agents["gpu-box"].disconnect()
    fleet.agents["gpu-box"].connect(protocol=OLD)
    gives_a_gpu(fleet)
    assert fleet.get(record).state is State.QUEUED
    speaks(fleet, "gpu-box", COPYING_PROTOCOL)
    assert fleet.get(record).assignment.machine == "gpu-box"


@pytest.mark.parametrize(
    ("usable", "is_offered"),
    [
        ({"simulation": True}, False),
        ({"simulation": True, "native": False}, False),
        ({"simulation": True, "docker": True}, True),
    ],
)
def test_a_machine_that_keeps_no_files_is_given_no_copy(
    usable: dict[str, bool], is_offered: bool
) -> None:
    """It is passed over with its reason, and comes into question once it keeps some."""
    fleet, record = a_fleet()
    drivers = {DriverName(name): it for name, it in usable.items()}
    with_drivers(fleet, drivers)
    gpu = offered_gpu(fleet, record)
    kinds = {way.kind for way in gpu.ways_out}
    assert ("copy_files" in kinds) is is_offered
    assert "fresh_folder" in kinds
    asked = choose(fleet)
    if is_offered:
        assert asked.assignment.runtime.driver is DriverName.DOCKER
        return
    assert gpu.no_copy.reason is Reason.KEEPS_NO_FILES
    assert gpu.no_copy.machine == "gpu-box"
    assert asked.state is State.QUEUED
    assert asked.explanation.reason is Reason.KEEPS_NO_FILES
    with_drivers(fleet, {DriverName.DOCKER: True})
    assert fleet.get(record).assignment.machine == "gpu-box"


def with_drivers(fleet: Fleet, drivers: dict[DriverName, bool]) -> None:
    """Let the GPU box dial again with other drivers."""
    facts = some_facts(devices=(a_gpu(),), drivers=drivers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconciling, "facts_of", lambda *_: facts)
        fleet.agents["gpu-box"].disconnect()
        fleet.agents["gpu-box"].connect()
    fleet.cycle()


def test_an_agent_that_got_too_old_meanwhile_begins_nothing_empty() -> None:
    """What was placed there ends, with the reason, and the files are where they were."""
    fleet, before = a_fleet()
    record = choose(fleet)
    agent = fleet.agents["gpu-box"]
    agent.heard.clear()
    agent.launched.clear()
    speaks(fleet, "gpu-box", OLD)
    assert not any(isinstance(message, Launch) for message in agent.heard)
    assert any(isinstance(message, Stop) for message in agent.heard)
    ended = fleet.get(record)
    assert ended.state is State.STOPPED
    assert (ended.home, ended.notebook) == (before.home, before.notebook)


def test_files_on_a_machine_that_came_back_with_an_old_agent_are_waited_for() -> None:
    """Nothing is placed for a copy that it cannot send; it says why, and what else could
    be done, and starts once that agent has been renewed.
    """
    fleet, _ = a_fleet()
    fleet.agents["cpu-box"].disconnect()
    fleet.cycle()
    waiting = choose(fleet)
    speaks(fleet, "cpu-box", OLD)
    fleet.cycle()
    record = fleet.get(waiting)
    assert (record.state, record.assignment) == (State.QUEUED, None)
    why = fleet.core.model.waits[record.id].explanation
    assert (why.reason, why.machine) == (Reason.AGENT_TOO_OLD, "cpu-box")
    told = explained(fleet, record)
    assert told.headline == (
        "You are next. On cpu-box, its agent is too old for this controller "
        "(the server's files are there)."
    )
    kinds = [way.told.explanation.reason for way in told.ways_out]
    assert kinds == [Reason.KEEP_CLASS, Reason.FRESH_FOLDER]
    assert told.no_copy.explanation.reason is Reason.AGENT_TOO_OLD
    speaks(fleet, "cpu-box", COPYING_PROTOCOL)
    fleet.cycle()
    assert fleet.get(record).assignment.machine == "gpu-box"
    assert fleet.core.engine.rescues == 0


def test_a_promise_to_who_waits_for_files_is_broken_by_an_agent_that_cannot_send_them() -> (
    None
):
    """With the machine and its reason, while its place would have come."""
    limited = a_gpu_class(limit_seconds=3600)
    fleet, _ = a_fleet(a_catalog(classes=(a_class(), limited)))
    holder = fleet.ask(7, profile="lab", class_name="gpu")
    assert holder.assignment is not None
    waiting = choose(fleet)
    assert waiting.promise is not None
    speaks(fleet, "cpu-box", OLD)
    fleet.cycle()
    record = fleet.get(waiting)
    assert record.promise is None
    (told,) = [
        event.explanation
        for event in fleet.store.events(record.id)
        if event.explanation and event.explanation.reason is Reason.PROMISE_BROKEN
    ]
    assert (told.subject, told.machine) == (Reason.AGENT_TOO_OLD, "cpu-box")
    assert sentence(told) == (
        "On cpu-box, the promised time cannot be kept because its agent is too old for "
        "this controller."
    )
