"""What the controller keeps of a machine: its own record, and what it was told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from fleet_builders import NOON
from fleet_controller import Fleet
from held_gpu import a_held_gpu, rests
from rich_machine import GIB, a_usage
from scheduling_builders import a_catalog as a_device_catalog, a_gpu, some_facts
from structlog.testing import capture_logs

from fleet_contracts.protocol import (
    AgentEvent,
    CapabilitiesChanged,
    Heartbeat,
    Redetect,
)
from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_contracts.sentences import sentence
from fleet_hub.adapters.codec import MACHINES
from fleet_hub.controller import enrolling, machines
from fleet_hub.controller.exporting import view_of
from fleet_hub.explaining.answers import answer
from fleet_hub.explaining.document import Question
from fleet_hub.service.machine_document import fleet_document


def beat(fleet: Fleet, usage: dict[str, Any] | None) -> None:
    """Have the machine's agent send a heartbeat with *usage*."""
    fleet.agents["box"].say(Heartbeat(sent_at=NOON, usage=usage))


def shown_usage(fleet: Fleet) -> Any:
    """Return the observations that are shown of the machine."""
    record = fleet.core.model.machines["box"]
    return machines.picture_of(fleet.core, record).usage


def test_the_latest_observation_is_shown() -> None:
    """A heartbeat's word replaces the one in the picture, and the next one that."""
    fleet = Fleet()
    fleet.machine()
    assert shown_usage(fleet) is None
    for free in (559, 400):
        beat(fleet, a_usage(NOON, free_mib=free).model_dump(mode="json"))
        assert shown_usage(fleet).devices[0].memory_free_mib == free
    beat(fleet, None)
    assert shown_usage(fleet).memory_available_bytes == 48 * GIB


def test_an_observation_is_no_change() -> None:
    """Nothing is written, nobody is placed, and the facts stay what they were."""
    fleet = Fleet()
    fleet.machine()
    before = fleet.core.model.machines["box"]
    facts = fleet.core.model.presence["box"].facts
    fleet.core.wanted = False
    beat(fleet, a_usage(NOON).model_dump(mode="json"))

    assert fleet.core.wanted is False
    assert fleet.core.model.machines["box"] is before
    assert fleet.core.model.presence["box"].facts is facts


def test_a_gpu_that_was_seen_in_use_is_the_last_to_be_given() -> None:
    """The next notebook gets the other one, and no sweep takes that for missed news."""
    fleet = Fleet(catalog=a_device_catalog())
    agent = fleet.machine()
    presence = fleet.core.model.presence["box"]
    presence.facts = some_facts(devices=(a_gpu("GPU-a"), a_gpu("GPU-b")))
    fleet.core.model.stirred.add("box")
    fleet.cycle()
    for used, expected in ((5000, "GPU-b"), (4, "GPU-a")):
        usage = a_usage(NOON)
        [device] = usage.devices
        seen = device.model_copy(update={"uuid": "GPU-a", "memory_used_mib": used})
        told = usage.model_copy(update={"devices": (seen,)})
        beat(fleet, told.model_dump(mode="json"))
        record = fleet.ask(profile="lab", class_name="gpu", attempt=expected)
        assert record.assignment is not None
        assert record.assignment.resources.devices == (expected,)
        agent.report(record.assignment.allocation, AgentEvent.FAILED)
        fleet.cycle()
    assert fleet.core.engine.sweep(fleet.clock.now(), most=10) == 0


def test_a_log_is_not_filled_with_observations_that_are_none() -> None:
    """A machine's first says it; each heartbeat would be thousands a minute."""
    fleet = Fleet()
    fleet.machine()
    with capture_logs() as logs:
        for _ in range(3):
            beat(fleet, {"devices": 7})
    assert [entry["event"] for entry in logs] == ["usage not understood"]


@pytest.mark.parametrize(
    "usage",
    [{}, {"observed": "now"}, {"memory_available_bytes": -1}, {"devices": 7}],
)
def test_an_observation_that_is_none_costs_nothing(usage: dict[str, Any]) -> None:
    """The heartbeat counts, the link lives, and what was known stays."""
    fleet = Fleet()
    fleet.machine()
    beat(fleet, a_usage(NOON).model_dump(mode="json"))
    fleet.clock.advance(5)
    beat(fleet, usage)

    presence = fleet.core.model.presence["box"]
    assert presence.online
    assert presence.heard_at == NOON + timedelta(seconds=5)
    assert shown_usage(fleet) == a_usage(NOON)


def test_an_observation_ends_with_its_link() -> None:
    """What an earlier link said is not shown as the next one's."""
    fleet = Fleet()
    agent = fleet.machine()
    beat(fleet, a_usage(NOON).model_dump(mode="json"))
    agent.disconnect()
    agent.connect()
    assert shown_usage(fleet) is None


