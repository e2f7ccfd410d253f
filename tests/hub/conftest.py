"""A JupyterHub in this process with FleetSpawner, and a controller on cue.

This session runs with ``asyncio_mode=auto`` and without pytest-jupyter's server
plugin: pytest-jupyterhub needs the one, and breaks with the other.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hub_pages import Visitor
from jupyterhub.tests import mocking
from patience import PATIENCE, free_port
from plain_hub import proxy_command
from scripted_controller import SECRET, ScriptedController, scripted_controller

from fleet_hub.config import configure


def pytest_configure(config: pytest.Config) -> None:
    """Let JupyterHub's own test Hub leave its sockets to the garbage collector."""
    for what in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
        config.addinivalue_line("filterwarnings", f"ignore::{what}")


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Let it do so at the very end too, where pytest looks for garbage once more."""
    for kind in (ResourceWarning, pytest.PytestUnraisableExceptionWarning):
        warnings.simplefilter("ignore", kind)


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the database and the process id of JupyterHub's own test Hub in the folder.

    It removes the one without what SQLite keeps beside it, and the other never.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(autouse=True)
def ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have JupyterHub's own test Hub and its proxy listen where nobody else comes.

    They choose among the ports of outgoing connections, and listen there much later.
    """
    monkeypatch.setattr(mocking, "random_port", free_port)


HubStarter = Callable[..., Awaitable[Any]]


@pytest.fixture
async def controller() -> AsyncIterator[ScriptedController]:
    """A controller that does what the test says."""
    async with scripted_controller() as scripted:
        yield scripted


@pytest.fixture
def slow_spawn_timeout() -> float:
    """How many seconds the Hub lets a start go on before it answers who asked for it."""
    return PATIENCE


@pytest.fixture
async def fleet_hub_app(
    controller: ScriptedController,
    hub_app: HubStarter,
    slow_spawn_timeout: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> HubStarter:
    """Start a Hub that is configured for the fleet; keyword arguments are traits."""
    proxy = proxy_command()
    if proxy is None:
        pytest.skip("configurable-http-proxy is not installed (npm ci)")
    monkeypatch.setenv("PATH", f"{Path(proxy).parent}{os.pathsep}{os.environ['PATH']}")

    async def start(**spawner: Any) -> Any:
        from traitlets.config import Config  # noqa: PLC0415 - as a configuration file

        c = Config()
        configure(
            c,
            data_dir=tmp_path / "data",
            external_controller=controller.url,
            service_token_file=_token_file(tmp_path),
        )
        # MockHub has a database and a configuration of its own
        del c.JupyterHub["db_url"]
        c.FleetSpawner.spawner_secret = SECRET
        for name, value in spawner.items():
            setattr(c.FleetSpawner, name, value)
        c.JupyterHub.tornado_settings = {"slow_spawn_timeout": slow_spawn_timeout}
        return await hub_app(config=c)

    return start


@pytest.fixture
async def hub(fleet_hub_app: HubStarter, request: pytest.FixtureRequest) -> Any:
    """A Hub; parametrise it indirectly with the Spawner's traits."""
    return await fleet_hub_app(**getattr(request, "param", {}))


@pytest.fixture
async def ada(hub: Any) -> AsyncIterator[Visitor]:
    """A user with a browser's cookies."""
    visitor = await Visitor.log_in(hub, "ada")
    yield visitor
    await visitor.close()


def _token_file(folder: Path) -> Path:
    path = folder / "service-token"
    path.write_text("a" * 64)
    path.chmod(0o600)
    return path


@pytest.fixture
async def notebook_url() -> Any:
    """The URL of a server that answers like a notebook server."""

    async def version(_: web.Request) -> web.Response:
        return web.json_response(
            {"version": "2"}, headers={"X-JupyterHub-Version": "6.1.1"}
        )

    app = web.Application()
    app.router.add_get("/{path:.*}", version)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}"
    await runner.cleanup()
