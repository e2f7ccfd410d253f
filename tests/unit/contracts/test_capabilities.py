"""A picture keeps its unknowns, and placement reads only what decides."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    AgentDriver,
    DeviceKind,
    DeviceUsage,
    Fact,
    Framework,
    HostFacts,
    MetalFence,
    Observed,
    Tool,
    TorchFacts,
    Usage,
    WorkerCapabilities,
)
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.workloads import DriverName


SEEN = Observed(source="a tool", observed_at=datetime(2026, 1, 1, tzinfo=UTC))
UUID = "GPU-00000000-0000-0000-0000-000000000001"
SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "capabilities.schema.json"


def a_gpu(**facts: Any) -> AcceleratorDevice:
    """Return a healthy NVIDIA device, unless *facts* say otherwise."""
    return AcceleratorDevice(
        **{
            "accelerator": DeviceKind.CUDA,
            "vendor": "nvidia",
            "uuid": UUID,
            "healthy": True,
            "execution_supported": True,
        }
        | facts
    )


def usable(device: AcceleratorDevice) -> bool:
    """Return whether placement may hand out *device*."""
    picture = WorkerCapabilities(accelerators=(device,))
    return placement_facts(picture).devices[0].usable


def test_a_picture_survives_the_wire() -> None:
    """What an agent writes, a controller reads: unknown stays unknown."""
    picture = WorkerCapabilities(
        host=HostFacts(os=Fact(value="linux", observed=SEEN)),
        accelerators=(a_gpu(memory_mib=None),),
    )
    wire = json.dumps(picture.model_dump(mode="json", by_alias=True))

    assert WorkerCapabilities.model_validate_json(wire) == picture
    assert json.loads(wire)["accelerators"][0]["memory_mib"] is None


def test_a_newer_agents_fact_is_ignored() -> None:
    """A fact that this version does not know costs nothing of the rest."""
    picture = WorkerCapabilities.model_validate(
        {"settled": True, "quantum": {"qubits": 3}}
    )

    assert picture.settled


def test_a_picture_cannot_be_changed() -> None:
    """Whoever holds a picture can rely on it."""
    with pytest.raises(ValidationError, match="frozen"):
        WorkerCapabilities().settled = True  # type: ignore[misc]


def test_no_memory_is_no_amount() -> None:
    """0 MiB is how tools spell unknown: it cannot be written into a picture."""
    with pytest.raises(ValidationError, match="greater than 0"):
        a_gpu(memory_mib=0)


def test_the_published_schema_describes_a_picture() -> None:
    """The schema in the reference accepts what is sent, and refuses another form."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    picture = WorkerCapabilities(accelerators=(a_gpu(memory_mib=4096),))
    document = picture.model_dump(mode="json", by_alias=True)

    Draft202012Validator.check_schema(schema)
    assert not list(Draft202012Validator(schema).iter_errors(document))
    document["accelerators"][0]["memory_mib"] = "4096 MiB"
    assert list(Draft202012Validator(schema).iter_errors(document))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, True),
        ({"healthy": None}, True),
        ({"healthy": False}, False),
        ({"execution_supported": None}, False),
        ({"execution_supported": False}, False),
        ({"mig_enabled": True}, False),
        ({"uuid": None}, False),
        ({"accelerator": DeviceKind.MPS, "uuid": None}, True),
        ({"accelerator": DeviceKind.MPS, "execution_supported": None}, False),
    ],
)
def test_a_device_is_placed_on_only_when_it_can_be_held(
    facts: dict[str, Any], *, expected: bool
) -> None:
    """It must work, be whole and have a name; the Mac's GPU needs no name."""
    assert usable(a_gpu(**facts)) is expected


def test_usage_is_never_capacity() -> None:
    """However full the memory is now, what may be asked for stays the same."""
    picture = WorkerCapabilities(accelerators=(a_gpu(memory_mib=81559),))
    busy = picture.model_copy(
        update={
            "usage": Usage(
                observed=SEEN,
                memory_available_bytes=1,
                devices=(
                    DeviceUsage(
                        accelerator=DeviceKind.CUDA, uuid=UUID, memory_free_mib=3
                    ),
                ),
            )
        }
    )

    assert placement_facts(busy) == placement_facts(picture)


