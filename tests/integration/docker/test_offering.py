"""A machine offers containers while its engine really answers, and says why not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from threading import Thread

import pytest
from docker_engine import PrivateEngine
from docker_machine import a_job

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.docker.driver import DockerDriver
from fleet_agent.probes.containers import ContainerProbe, Engine
from fleet_agent.probes.readers import ask_machine


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

PODMAN = {
    "/info": {
        "ServerVersion": "4.3.1",
        "OSType": "linux",
        "OperatingSystem": "debian",
        "SecurityOptions": ["name=seccomp,profile=default"],
        "Runtimes": {"crun": {"path": "/usr/bin/crun"}},
        "LiveRestoreEnabled": False,
    },
    "/version": {
        "Platform": {"Name": "linux/amd64/debian-12"},
        "Version": "4.3.1",
        "ApiVersion": "1.41",
        "MinAPIVersion": "1.24",
        "Os": "linux",
        "Arch": "amd64",
        "Components": [
            {"Name": "Podman Engine", "Version": "4.3.1"},
            {"Name": "Conmon", "Version": "conmon version 2.1.6, commit: unknown"},
            {"Name": "OCI Runtime (runc)", "Version": "runc version 1.1.5+ds1"},
        ],
    },
}
"""What the service of Debian 12's podman says."""


def offered(host: str) -> Engine:
    """Return what the probe says of the engine at *host*."""
    [engine] = [
        engine
        for engine in ContainerProbe(ask=ask_machine, host=host).observe()
        if engine.name == "docker"
    ]
    return engine


async def test_an_engine_that_answers_is_offered(shared_engine: PrivateEngine) -> None:
    """With its version, and with what it can hand out."""
    engine = offered(shared_engine.host)

    assert (engine.usable, engine.reason, engine.gpu_runtime) == (True, "ok", False)
    assert engine.version


async def test_an_engine_that_is_down_is_not(own_engine: PrivateEngine) -> None:
    """Where its client is there it may come back, and until then nobody knows."""
    own_engine.end()

    engine = offered(own_engine.host)

    usable = None if shutil.which("docker") else False
    assert (engine.usable, engine.reason) == (usable, "daemon_not_reachable")


async def test_podman_in_dockers_place_is_told_as_that(
    tmp_path: Path,
    make_driver: Callable[..., DockerDriver],
    shared_engine: PrivateEngine,
) -> None:
    """The probe does not offer it, and the driver refuses it in one sentence."""
    with answering(tmp_path / "podman.sock") as host:
        engine = offered(host)
        with pytest.raises(DriverError) as caught:
            await make_driver(shared_engine, host=host).prepare(a_job(), print)

    assert (engine.usable, engine.reason) == (False, "emulated_by_podman")
    assert "podman" in (caught.value.explanation.detail or "")


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(PODMAN["/" + self.path.rpartition("/")[2]]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Service(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True


@contextmanager
def answering(path: Path) -> Iterator[str]:
    """Answer at the socket *path* as podman's service does."""
    with _Service(str(path), _Answer) as service:
        thread = Thread(target=service.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"unix://{path}"
        finally:
            service.shutdown()
            thread.join()
