"""An agent tells what its machine can do, at the first word and whenever it changes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import patient_agent
import pytest
from agent_process import AgentProcess
from controller_peer import ControllerPeer
from probe_machines import FIELDS_ROW

from fleet_contracts.capabilities import Origin, Usage, WorkerCapabilities
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.protocol import CapabilitiesChanged, Heartbeat, Redetect


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that the agent's PATH begins with, empty so far."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder


def install_nvidia_smi(folder: Path, row: str = FIELDS_ROW) -> None:
    """Put an nvidia-smi of one card in *folder*, in one step."""
    made = folder / "nvidia-smi.new"
    made.write_text(f"#!/bin/sh\nprintf '%s' '{row}'\n")
    made.chmod(0o755)
    made.rename(folder / "nvidia-smi")


def pictures(peer: ControllerPeer) -> list[WorkerCapabilities]:
    """Return the changed pictures that were heard, in order."""
    return [
        WorkerCapabilities.model_validate(message.capabilities)
        for message in peer.heard
        if isinstance(message, CapabilitiesChanged)
    ]


async def settled(peer: ControllerPeer, *, devices: int) -> WorkerCapabilities:
    """Return the first settled picture with so many devices."""

    def find() -> Any:
        for picture in pictures(peer):
            if picture.settled and len(picture.accelerators) == devices:
                return picture
        return None

    found: WorkerCapabilities = await peer.until(find)
    return found


async def test_the_hello_carries_the_hosts_facts(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Before any slow tool has answered, the host and its limits are known."""
    agent.program = (patient_agent.__file__,)
    agent.start()
    hello = await peer.greeted(1)
    picture = WorkerCapabilities.model_validate(hello.capabilities)
    facts = placement_facts(picture)

    assert facts.known
    assert facts.os == "linux"
    assert facts.cores_milli
    assert facts.memory_bytes
    assert facts.disk_free_bytes
    assert picture.host.os.observed is not None
    assert picture.host.os.observed.origin is Origin.DETECTED


async def test_the_whole_picture_follows(
    peer: ControllerPeer, agent: AgentProcess, tools: Path
) -> None:
    """The card is reported by UUID once nvidia-smi has answered."""
    install_nvidia_smi(tools)
    agent.start()
    picture = await settled(peer, devices=1)
    [device] = placement_facts(picture).devices

    assert device.usable
    assert device.memory_bytes == 81559 << 20


async def test_a_change_before_the_welcome_is_told_after_it(
    peer: ControllerPeer, agent: AgentProcess, tools: Path
) -> None:
    """A machine whose tools are quick would otherwise stay as its hello had it."""
    install_nvidia_smi(tools)
    peer.may_welcome.clear()
    agent.start()
    await agent.until_told('event="capabilities changed" settled')
    peer.may_welcome.set()
    picture = await settled(peer, devices=1)

    assert not WorkerCapabilities.model_validate(peer.hellos[0].capabilities).settled
    assert picture.settled


async def test_a_redetection_finds_what_was_plugged_in(
    peer: ControllerPeer, agent: AgentProcess, tools: Path
) -> None:
    """On demand the machine is looked at again, and a change is told at once."""
    agent.start()
    await peer.greeted(1)
    await settled(peer, devices=0)
    install_nvidia_smi(tools)
    peer.say(Redetect())

    picture = await settled(peer, devices=1)
    assert picture.accelerators[0].name == "NVIDIA H100 80GB HBM3"


async def test_a_change_is_told_by_itself(
    peer: ControllerPeer, agent: AgentProcess, tools: Path
) -> None:
    """Periodic detection notices that a card is lost; nobody has to ask."""
    install_nvidia_smi(tools)
    agent.settings["detect_seconds"] = 1.0
    agent.start()
    await settled(peer, devices=1)
    lost = ", ".join(["0", *["[GPU is lost]"] * 10])
    install_nvidia_smi(tools, f"{lost}\n")

    def unhealthy() -> bool:
        last = pictures(peer)[-1]
        return any(device.healthy is False for device in last.accelerators)

    assert await peer.until(unhealthy)


async def test_nothing_is_told_while_nothing_changes(
    peer: ControllerPeer, agent: AgentProcess, tools: Path
) -> None:
    """Looking again does not make an event: only a changed fact does."""
    install_nvidia_smi(tools)
    agent.settings["detect_seconds"] = 1.0
    agent.start()
    await settled(peer, devices=1)
    told = len(pictures(peer))
    beats = sum(isinstance(message, Heartbeat) for message in peer.heard)
    # Many detections pass in the time of so many heartbeats.
    await peer.until(
        lambda: (
            sum(isinstance(message, Heartbeat) for message in peer.heard) >= beats + 15
        )
    )

    assert len(pictures(peer)) == told


async def test_labels_of_the_configuration_are_marked_as_such(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """A label says where it comes from, and claims no hardware."""
    agent.settings["labels"] = {"room": "basement", "accelerator": "cuda"}
    agent.start()
    hello = await peer.greeted(1)
    picture = WorkerCapabilities.model_validate(hello.capabilities)

    assert {label.observed.origin for label in picture.labels} == {Origin.LABEL}
    assert placement_facts(picture).labels["room"] == "basement"
    assert picture.accelerators == ()


async def test_free_memory_travels_with_the_heartbeat(
    peer: ControllerPeer, agent: AgentProcess, tools: Path
) -> None:
    """Observations are renewed on a machine where no fact changes."""
    install_nvidia_smi(tools)
    agent.settings["observe_seconds"] = 1.0
    agent.start()
    await settled(peer, devices=1)

    def observations() -> list[Usage]:
        return [
            Usage.model_validate(message.usage)
            for message in peer.heard
            if isinstance(message, Heartbeat) and message.usage
        ]

    def renewed() -> bool:
        times = {usage.observed.observed_at for usage in observations()}
        return len(times) > 2 and len(observations()[-1].devices) == 1

    assert await peer.until(renewed)
    latest = observations()[-1]
    assert latest.memory_available_bytes
    assert latest.devices[0].utilisation_percent == 97