@pytest.mark.parametrize(
    ("local", "provider", "expected"),
    [
        (True, None, "local"),
        (False, None, "alice"),
        (False, "university", "university"),
    ],
)
def test_the_provider_comes_from_the_record(
    *, local: bool, provider: str | None, expected: str
) -> None:
    """Where nothing else is recorded, the Hub or the owner supplies the machine."""
    fleet = Fleet()
    enrolling.enrol(
        fleet.core, name="box", owner="alice", local=local, provider=provider
    )
    record = fleet.core.model.machines["box"]
    assert machines.picture_of(fleet.core, record).identity.provider.value == expected


def test_a_provider_is_kept_when_a_machine_is_enrolled_again() -> None:
    """A new token changes nothing else; another provider has to be named."""
    fleet = Fleet()
    for provider in ("university", None):
        enrolling.enrol(
            fleet.core, name="box", owner="alice", local=True, provider=provider
        )
        assert fleet.core.model.machines["box"].supplier == "university"
    enrolling.enrol(fleet.core, name="box", owner="alice", local=True, provider="lab")
    assert fleet.core.model.machines["box"].supplier == "lab"


def test_a_record_from_before_providers_is_read() -> None:
    """A store that an earlier version wrote is still the truth."""
    fleet = Fleet()
    enrolling.enrol(fleet.core, name="box", owner="alice", local=False)
    text = MACHINES.encode(fleet.core.model.machines["box"])
    earlier = MACHINES.decode(text.replace('"provider":null,', ""))
    assert '"provider"' in text
    assert earlier.supplier == "alice"


def test_only_a_machine_that_is_there_can_be_asked() -> None:
    """The answer says whether it was, and asking changes nothing here."""
    fleet = Fleet()
    agent = fleet.machine()
    assert machines.look_again(fleet.core, "box")
    assert isinstance(agent.heard[-1], Redetect)
    agent.disconnect()
    assert not machines.look_again(fleet.core, "box")


def test_the_document_names_what_a_machine_holds() -> None:
    """Whose server it is and what it takes, and nothing after its end."""
    fleet = Fleet()
    fleet.machine()
    fleet.ask(class_name="whole")
    [machine] = fleet_document(fleet.core)["machines"]
    [held] = machine["holds"]
    assert (held["user"], held["class"]) == ("alice", "whole")
    assert held["resources"]["cpu_milli"] == 4000


@pytest.mark.parametrize("told", [{}, {"host": "mine"}, {"accelerators": [7]}])
def test_a_picture_that_is_not_understood_is_unknown(told: dict[str, Any]) -> None:
    """The identity is there all the same: it is the record's."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.say(CapabilitiesChanged(capabilities=told))
    picture = machines.picture_of(fleet.core, fleet.core.model.machines["box"])
    assert picture.host.os.value is None
    assert picture.identity.owner.value == "alice"


def holders_told(fleet: Fleet) -> tuple[Holder, ...]:
    """Return who holds the GPU, as somebody is told who would like it."""
    question = Question.model_validate(
        {"profile": "lab", "class": "gpu", "user": "bob"}
    )
    why = answer(view_of(fleet.core), question).why
    assert why is not None
    assert why.explanation.reason is Reason.GPU_BUSY
    return why.explanation.holders


def test_a_gpu_notebook_that_rests_is_told_as_resting_with_its_enforced_end() -> None:
    """An open tab keeps nothing busy: the machine saw that nothing is computed."""
    fleet = a_held_gpu()
    began = fleet.clock.now()
    rests(fleet, 0, minutes=180)
    [holder] = holders_told(fleet)
    assert holder.idle_since == began
    told = sentence(Explanation(reason=Reason.GPU_BUSY, holders=(holder,)))
    assert f"(GPU at rest since {began:%Y-%m-%d %H:%M} UTC)" in told
    assert holder.ends_by is None
    assert fleet.core.engine.sweep(fleet.clock.now(), most=10) == 0


def test_a_kernel_that_computes_behind_a_closed_browser_does_not_rest() -> None:
    """Nor does one that has rested for a moment only, or of which nobody knows."""
    fleet = a_held_gpu()
    for percent, minutes in ((60, 180), (None, 180), (0, 9)):
        rests(fleet, percent, minutes=minutes)
        assert [holder.idle_since for holder in holders_told(fleet)] == [None]
    rests(fleet, 0, minutes=11)
    assert holders_told(fleet)[0].idle_since is not None
    rests(fleet, 1, minutes=1)
    assert holders_told(fleet)[0].idle_since is None
    assert fleet.core.engine.sweep(fleet.clock.now(), most=10) == 0


def test_an_observation_that_is_only_repeated_says_nothing_of_a_gpu() -> None:
    """A probe that hangs must not make a GPU rest."""
    fleet = a_held_gpu()
    rests(fleet, 0, minutes=20, anew=False)
    assert holders_told(fleet)[0].idle_since is None
    rests(fleet, 0, minutes=20)
    assert holders_told(fleet)[0].idle_since is not None
    rests(fleet, 0, minutes=20, anew=False)
    assert holders_told(fleet)[0].idle_since is None
