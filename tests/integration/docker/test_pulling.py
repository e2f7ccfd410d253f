"""How an image gets to the machine: told in bytes, once, and refused in seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from docker.errors import ImageNotFound
from docker_engine import PrivateEngine
from docker_machine import a_container, a_job, started, status_of, unheard
from image_registry import Registry, image_registry
from patience import PATIENCE

from fleet_agent.drivers.base import DriverError, Job
from fleet_agent.drivers.docker.driver import DockerDriver
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import Progress


pytestmark = [pytest.mark.asyncio, pytest.mark.slow, pytest.mark.timeout(300)]

Maker = Callable[..., DockerDriver]


@pytest.fixture
def registry(client: Any) -> Iterator[Registry]:
    """A registry of which the engine has nothing yet, and nothing afterwards."""
    with image_registry() as running:
        yield running
        for name in ("lab", "stuck"):
            for ref in (running.ref(name), running.digest_ref(name)):
                with suppress(ImageNotFound):
                    client.remove_image(ref, force=True)


def job_of(ref: str) -> Job:
    """Return the job of a notebook in the image *ref*."""
    return a_job(a_container(ref))


@pytest.mark.parametrize("ref_of", [Registry.ref, Registry.digest_ref])
async def test_a_pull_is_told_in_bytes(
    make_driver: Maker,
    shared_engine: PrivateEngine,
    registry: Registry,
    ref_of: Callable[[Registry, str], str],
) -> None:
    """What was fetched never shrinks, and in the end is what the layer has."""
    told: list[Progress] = []

    def hear(progress: Progress) -> None:
        told.append(progress)
        # An engine tells what was true last: half of the layer is held until it is told.
        if progress.step == "pull_image" and progress.done:
            registry.go_on.set()

    job = job_of(ref_of(registry, "stuck"))
    await make_driver(shared_engine).prepare(job, hear)

    fetched = [item for item in told if item.step == "pull_image"]
    assert [item.done for item in fetched] == sorted(item.done for item in fetched)
    assert {item.unit for item in told} == {"bytes"}
    assert {item.total for item in told} <= {None, len(registry.layer)}
    assert any(0 < item.done < len(registry.layer) for item in fetched)
    assert told[-1] == Progress(
        step="unpack_image",
        done=len(registry.layer),
        total=len(registry.layer),
        unit="bytes",
    )


async def test_an_image_by_digest_runs_and_is_fetched_once(
    make_driver: Maker, shared_engine: PrivateEngine, registry: Registry
) -> None:
    """What is there is not asked for again: the registry may be away by then."""
    driver = make_driver(shared_engine)
    job = job_of(registry.digest_ref("lab"))
    await driver.prepare(job, unheard)
    asked = len(registry.asked)

    handle = await started(driver, job)
    answer = await status_of(handle.url)
    await driver.stop(handle, grace_seconds=5)

    assert answer == 200
    assert len(registry.asked) == asked


async def test_several_notebooks_share_one_pull(
    make_driver: Maker, shared_engine: PrivateEngine, registry: Registry
) -> None:
    """All of them hear how far it is."""
    driver = make_driver(shared_engine)
    told: list[list[Progress]] = [[], []]
    job = job_of(registry.ref("lab"))

    await asyncio.gather(*(driver.prepare(job, heard.append) for heard in told))

    assert registry.asked.count("blobs lab") == 2  # the configuration and the layer
    assert all(told)


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("absent", "does not exist in its registry"),
        ("denied", "does not give the runtime's image"),
        ("busy", "asked too often"),
        ("corrupt", "not the image that the catalog names"),
    ],
)
async def test_what_a_registry_refuses_is_told_in_seconds(
    make_driver: Maker,
    shared_engine: PrivateEngine,
    registry: Registry,
    name: str,
    sign: str,
) -> None:
    """One sentence for the user, without the image's name; the rest for the log."""
    job = job_of(registry.ref(name))
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(DriverError) as caught:
            await make_driver(shared_engine).prepare(job, unheard)

    explanation = caught.value.explanation
    assert explanation.reason is Reason.PREPARE_FAILED
    assert sign in (explanation.detail or "")
    assert str(registry.port) not in (explanation.detail or "")


@pytest.mark.parametrize("ref_of", [Registry.ref, Registry.digest_ref])
async def test_a_registry_that_stops_sending_is_given_up(
    make_driver: Maker,
    shared_engine: PrivateEngine,
    registry: Registry,
    ref_of: Callable[[Registry, str], str],
) -> None:
    """By a deadline of its own; once it sends again, the same pull can be repeated."""
    driver = make_driver(shared_engine, stall_seconds=2.0)
    job = job_of(ref_of(registry, "stuck"))
    with pytest.raises(DriverError) as caught:
        await driver.prepare(job, unheard)

    assert "stopped sending" in (caught.value.explanation.detail or "")
    registry.go_on.set()
    # By one that has the usual patience: a busy machine is no registry that stopped.
    await make_driver(shared_engine).prepare(job, unheard)


async def test_a_cancelled_pull_ends_in_the_engine_and_can_be_repeated(
    make_driver: Maker, shared_engine: PrivateEngine, registry: Registry
) -> None:
    """Nobody waits for it any more, and nothing of it stands in the way."""
    driver = make_driver(shared_engine)
    job = job_of(registry.ref("stuck"))
    pulling = asyncio.create_task(driver.prepare(job, unheard))
    assert await asyncio.to_thread(registry.is_stuck.wait, PATIENCE)

    pulling.cancel()
    await asyncio.wait([pulling])

    registry.go_on.set()
    await driver.prepare(job, unheard)


async def test_an_image_that_is_gone_by_the_start_is_fetched_again(
    make_driver: Maker,
    shared_engine: PrivateEngine,
    registry: Registry,
    client: Any,
) -> None:
    """Somebody tidied up between the two steps."""
    driver = make_driver(shared_engine)
    job = job_of(registry.ref("lab"))
    await driver.prepare(job, unheard)
    client.remove_image(registry.ref("lab"), force=True)

    handles = [handle async for handle in driver.start(job, unheard)]
    answer = await status_of(handles[-1].url)
    await driver.stop(handles[-1], grace_seconds=5)

    assert answer == 200
