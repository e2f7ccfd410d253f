"""An honest agent and a hostile one, at the same controller."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from attended_start import AttendedStart
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import Service
from scripted_agent import ScriptedAgent

from fleet_contracts.protocol import (
    AgentEvent,
    Launch,
    Report,
)
from fleet_hub.admission import OutcomeKind


BOB = a_principal("bob", 2)
HOSTILE = "\x1b[2J" + "x" * 5000


async def an_honest_one(service: Service) -> ScriptedAgent:
    """Return the agent of alice's machine, which runs a server of hers."""
    agent = ScriptedAgent(service, await service.enrol("honest", "alice"))
    await agent.connect()
    start = await AttendedStart(service, an_ask()).open()
    assert (await start.ended()).kind is OutcomeKind.READY
    return agent


async def a_hostile_one(service: Service) -> ScriptedAgent:
    """Return the agent of bob's machine, which does nothing by itself."""
    agent = ScriptedAgent(service, await service.enrol("hostile", "bob"))
    agent.is_automatic = False
    await agent.connect()
    return agent


async def shown(service: Service, name: str = "hostile") -> dict[str, Any]:
    """Return what an admin sees of a machine."""
    fleet = await service.json("internal/machines")
    found: dict[str, Any] = next(
        item for item in fleet["machines"] if item["name"] == name
    )
    return found


def a_report(launch: Launch, event: AgentEvent, **more: Any) -> Report:
    """Return a report on *launch*, whoever's it is."""
    values: dict[str, Any] = {
        "allocation": launch.allocation,
        "epoch": launch.epoch,
        "seq": 99,
        "at": datetime.now(UTC),
        "event": event,
    }
    return Report(**values | more)
