"""Accounts of a real controller: exact through kills, and told to whom they belong."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from command_line import jupyter_fleet
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import Service, a_service
from scripted_agent import ScriptedAgent


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with one machine of alice's and three people."""
    async with a_service(tmp_path) as running:
        for name in ("alice", "bob"):
            running.hub.add_user(name)
        running.hub.add_user("root", admin=True)
        yield running


async def an_agent(service: Service) -> ScriptedAgent:
    """Return the linked agent of alice's machine."""
    agent = ScriptedAgent(service, await service.enrol())
    await agent.connect()
    return agent


async def started(service: Service, server: int = 1, **changes: Any) -> str:
    """Return the id of a workload that has become ready."""
    start = await AttendedStart(service, an_ask(server, **changes)).open()
    outcome = await start.ended()
    assert outcome.workload is not None
    return outcome.workload


async def held_by_the_timeline(service: Service, workload: str) -> float:
    """Return the seconds from the timeline's placed entry to its stopped one."""
    document = await service.json(
        f"api/workloads/{workload}/timeline", token="token hub-token-of-root"
    )
    at = {one["kind"]: datetime.fromisoformat(one["at"]) for one in document["events"]}
    return (at["stopped"] - at["placed"]).total_seconds()


async def accounts(service: Service, who: str = "root", query: str = "") -> Any:
    """Return the accounts that *who* is told."""
    document = await service.json(
        f"api/usage{query}", token=f"token hub-token-of-{who}"
    )
    return document["accounts"]


async def test_what_a_killed_controller_counted_is_exact_to_the_microsecond(
    service: Service,
) -> None:
    """Killed with kill -9 while it runs, while it stops, and after the release."""
    agent = await an_agent(service)
    workload = await started(service)
    await service.kill_child()
    await agent.gone()
    (running,) = await accounts(service)
    assert running["seconds"] > 0
    await agent.connect()
    agent.is_automatic = False
    await service.json("internal/servers/1-1/stop", method="POST", body={})
    stop = await stop_of(agent)
    await service.kill_child()
    await agent.gone()
    await agent.connect()
    await agent.end(stop)
    await service.json("internal/servers/1-1/stop?wait=60", method="POST", body={})
    expected = await held_by_the_timeline(service, workload)
    for _ in range(2):
        (account,) = await accounts(service)
        assert account["seconds"] == expected
        assert account["allocations"] == 1
        assert account["core_seconds"] == expected
        await service.kill_child()
        await agent.gone()
    (account,) = await accounts(service)
    assert account["seconds"] == expected


async def stop_of(agent: ScriptedAgent) -> Any:
    """Return the stop that the agent was told, once it was."""

    def stops() -> list[Any]:
        return [message for message in agent.heard if message.type == "stop"]

    await agent.until(lambda: bool(stops()))
    return stops()[-1]


async def test_a_user_reads_their_own_account_and_an_admin_everybodys(
    service: Service,
) -> None:
    """As JSON, as CSV, and within a period."""
    agent = await an_agent(service)
    await started(service)
    await started(service, 2)
    other = a_principal("bob", 2)
    start = await AttendedStart(service, an_ask(3, principal=other)).open()
    await start.ended()
    assert {one["user"] for one in await accounts(service, "bob")} == set()
    (mine,) = await accounts(service, "alice")
    assert (mine["user"], mine["class"], mine["allocations"]) == ("alice", "small", 2)
    assert await accounts(service, "root", "?until=2020-01-01") == []
    response = await service.fetch(
        "api/usage?format=csv&since=1d", token="token hub-token-of-root"
    )
    assert response.headers["Content-Type"].startswith("text/csv")
    (row,) = csv.DictReader(io.StringIO(response.body.decode()))
    assert (row["user"], row["class"], row["allocations"]) == ("alice", "small", "2")
    for query in ("?since=soon", "?since=2026-02-01&until=2026-01-01"):
        response = await service.fetch(
            f"api/usage{query}", token="token hub-token-of-root"
        )
        assert response.code == 400, response.body
    await agent.hang_up()


async def test_a_terminal_shows_a_table_with_its_period_in_any_width(
    service: Service,
) -> None:
    """And the same numbers as CSV and JSON; a wrong period says how to write one."""
    ran = await jupyter_fleet(service, "usage")
    assert "Nothing was held." in ran.out
    agent = await an_agent(service)
    await started(service)
    await started(service, 2, class_name="small")
    for columns in (100, 60, 32):
        ran = await jupyter_fleet(service, "usage", "--since", "7d", columns=columns)
        assert ran.status == 0, ran.err
        assert all(len(line) <= columns for line in ran.out.splitlines()), ran.out
        assert "alice" in ran.out
        assert "small" in ran.out
    ran = await jupyter_fleet(service, "usage", "--csv", "--since", "beginning")
    (row,) = csv.DictReader(io.StringIO(ran.out))
    assert (row["since"], row["allocations"]) == ("", "2")
    this_month = f"{datetime.now(UTC):%Y-%m}"
    ran = await jupyter_fleet(service, "usage", "--json", "--month", this_month)
    assert '"class": "small"' in ran.out
    for wrong, part in (
        (("--since", "soon"), "7d"),
        (("--month", "11-2026"), "2026-11"),
        (("--month", "2026-11", "--since", "7d"), "--month"),
        (("--since", "2026-02-01", "--until", "2026-01-01"), "before it begins"),
    ):
        ran = await jupyter_fleet(service, "usage", *wrong)
        assert ran.status == 1
        assert part in ran.err
        assert len(ran.err.splitlines()) == 1
    await agent.hang_up()
