"""A real notebook and its agent: neither the kernel nor the files notice a kill."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import Fleet, Machine, wait_until
from native_fleet import NATIVE_PATIENCE, add_native_machine, missing_for_native
from notebook_client import Kernel, NotebookServer


pytestmark = [
    pytest.mark.hub,
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Return a running Hub with the default catalog."""
    if (reason := missing_for_native()) is not None:
        pytest.skip(reason)
    with Fleet(folder=tmp_path, catalog=None) as fleet:
        yield fleet


def test_a_running_kernel_survives_a_killed_agent(fleet: Fleet) -> None:
    """What it has computed is there before, without and after an agent."""
    machine = add_native_machine(fleet)
    answer = fleet.ask("ada", {"profile": "cpu-small"})
    assert answer.status_code in {201, 202}, answer.text
    fleet.wait_ready("ada", patience=NATIVE_PATIENCE)
    server = NotebookServer(f"{fleet.url}/user/ada/", fleet.token_of("ada"))
    asyncio.run(_compute_across_a_kill(fleet, machine, server))
    assert fleet.wait_state("ada", "ready")["holds"]
    model = fleet.server("ada")
    assert model is not None
    assert model["ready"]
    fleet.stop_server("ada")
    assert fleet.status("ada")["state"] == "stopped"


async def _compute_across_a_kill(
    fleet: Fleet, machine: Machine, server: NotebookServer
) -> None:
    async with Kernel(server) as kernel:
        await kernel.run("x = 40")
        await asyncio.to_thread(fleet.kill_agent, machine.name)
        assert "41" in await kernel.run("x += 1; print(x)")
        fleet.start_agent(machine.name)
        log = fleet.folder / f"agent-{machine.name}.log"
        await asyncio.to_thread(
            wait_until,
            lambda: log.read_text().count("event=welcome") == 2,
            "the agent is back",
        )
        assert "42" in await kernel.run("x += 1; print(x)")