def test_nothing_is_known_before_the_host_is() -> None:
    """An empty picture admits nothing: unknown is not "fits"."""
    facts = placement_facts(WorkerCapabilities())

    assert not facts.known
    assert facts.cores_milli is None
    assert facts.memory_bytes is None


def test_one_environment_does_not_speak_for_another() -> None:
    """torch.cuda is a fact of one environment; in one that is not built it is unknown."""
    facts = placement_facts(
        WorkerCapabilities(
            torch=(
                TorchFacts(environment="plain", cuda=False, mps=False),
                TorchFacts(environment="pytorch", cuda=True, mps=False),
            )
        )
    )

    assert facts.has("torch.cuda", "pytorch") is True
    assert facts.has("torch.cuda", "plain") is False
    assert facts.has("torch.cuda", "not-built-yet") is None
    assert facts.has("torch.cuda") is None


def test_tools_and_drivers_are_told_apart() -> None:
    """A sandbox that works and a driver that does not are both read as such."""
    facts = placement_facts(
        WorkerCapabilities(
            sandboxes=(Tool(name="bubblewrap", usable=True, observed=SEEN),),
            drivers=(
                AgentDriver(
                    name=DriverName.DOCKER, usable=False, reason="broken", observed=SEEN
                ),
                AgentDriver(
                    name=DriverName.NATIVE,
                    usable=True,
                    environments=("jupyter",),
                    observed=SEEN,
                ),
            ),
        )
    )

    assert facts.has("sandbox.bubblewrap") is True
    assert facts.has("sandbox.firejail") is None
    assert facts.drivers == {DriverName.DOCKER: False, DriverName.NATIVE: True}
    assert facts.driver_environments == {DriverName.NATIVE: ("jupyter",)}
    assert facts.driver_faults == {DriverName.DOCKER: "broken"}


def test_what_names_no_environment_or_no_version_is_no_fact_of_one() -> None:
    """It is unknown, and takes nothing away from what others said."""
    facts = placement_facts(
        WorkerCapabilities(
            torch=(TorchFacts(cuda=True),),
            frameworks=(
                Framework(name="jax", environment="plain", observed=SEEN),
                Framework(
                    name="torch", version="2.9", environment="plain", observed=SEEN
                ),
            ),
        )
    )

    assert facts.environments == {}
    assert facts.frameworks == {"plain": {"torch": "2.9"}}


def a_fenced_mac(**changes: Any) -> WorkerCapabilities:
    """Return a Mac whose fence holds on its build, with its owner's consent."""
    facts = {
        "os": "darwin",
        "apple_silicon": True,
        "os_build": "24F74",
        "consent": True,
        "holds": True,
        "seen_on": "24F74",
    } | changes
    seen_on = facts.pop("seen_on")
    fence = MetalFence(
        consent=facts.pop("consent"),
        holds=facts.pop("holds"),
        os_build=seen_on,
        observed=SEEN,
    )
    host = HostFacts.model_validate(
        {name: {"value": value} for name, value in facts.items()}
    )
    return WorkerCapabilities(host=host, metal_fence=fence)


def test_a_fence_that_was_seen_to_hold_lets_cpu_notebooks_share() -> None:
    """Seen on this very build, by a Mac whose owner consents."""
    assert placement_facts(a_fenced_mac()).metal_fenced


@pytest.mark.parametrize(
    "changes",
    [
        {"consent": False},
        {"holds": False},
        {"holds": None},
        {"consent": False, "holds": None},
        {"seen_on": "24E263"},
        {"seen_on": None},
        {"os_build": "24G84"},
        {"os_build": None},
        {"os_build": None, "seen_on": None},
        {"apple_silicon": False},
        {"apple_silicon": None},
        {"os": "linux"},
        {"os": None},
    ],
)
def test_any_doubt_about_the_fence_means_that_notebooks_hold_the_gpu(
    changes: dict[str, Any],
) -> None:
    """Another build, no consent, no result, no Mac: nothing is shared."""
    assert not placement_facts(a_fenced_mac(**changes)).metal_fenced


def test_an_agent_that_says_nothing_of_a_fence_has_none() -> None:
    """So does one of an older version."""
    picture = a_fenced_mac().model_copy(update={"metal_fence": None})

    assert not placement_facts(picture).metal_fenced
