"""A real controller and a real agent, on a machine whose GPUs are pretended."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from agent_process import AgentProcess
from attended_start import AttendedStart
from fleet_controller import an_ask
from fleet_service import Service, a_service
from patience import until_so
from pretended_cards import PretendedCards, uuid_of

from fleet_contracts.reasons import Explanation
from fleet_contracts.sentences import sentence
from fleet_hub.admission import OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

ALICE = "token hub-token-of-alice"
CATALOG = """\
classes:
  - {name: gpu, title: GPU, cpu: 0.1, memory: 10M, accelerator: cuda, devices: 1}
  - {name: two, title: Two, cpu: 0.1, memory: 10M, accelerator: cuda, devices: 2}
runtimes:
  - {name: python, title: Python, accelerators: [cuda], ref: demo}
profiles:
  - {name: jupyter, title: JupyterLab, classes: [gpu, two], runtimes: [python]}
"""


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedCards:
    """Return four idle GPUs of this machine."""
    folder = tmp_path / "tools"
    made = PretendedCards(folder, 4)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return made


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service that offers GPUs."""
    async with a_service(tmp_path) as running:
        running.hub.add_user("alice")
        running.hub.add_user("root", admin=True)
        running.edit_catalog(CATALOG)
        yield running


@pytest_asyncio.fixture
async def agent(
    tmp_path: Path, service: Service, cards: PretendedCards
) -> AsyncIterator[AgentProcess]:
    """Return alice's agent on a machine with *cards*, which it knows by now."""
    token = await service.enrol()
    made = AgentProcess(tmp_path / "agent", controller=service.url, token=token)
    made.settings |= {
        "owner": "alice",
        "observe_seconds": 1.0,
        "detect_seconds": 1.0,
    }
    made.start()
    try:
        await until(
            service, lambda found: len(found["machines"]) == 1 and why(found) is None
        )
        yield made
    finally:
        made.clean_up()


async def explained(service: Service, class_name: str = "gpu") -> dict[str, Any]:
    """Return what would happen to alice's start."""
    path = f"api/explain?profile=jupyter&class={class_name}"
    found: dict[str, Any] = await service.json(path, token=ALICE)
    return found


def why(found: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the machine says against it; None: nothing."""
    [machine] = found["machines"]
    not_now = machine["why_not"]
    explanation: dict[str, Any] | None = not_now and not_now["explanation"]
    return explanation


async def until(
    service: Service,
    what: Callable[[dict[str, Any]], bool],
    class_name: str = "gpu",
) -> dict[str, Any]:
    """Return the first explanation of which *what* is true."""

    async def look() -> dict[str, Any] | None:
        found = await explained(service, class_name)
        return found if what(found) else None

    return await until_so(look, "the explanation is so")


async def started(service: Service, number: int = 1, class_name: str = "gpu") -> str:
    """Return the workload of a server of alice's that is ready."""
    start = await AttendedStart(service, an_ask(number, class_name=class_name)).open()
    outcome = await start.ended()
    assert outcome.kind is OutcomeKind.READY, outcome
    workload: str = (await service.status(f"1-{number}"))["workload"]
    return workload


async def test_of_four_gpus_a_clean_one_is_picked_and_the_foreign_one_named(
    service: Service, agent: AgentProcess, cards: PretendedCards
) -> None:
    """From nvidia-smi to the reason that a user reads, and back once the use ends."""
    for number in (0, 1, 2):
        cards.use(number, 24_576)
    found = await until(service, lambda found: why(found) is not None, "two")
    reason = why(found)
    assert reason is not None
    assert reason["reason"] == "foreign_process"
    assert (reason["free"], reason["capacity"]) == (56 << 30, 80 << 30)
    assert "outside the fleet" in sentence(Explanation.model_validate(reason))

    await started(service)
    held = await service.json("api/machines", token="token hub-token-of-root")
    [hold] = held["machines"][0]["holds"]
    assert hold["resources"]["devices"] == [uuid_of(3)]

    start = await AttendedStart(service, an_ask(2, class_name="gpu")).open()
    await start.until("waiting")
    cards.use(1, 0)
    assert (await start.ended()).kind is OutcomeKind.READY


async def test_a_gpu_that_is_unplugged_under_a_server_is_told_in_its_timeline(
    service: Service, agent: AgentProcess, cards: PretendedCards
) -> None:
    """The server goes on, the other GPUs are given, and its return is told as well."""
    workload = await started(service)
    cards.unplug(0)
    notes = await noted(service, workload, 1)
    assert [note["reason"] for note in notes] == ["device_lost"]
    assert (await service.status("1-1"))["state"] == "ready"
    assert why(await explained(service)) is None
    cards.unplug(0, gone=False)
    notes = await noted(service, workload, 2)
    assert [note["reason"] for note in notes] == ["device_lost", "device_returned"]


async def noted(service: Service, workload: str, count: int) -> list[dict[str, Any]]:
    """Return the timeline's notes, once there are so many."""

    async def look() -> list[dict[str, Any]] | None:
        timeline = await service.json(f"api/workloads/{workload}/timeline", token=ALICE)
        notes = [
            event["explanation"]
            for event in timeline["events"]
            if event["kind"] == "note"
        ]
        return notes if len(notes) >= count else None

    return await until_so(look, f"{count} notes are told")
