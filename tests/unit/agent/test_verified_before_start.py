"""What a runtime requires of torch is verified once its environment is built."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from agent_support import a_runtime, a_spec
from heard_agent import Building, Ear
from probe_machines import PretendMachine, a_pretend_machine, settings_for

from fleet_agent.agent import Agent
from fleet_agent.ledger import Ledger
from fleet_agent.link import Link
from fleet_agent.probes.settings import Environment
from fleet_contracts.protocol import AgentEvent, Launch
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName, RefSource


pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.usefixtures("first_facts_in_time"),
]

PACKAGES = json.dumps({"found": True, "metadata": ["torch-2.5.1.dist-info"]})


def torch_says(*, ok: bool | None) -> str:
    """Return what the torch probe prints; None: it ends before it has tried."""
    steps: list[dict[str, Any]] = [
        {"stage": "started", "executable": "/env/bin/python"},
        {"stage": "imported"},
        {"stage": "versions", "version": "2.5.1+cu124", "cuda": "12.4"},
        {"stage": "availability", "cuda_available": True},
    ]
    if ok is not None:
        steps += [
            {"stage": "operation", "device": "cuda:0", "ok": ok},
            {"stage": "done"},
        ]
    return "".join(f"##PROBE##{json.dumps(step)}\n" for step in steps)


@asynccontextmanager
async def an_agent(
    folder: Path, machine: PretendMachine
) -> AsyncIterator[tuple[Agent, Building, Ear]]:
    """Run an agent on *machine* that can build one environment."""
    driver, ear, ledger = Building(), Ear(), Ledger(folder / "ledger.sqlite")

    async def find() -> tuple[Environment, ...]:
        return tuple(driver.built)

    agent = Agent(
        ledger=ledger,
        drivers={DriverName.NATIVE: driver},
        owner="olivia",
        service_url="http://127.0.0.1:1/services/fleet/",
        detection=settings_for(machine, find_environments=find),
        detect_seconds=3600,
    )
    running = asyncio.create_task(agent.run(cast("Link", ear)))
    try:
        await ear.lives.wait()
        yield agent, driver, ear
    finally:
        await agent.close(stop_workloads=False)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        ledger.close()


def a_launch(**requires: Any) -> Launch:
    """Return the launch of a notebook whose runtime requires ``torch.cuda``."""
    runtime = a_runtime(
        **{
            "driver": DriverName.NATIVE,
            "ref": "pytorch",
            "source": RefSource.DRIVER_REFS,
            "requires": ("torch.cuda",),
        }
        | requires
    )
    return Launch(allocation="one", epoch=1, spec=a_spec(runtime=runtime))


ENDS = (AgentEvent.SERVING, AgentEvent.FAILED, AgentEvent.REJECTED)


@pytest.mark.parametrize(
    ("ok", "reason"),
    [(False, Reason.ACCELERATOR_NOT_USED), (None, Reason.CAPABILITIES_UNKNOWN)],
)
async def test_a_torch_that_cannot_is_found_before_the_start(
    tmp_path: Path, ok: bool | None, reason: Reason
) -> None:
    """Placement admitted it because nobody knew; what cannot be known is no yes."""
    machine = a_pretend_machine(
        package_readings=PACKAGES, torch_probe=torch_says(ok=ok)
    )
    async with an_agent(tmp_path, machine) as (agent, driver, ear):
        agent.receive(a_launch())
        report = await ear.until(*ENDS)

    assert report.event is AgentEvent.FAILED
    assert report.explanation is not None
    assert report.explanation.reason is reason
    assert report.explanation.subject == "torch.cuda"
    assert driver.started == []


async def test_a_torch_that_can_is_asked_once_and_started(tmp_path: Path) -> None:
    """The answer is a fact of the machine from then on."""
    machine = a_pretend_machine(
        package_readings=PACKAGES, torch_probe=torch_says(ok=True)
    )
    async with an_agent(tmp_path, machine) as (agent, driver, ear):
        agent.receive(a_launch())
        report = await ear.until(*ENDS)

    assert report.event is AgentEvent.SERVING
    assert driver.started == ["one"]
    assert machine.times("torch-probe") == 1


async def test_a_runtime_that_requires_nothing_waits_for_no_torch(
    tmp_path: Path,
) -> None:
    """Others than PyTorch's runtimes start without that question."""
    machine = a_pretend_machine(
        package_readings=PACKAGES, torch_probe=torch_says(ok=False)
    )
    async with an_agent(tmp_path, machine) as (agent, driver, ear):
        agent.receive(a_launch(requires=()))
        report = await ear.until(*ENDS)

    assert report.event is AgentEvent.SERVING
    assert driver.started == ["one"]
