"""What the controller keeps of a machine: its own record, and what it was told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from fleet_builders import NOON
from fleet_controller import Fleet
from rich_machine import GIB, a_usage

from fleet_contracts.protocol import CapabilitiesChanged, Heartbeat, Redetect
from fleet_hub.adapters.codec import MACHINES
from fleet_hub.controller import enrolling, machines
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
    """Nothing is written, no placement follows, and the facts stay what they were."""
    fleet = Fleet()
    fleet.machine()
    before = fleet.core.model.machines["box"]
    facts = fleet.core.model.presence["box"].facts
    fleet.core.wanted = False
    beat(fleet, a_usage(NOON).model_dump(mode="json"))

    assert fleet.core.wanted is False
    assert fleet.core.model.machines["box"] is before
    assert fleet.core.model.presence["box"].facts is facts


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
