"""A container that cannot reach its GPU never counts as a server that answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from docker_engine import PrivateEngine
from docker_images import INTERPRETER
from docker_machine import a_container, a_job, started, status_of
from pretended_gpu import a_cuda

from fleet_agent.drivers.base import DriverError, Job
from fleet_agent.drivers.common import reaching as asking
from fleet_agent.drivers.docker import planning, reaching
from fleet_agent.drivers.docker.containers import Containers
from fleet_agent.drivers.docker.driver import DockerDriver
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Accelerator, Resources


pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

Maker = Callable[..., DockerDriver]


@pytest.fixture(autouse=True)
def hands_out_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine take the request for devices, and inject none."""
    monkeypatch.setattr(planning, "_devices", lambda spec: [])
    monkeypatch.setattr(reaching, "PYTHON", f"{INTERPRETER}/bin/python3")


def a_gpu_job(**changes: Any) -> Job:
    """Return a notebook of a GPU class whose runtime names no capability."""
    spec = a_container(
        resources=Resources(cpu_milli=1000, memory_bytes=512 << 20, devices=("GPU-1",)),
        **changes,
    )
    runtime = spec.runtime.model_copy(update={"accelerator": Accelerator.CUDA})
    assert runtime.requires == ()
    return a_job(spec.model_copy(update={"runtime": runtime}))


async def refusal(driver: DockerDriver, job: Job) -> Explanation:
    """Return why *job* does not start."""
    with pytest.raises(DriverError) as caught:
        await started(driver, job)
    return caught.value.explanation


async def test_a_container_that_got_no_device_is_not_ready(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """Devices requested, none injected: it would compute on the CPU."""
    why = await refusal(make_driver(shared_engine), a_gpu_job())
    assert why.reason is Reason.ACCELERATOR_NOT_USED
    assert "fewer GPUs than were asked for" in (why.detail or "")
    assert client.containers(all=True) == []


async def test_a_container_that_reaches_its_device_is_ready(
    make_driver: Maker, shared_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GPU driver's library inside finds what was asked for."""
    monkeypatch.setattr(asking, "_SCRIPT", a_cuda() + asking._SCRIPT)
    driver = make_driver(shared_engine)
    handle = await started(driver, a_gpu_job())
    try:
        assert await status_of(handle.url) == 200
    finally:
        await driver.stop(handle, grace_seconds=0)


async def test_a_container_that_cannot_be_asked_is_not_ready(
    make_driver: Maker, shared_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody can tell is no yes."""
    monkeypatch.setattr(reaching, "PYTHON", "no-such-python")
    why = await refusal(make_driver(shared_engine), a_gpu_job())
    assert (why.reason, why.subject) == (Reason.CAPABILITIES_UNKNOWN, "GPU")


async def test_a_container_that_ended_while_it_was_asked_says_why_it_ended(
    make_driver: Maker, shared_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own end is the reason, and not that it could not be asked."""
    forever = "import time\nwhile True: time.sleep(1)\n"
    monkeypatch.setattr(asking, "_SCRIPT", forever)
    job = a_gpu_job(environment={"FLEET_TEST_FAULT": "dies"})
    why = await refusal(make_driver(shared_engine), job)
    assert why.reason is Reason.SERVER_EXITED


async def test_an_engine_that_learns_late_of_an_end_is_waited_for(
    make_driver: Maker, shared_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was killed with its container is told a moment before the end is known."""
    look, ends = Containers.look, list[asyncio.Task[Any]]()

    async def first_look_sees_it_run(self: Containers, container: str) -> Any:
        answer = await look(self, container)
        if killed and not ends:
            kill = self._engine.ask(lambda client: client.kill(container))
            ends.append(asyncio.create_task(kill))
        return answer

    killed = list[str]()
    monkeypatch.setattr(
        reaching, "_run", lambda container, *_: killed.append(container) or (137, "")
    )
    monkeypatch.setattr(Containers, "look", first_look_sees_it_run)
    job = a_gpu_job(environment={"FLEET_TEST_FAULT": "never"})
    why = await refusal(make_driver(shared_engine), job)
    await asyncio.gather(*ends)
    assert why.reason is Reason.SERVER_EXITED
