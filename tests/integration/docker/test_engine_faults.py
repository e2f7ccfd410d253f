"""What becomes of a notebook when its engine restarts, dies, fills up or is tampered with."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from docker_engine import PrivateEngine, missing_for_docker, private_engine
from docker_images import STUB, make_images
from docker_machine import MIB, a_container, a_job, started, status_of, unheard
from image_registry import image_registry

from fleet_agent.drivers.base import DriverError, Handle, Standing
from fleet_agent.drivers.bench import start_and_close
from fleet_agent.drivers.docker.driver import DockerDriver
from fleet_agent.drivers.docker.errors import EngineAwayError
from fleet_contracts.reasons import Reason


pytestmark = [pytest.mark.asyncio, pytest.mark.slow, pytest.mark.timeout(300)]

Maker = Callable[..., DockerDriver]


async def _wait_begun(driver: DockerDriver, handle: Handle) -> asyncio.Task[Any]:
    """Wait for the end of *handle* in a task, which has looked at it once."""
    waiting = asyncio.create_task(driver.wait(handle))
    look, has_looked = driver._containers.look, asyncio.Event()

    async def noticed(container: str) -> Any:
        answer = await look(container)
        has_looked.set()
        return answer

    driver._containers.look = noticed  # type: ignore[method-assign]
    await has_looked.wait()
    return waiting


async def _noticed_its_end(driver: DockerDriver) -> None:
    """Return once *driver* has noticed that its engine is away."""
    lost, has_noticed = driver._watch._lost, asyncio.Event()

    def noticed() -> None:
        lost()
        has_noticed.set()

    driver._watch._lost = noticed  # type: ignore[method-assign]
    await has_noticed.wait()


@pytest.mark.parametrize("how", ["in order", "by a crash"])
async def test_an_engine_that_restarts_ends_notebooks_and_says_so(
    make_driver: Maker, own_engine: PrivateEngine, how: str
) -> None:
    """Silence is no end: it is told once the engine is back, and files are kept."""
    driver = make_driver(own_engine)
    handle = await started(driver, a_job())
    waiting = await _wait_begun(driver, handle)

    away = asyncio.create_task(_noticed_its_end(driver))
    await asyncio.to_thread(own_engine.end if how == "in order" else own_engine.kill)
    await asyncio.wait([waiting, away], return_when="FIRST_COMPLETED")
    told_early = waiting.done()
    await asyncio.to_thread(own_engine.start)
    condition = await waiting
    await driver.stop(handle, grace_seconds=5)
    again = await started(driver, a_job(epoch=2))
    answer = await status_of(again.url)
    await driver.stop(again, grace_seconds=5)

    assert not told_early
    assert (condition.standing, condition.exit_code) == (Standing.GONE, None)
    assert "engine on this machine was restarted" in condition.explanation.detail
    assert answer == 200


async def test_an_engine_that_keeps_containers_alive_loses_no_notebook(
    make_driver: Maker, lasting_engine: PrivateEngine
) -> None:
    """With Docker's live-restore an update of the engine is nobody's business."""
    driver = make_driver(lasting_engine)
    handle = await started(driver, a_job())
    waiting = await _wait_begun(driver, handle)

    await asyncio.to_thread(lasting_engine.end)
    await asyncio.to_thread(lasting_engine.start, "--live-restore")
    condition = await driver.recover(handle)
    answer = await status_of(handle.url)
    ended = waiting.done()
    await driver.stop(handle, grace_seconds=5)
    await waiting

    assert condition.standing is Standing.RUNNING
    assert answer == 200
    assert not ended


@pytest.mark.parametrize("how", ["in order", "by a crash"])
async def test_an_agent_that_returns_to_a_restarted_engine_knows_what_became(
    make_driver: Maker, own_engine: PrivateEngine, how: str
) -> None:
    """Both were away at once: the notebook is gone, told as such, and can be undone."""
    first = make_driver(own_engine)
    handle = await started(first, a_job())
    await first.close()
    await asyncio.to_thread(own_engine.end if how == "in order" else own_engine.kill)
    await asyncio.to_thread(own_engine.start)

    successor = make_driver(own_engine)
    await successor.open()
    condition = await successor.recover(handle)
    await successor.stop(handle, grace_seconds=5)
    again = await started(successor, a_job(epoch=2))
    answer = await status_of(again.url)
    await successor.stop(again, grace_seconds=5)
    with own_engine.client() as client:
        left = client.containers(all=True)

    assert condition.standing is Standing.GONE
    assert condition.explanation is not None
    assert condition.explanation.reason is Reason.SERVER_EXITED
    assert "restarted" in (condition.explanation.detail or "")
    assert (answer, left) == (200, [])


async def test_an_agent_that_returns_before_its_engine_claims_nothing(
    make_driver: Maker, own_engine: PrivateEngine
) -> None:
    """It opens without one, and takes up what it finds once the engine is back."""
    first = make_driver(own_engine)
    handle = await started(first, a_job())
    await first.close()
    await asyncio.to_thread(own_engine.end)

    successor = make_driver(own_engine)
    await successor.open()
    with pytest.raises(EngineAwayError):
        await successor.recover(handle)
    await asyncio.to_thread(own_engine.start)
    condition = await successor.recover(handle)
    await successor.stop(handle, grace_seconds=5)

    assert condition.standing is Standing.GONE


async def test_without_an_engine_nothing_is_claimed(
    make_driver: Maker, own_engine: PrivateEngine
) -> None:
    """A start fails in a moment and in words; an end is not said to be one."""
    driver = make_driver(own_engine)
    handle = await started(driver, a_job())
    await asyncio.to_thread(own_engine.end)

    with pytest.raises(DriverError) as caught:
        await make_driver(own_engine).prepare(a_job(name="new"), unheard)
    with pytest.raises(EngineAwayError):
        await driver.recover(handle)
    with pytest.raises(EngineAwayError):
        await driver.stop(handle, grace_seconds=0)
    await asyncio.to_thread(own_engine.start)
    await driver.stop(handle, grace_seconds=0)

    assert caught.value.explanation.reason is Reason.PREPARE_FAILED
    assert "does not answer" in (caught.value.explanation.detail or "")


async def test_a_name_in_use_is_left_to_whoever_has_it(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """A stranger's container is not removed, and does not keep a notebook away."""
    driver, job = make_driver(shared_engine), a_job()
    first = await started(driver, job)
    await driver.stop(first, grace_seconds=5)
    name = f"fleet-{first.data['run']}"
    stranger = client.create_container(STUB, "true", name=name)["Id"]

    handle = await started(driver, job)
    answer = await status_of(handle.url)
    await driver.stop(handle, grace_seconds=5)
    kept = client.inspect_container(stranger)["Id"]
    client.remove_container(stranger)

    assert answer == 200
    assert kept == stranger


