"""What the tests of the Docker driver share: an engine, and drivers over it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from docker_engine import PrivateEngine, missing_for_docker, private_engine
from docker_images import make_images
from docker_machine import docker_settings

from fleet_agent.drivers.docker import packet_filter
from fleet_agent.drivers.docker.driver import DockerDriver


DriverMaker = Callable[..., DockerDriver]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.docker)


@pytest.fixture(scope="session")
def shared_engine() -> Iterator[PrivateEngine]:
    """An engine that no test ends."""
    if (reason := missing_for_docker()) is not None:
        pytest.skip(reason)
    with private_engine() as engine:
        with engine.client() as client:
            make_images(client)
        yield engine


@pytest.fixture(scope="session")
def restartable_engine() -> Iterator[PrivateEngine]:
    """Another engine, for all tests that end it."""
    if (reason := missing_for_docker()) is not None:
        pytest.skip(reason)
    with private_engine() as engine:
        with engine.client() as client:
            make_images(client)
        yield engine


@pytest.fixture
def own_engine(restartable_engine: PrivateEngine) -> PrivateEngine:
    """An engine that this test may end; nothing of an earlier test is in it."""
    if not restartable_engine.is_running:
        restartable_engine.start()
    restartable_engine.clear()
    return restartable_engine


@pytest.fixture
def lasting_engine(own_engine: PrivateEngine) -> Iterator[PrivateEngine]:
    """An engine whose containers live on without it."""
    own_engine.end()
    own_engine.start("--live-restore")
    yield own_engine
    if own_engine.is_running:
        own_engine.clear()
        own_engine.end()


@pytest.fixture
def client(shared_engine: PrivateEngine) -> Iterator[Any]:
    """A client of the shared engine, which knows nothing of the driver."""
    with shared_engine.client() as client:
        yield client


@pytest_asyncio.fixture
async def make_driver(tmp_path: Path) -> AsyncIterator[DriverMaker]:
    """Make drivers as one agent after the other does; they share one state folder."""
    made: list[DockerDriver] = []

    def make(engine: PrivateEngine, **changes: Any) -> DockerDriver:
        state = changes.pop("state", tmp_path / "state")
        driver = DockerDriver(docker_settings(state, engine, **changes))
        made.append(driver)
        return driver

    yield make
    for driver in made:
        await driver.close()
        # Without its engine it left its rules in place, as it should.
        packet_filter.remove(f"fleet_{driver._places.mark()}")
