"""A native GPU notebook that would compute on the CPU never becomes ready.

The agent, its ledger, the sandbox and the notebook server are real; the GPU, what
nvidia-smi says of it and its driver's library are pretended.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from fake_hub import FakeHub
from heard_agent import Ear
from native_machine import OWNER, a_notebook, native_settings
from pretended_gpu import a_cuda
from probe_machines import FIELDS_ROW, a_pretend_machine, settings_for

from fleet_agent.agent import Agent
from fleet_agent.drivers.common import reaching
from fleet_agent.drivers.native import driver as driver_module
from fleet_agent.drivers.native.accelerators import nvidia_mounts
from fleet_agent.drivers.native.driver import NativeDriver
from fleet_agent.ledger import Ledger
from fleet_agent.link import Link
from fleet_contracts.protocol import AgentEvent, Launch, Report
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Accelerator, DriverName, RefSource, Resources


pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.asyncio,
    pytest.mark.timeout(600),
]

GPU = "GPU-00000000-0000-0000-0000-000000000001"
CLEAN = FIELDS_ROW.replace("81000, 559, 97", "4, 81555, 0")
ENDS = (AgentEvent.SERVING, AgentEvent.FAILED, AgentEvent.REJECTED)


@pytest.fixture(autouse=True)
def device_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel's driver name one GPU, whose files are ``/dev/null``."""
    if os.geteuid():
        pytest.skip("only root can make device files")
    files, told = tmp_path / "dev", tmp_path / "driver" / "gpus" / "0000:01:00.0"
    files.mkdir()
    told.mkdir(parents=True)
    (told / "information").write_text(f"GPU UUID: \t {GPU}\nDevice Minor: \t 0\n")
    for name in ("nvidia0", "nvidiactl"):
        os.mknod(files / name, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (files / name).chmod(0o666)
    monkeypatch.setattr(
        driver_module,
        "nvidia_mounts",
        lambda uuids: nvidia_mounts(uuids, tmp_path / "driver", files),
    )


@asynccontextmanager
async def an_agent(folder: Path) -> AsyncIterator[tuple[Agent, Ear, FakeHub]]:
    """Run the owner's agent on a machine with one pretended GPU."""
    state = folder / "agent"
    state.mkdir(mode=0o700)
    machine = a_pretend_machine(nvidia_smi=CLEAN)
    machine.replies["nvidia-smi --query-compute-apps=gpu_uuid,used_memory"] = ""
    ear, ledger = Ear(), Ledger(folder / "ledger.sqlite")
    agent = Agent(
        ledger=ledger,
        drivers={DriverName.NATIVE: NativeDriver(native_settings(state))},
        owner=OWNER,
        service_url="http://127.0.0.1:1/services/fleet/",
        detection=settings_for(machine),
        detect_seconds=3600,
    )
    running = asyncio.create_task(agent.run(cast("Link", ear)))
    try:
        await ear.lives.wait()
        async with FakeHub() as hub:
            yield agent, ear, hub
            await agent.close(stop_workloads=True)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        ledger.close()


async def ended(agent: Agent, ear: Ear, hub: FakeHub) -> Report:
    """Launch a notebook on the GPU, whose runtime names no capability."""
    spec = a_notebook(hub, resources=Resources(devices=(GPU,)))
    runtime = spec.runtime.model_copy(
        update={
            "accelerator": Accelerator.CUDA,
            "source": RefSource.DRIVER_REFS,
            "requires": (),
        }
    )
    spec = spec.model_copy(update={"runtime": runtime})
    agent.receive(Launch(allocation="one", epoch=1, spec=spec))
    return await ear.until(*ENDS)


@pytest.mark.parametrize(
    "cuda", [a_cuda(version="none"), a_cuda(status=100), a_cuda(count=0)]
)
async def test_a_runtime_that_falls_back_to_the_cpu_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuda: str
) -> None:
    """It ends with a code of its own, and nothing of it runs any more."""
    monkeypatch.setattr(reaching, "_SCRIPT", cuda + reaching._SCRIPT)
    async with an_agent(tmp_path) as (agent, ear, hub):
        report = await ended(agent, ear, hub)
        assert report.event is AgentEvent.FAILED
        assert report.explanation is not None
        assert report.explanation.reason is Reason.ACCELERATOR_NOT_USED
        assert [item.event for item in agent.inventory()] == [AgentEvent.FAILED]


async def test_a_runtime_that_reaches_its_gpu_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same machine, once the GPU driver's library finds the device."""
    monkeypatch.setattr(reaching, "_SCRIPT", a_cuda() + reaching._SCRIPT)
    async with an_agent(tmp_path) as (agent, ear, hub):
        report = await ended(agent, ear, hub)
        assert report.event is AgentEvent.SERVING