async def test_a_container_removed_while_it_starts_is_noticed(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """Whoever starts it does not wait for an answer that cannot come."""
    spec = a_container(environment={"FLEET_TEST_FAULT": "never"})
    driver, handles = make_driver(shared_engine), []

    async def start() -> None:
        async for handle in driver.start(a_job(spec), unheard):
            handles.append(handle)
            if handle.data["container"]:
                asyncio.get_running_loop().call_soon(removing.set)

    removing = asyncio.Event()
    starting = asyncio.create_task(start())
    await removing.wait()
    while not client.inspect_container(handles[-1].data["container"])["State"]["Pid"]:
        await asyncio.wait([starting], timeout=0.02)
    await asyncio.to_thread(
        client.remove_container, handles[-1].data["container"], force=True
    )
    with pytest.raises(DriverError) as caught:
        await starting
    await driver.stop(handles[-1], grace_seconds=0)

    assert "removed from outside" in (caught.value.explanation.detail or "")


async def test_a_network_that_was_removed_is_made_again(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """By the next notebook, which is in it."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job())
    await driver.stop(handle, grace_seconds=5)
    client.remove_network(f"fleet-{handle.data['agent']}")

    again = await started(driver, a_job())
    answer = await status_of(again.url)
    await driver.stop(again, grace_seconds=5)

    assert answer == 200


async def test_what_an_agent_could_not_write_down_is_found_by_its_labels(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """It died when the container was made and the ledger did not know of it yet."""
    made = await start_and_close(make_driver(shared_engine), a_job(), 2)
    assert made.handles[0].data["container"] is None
    assert len(client.containers(all=True)) == 1

    successor = make_driver(shared_engine)
    condition = await successor.recover(made.handles[0])
    await successor.stop(made.handles[0], grace_seconds=0)

    assert condition.standing is Standing.GONE
    assert client.containers(all=True) == []


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4])
async def test_a_start_may_be_cancelled_at_any_moment(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any, seconds: float
) -> None:
    """Also in the middle of a request: what the engine still makes is found."""
    driver, handles = make_driver(shared_engine), []
    making = asyncio.Event()

    async def start() -> None:
        async for handle in driver.start(a_job(), lambda progress: making.set()):
            handles.append(handle)  # noqa: PERF401 - those before the cancellation count

    starting = asyncio.create_task(start())
    await making.wait()
    await asyncio.wait([starting], timeout=seconds)
    starting.cancel()
    await asyncio.wait([starting])
    await driver.stop(handles[-1], grace_seconds=0)

    assert client.containers(all=True) == []
    assert list(driver._settings.state.glob("runs/*")) == []


async def test_another_agents_containers_are_left_alone(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any, tmp_path: Path
) -> None:
    """Two agents on one engine, and one allocation's name in both."""
    driver = make_driver(shared_engine)
    other = make_driver(shared_engine, state=tmp_path / "another")
    mine, theirs = await started(driver, a_job()), await started(other, a_job())

    await driver.stop(mine, grace_seconds=5)
    answer = await status_of(theirs.url)
    await other.stop(theirs, grace_seconds=5)

    assert answer == 200


async def test_a_handle_of_an_earlier_boot_tells_of_the_restart(
    make_driver: Maker, shared_engine: PrivateEngine
) -> None:
    """A restart of the machine ends its containers, and that is what is said."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job())
    before = Handle(
        allocation=handle.allocation,
        data={**handle.data, "boot": "earlier"},
        url=handle.url,
    )

    condition = await driver.recover(before)
    await driver.stop(before, grace_seconds=5)

    assert condition.standing is Standing.GONE
    assert condition.explanation is not None
    assert condition.explanation.reason is Reason.MACHINE_REBOOTED


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """A file system of that size, until the block ends."""
    folder.mkdir()
    size = f"size={mebibytes}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def full_engine(tmp_path: Path) -> Iterator[PrivateEngine]:
    """An engine with its images, whose disk has no room left."""
    if (reason := missing_for_docker()) is not None:
        pytest.skip(reason)
    with (
        small_disk(tmp_path / "disk", 16) as disk,
        private_engine(data=disk / "data") as engine,
    ):
        with engine.client() as client:
            make_images(client)
        with (disk / "filling").open("wb", buffering=0) as filling:
            _fill(filling)
        yield engine
        (disk / "filling").unlink()


def _fill(file: Any) -> None:
    for size in (MIB, 4096):
        try:
            while True:
                file.write(b"x" * size)
        except OSError:
            continue


async def test_a_full_disk_is_told_as_that(
    make_driver: Maker, full_engine: PrivateEngine
) -> None:
    """Where an image does not fit any more, and where a container does not."""
    driver = make_driver(full_engine)
    with image_registry() as registry, pytest.raises(DriverError) as pulling:
        await driver.prepare(a_job(a_container(registry.ref("lab"))), unheard)
    with pytest.raises(DriverError) as starting:
        await started(driver, a_job())

    assert pulling.value.explanation.reason is Reason.DISK_FULL
    assert starting.value.explanation.reason is Reason.DISK_FULL
