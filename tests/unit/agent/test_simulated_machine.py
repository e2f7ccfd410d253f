"""A pretended computer is read like a real one, and nothing runs on it for real."""

from __future__ import annotations

from typing import Any

import pytest

from fleet_agent.compose import ask_for
from fleet_agent.errors import SettingsError
from fleet_agent.probes.detect import detect
from fleet_agent.probes.observe import observe
from fleet_agent.probes.readers import ask_machine
from fleet_agent.probes.settings import DetectSettings
from fleet_contracts.capabilities import DeviceKind, WorkerCapabilities
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.workloads import DriverName


GIB = 1024**3
PRETEND = (DriverName.SIMULATION,)
A_BOX: dict[str, Any] = {
    "cores": 64,
    "memory": "512G",
    "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "memory": "80G", "count": 8}],
}


def settings_for(shape: dict[str, Any], name: str = "box") -> DetectSettings:
    """Return the settings of an agent that pretends to be of *shape*."""
    ask = ask_for(shape, PRETEND, name)
    return DetectSettings(state_dir="/state", drivers=PRETEND, ask=ask)


async def look(shape: dict[str, Any], name: str = "box") -> WorkerCapabilities:
    """Return what the probes see."""
    return await detect(settings_for(shape, name))


@pytest.mark.asyncio
async def test_a_box_of_eight_gpus_has_eight_gpus_that_can_be_placed_on() -> None:
    """With UUIDs of their own, that are the same at the next start."""
    picture, again, other = await look(A_BOX), await look(A_BOX), await look(A_BOX, "b")
    facts = placement_facts(picture)

    assert facts.memory_bytes == 512 * GIB
    assert facts.cores_milli == 64_000
    assert [device.usable for device in facts.devices] == [True] * 8
    assert {device.memory_bytes for device in facts.devices} == {80 * GIB}
    uuids = {device.uuid for device in picture.accelerators}
    assert uuids == {device.uuid for device in again.accelerators}
    assert len(uuids | {device.uuid for device in other.accelerators}) == 16
    assert facts.drivers == {DriverName.SIMULATION: True}


@pytest.mark.asyncio
async def test_how_busy_it_is_can_be_observed() -> None:
    """As on a real machine: shown, and no capacity."""
    settings = settings_for(A_BOX)
    usage = await observe(settings, await detect(settings))
    assert usage is not None
    assert len(usage.devices) == 8


@pytest.mark.asyncio
async def test_a_mac_has_its_gpu() -> None:
    """The chip that was asked for, with the machine's own memory."""
    shape = {
        "system": "macos",
        "chip": "Apple M2 Ultra",
        "cores": 24,
        "memory": "192G",
    }
    picture = await look(shape)
    [device] = picture.accelerators

    assert placement_facts(picture).os == "darwin"
    assert device.accelerator is DeviceKind.MPS
    assert device.name == "Apple M2 Ultra"


@pytest.mark.asyncio
@pytest.mark.parametrize("tool", ["fails", "hangs"])
async def test_a_broken_gpu_driver_is_no_machine_without_gpus(tool: str) -> None:
    """What is not known is not zero, and the rest of the machine is well."""
    picture = await look(A_BOX | {"gpu_tool": tool})
    [report] = [probe for probe in picture.probes if probe.probe == "nvidia"]

    assert picture.accelerators == ()
    assert report.devices_complete is not True
    assert placement_facts(picture).cores_milli == 64_000


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ({"cores": 4}, "memory"),
        (A_BOX | {"memory": "lots"}, "lots"),
        (A_BOX | {"gpu_tool": "melts"}, "gpu_tool"),
        (A_BOX | {"colour": "beige"}, "colour"),
    ],
)
def test_a_wrong_shape_is_told_with_the_word_that_is_wrong(
    shape: dict[str, Any], told: str
) -> None:
    """All at once, before the agent does anything."""
    with pytest.raises(SettingsError, match=told):
        ask_for(shape, PRETEND, "box")


def test_only_an_agent_that_runs_nothing_may_pretend() -> None:
    """Configuration cannot claim hardware on which real work is placed."""
    with pytest.raises(SettingsError, match="only an agent whose one driver"):
        ask_for(A_BOX, (DriverName.SIMULATION, DriverName.NATIVE), "box")
    assert ask_for({}, (DriverName.NATIVE,), "box") is ask_machine
