"""A real service ends who computes nothing at the time that those who wait were told."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fleet_builders import NOON
from fleet_service import Service, a_service
from page_visits import add_people
from patience import PATIENCE
from rich_machine import a_usage
from scripted_agent import ScriptedAgent
from service_browser import Browser
from shared_box import SHARED, a_shared_box, alice_holds, waits

from fleet_contracts.protocol import Heartbeat, Stop
from fleet_contracts.reasons import Reason


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

IDLE = SHARED.replace("cpu: 3, memory: 1G", "cpu: 3, memory: 1G, idle_limit: 60s")


async def sees(agent: ScriptedAgent, load: int) -> None:
    """Say how busy the machine is: 1000 is one busy core."""
    now = datetime.now(UTC)
    usage = a_usage(NOON).model_copy(update={"load_milli": load, "devices": ()})
    told = usage.model_dump(mode="json")
    told["observed"]["observed_at"] = now.isoformat()
    await agent.say(Heartbeat(sent_at=now, usage=told))
    await agent.settle()


async def holder(service: Service, workload: str, wait: int = 0) -> dict[str, Any]:
    """Return the holder that bob is told of, at once or after some news of it."""
    path = f"api/workloads/{workload}/timeline?wait={wait}"
    token = "token hub-token-of-bob"
    document = await service.json(path, token=token)
    (one,) = document["explanation"]["holders"]
    return dict(one)


async def test_who_is_idle_with_an_open_tab_ends_when_it_was_said(
    tmp_path: Path,
) -> None:
    """And the one whose kernel is busy, whoever looks, does not and is told no time."""
    async with a_service(tmp_path) as service:
        add_people(service.hub)
        agent = await a_shared_box(service, IDLE)
        mine, wanted = await alice_holds(service), await waits(service)
        await sees(agent, 1020)
        assert (await holder(service, wanted)).get("idle_ends") is None
        await sees(agent, 40)
        async with asyncio.timeout(PATIENCE):
            # The notice comes when half of it is over.
            while (told := await holder(service, wanted, 2)).get("idle_ends") is None:
                await sees(agent, 40)
        ends = datetime.fromisoformat(told["idle_ends"])
        # The notice follows with the controller's next tick.
        path = f"api/workloads/{mine}/timeline?wait=5"
        async with asyncio.timeout(PATIENCE):
            while "idle_soon" not in str(
                await service.json(path, token="token hub-token-of-alice")
            ):
                pass
        _, page = await Browser(service, "alice").visit(f"workloads/{mine}")
        assert "unless something is computed" in page
        assert "and it ends if that lasts another" in page
        await agent.until(lambda: any(isinstance(one, Stop) for one in agent.heard))
        assert datetime.now(UTC) >= ends
        (stop,) = [one for one in agent.heard if isinstance(one, Stop)]
        assert stop.explanation is not None
        assert stop.explanation.reason is Reason.IDLE_LIMIT
        await agent.launched(2)
        assert (await service.status("2-1"))["state"] == "ready", "bob has it now"
        await agent.hang_up()
