"""A Docker engine of a test's own: its data, socket and networks are nobody else's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import docker
import psutil
from docker.errors import APIError, DockerException
from patience import PATIENCE
from requests.exceptions import RequestException

from fleet_agent.drivers.docker.engine import knock


_MEMORY = Path("/dev/shm")
_ROOM = 1024**3
LOOK_SECONDS = 0.05


def missing_for_docker() -> str | None:
    """Return why no engine can be started on this machine, or None."""
    for program in ("dockerd", "iptables", "nft"):
        if shutil.which(program) is None:
            return (
                f"{program} is not installed "
                "(Debian: apt-get install docker.io iptables nftables)"
            )
    if os.geteuid() != 0:
        return "only root can start a Docker engine"
    return None


class PrivateEngine:
    """One dockerd, which can be ended, killed and started again."""

    def __init__(self, folder: Path, *more: str, data: Path | None = None) -> None:
        """Keep everything in *folder*; *more* are further arguments of dockerd."""
        self.folder = folder
        self.data = data or folder / "data"
        self._more = more
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        """Where it answers."""
        return f"unix://{self.folder}/docker.sock"

    @property
    def log(self) -> Path:
        """What it wrote."""
        return self.folder / "dockerd.log"

    def client(self) -> Any:
        """Return a client of the test's own."""
        return docker.APIClient(base_url=self.host, version="auto", timeout=PATIENCE)

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self, *more: str) -> None:
        """Start it, this time with *more* arguments; return when it answers."""
        # A range of addresses of its own: engines do not see each other's networks.
        pool = f"base=10.{100 + os.getpid() % 100}.0.0/16,size=24"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "dockerd",
                    f"--data-root={self.data}",
                    f"--exec-root={self.folder}/exec",
                    f"--host={self.host}",
                    f"--pidfile={self.folder}/docker.pid",
                    "--bridge=none",
                    f"--default-address-pool={pool}",
                    *self._more,
                    *more,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            ended = self._process.poll()
            if ended is not None or time.monotonic() > deadline:
                tail = self.log.read_text(errors="replace")[-3000:]
                raise AssertionError(f"dockerd does not answer ({ended}):\n{tail}")
            time.sleep(LOOK_SECONDS)

    def end(self) -> None:
        """Have it shut down in order, as a restart of the service does."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it and its containerd like a crash; containers' processes live on."""
        part = self.folder / "exec" / "containerd" / "containerd.pid"
        containerd = psutil.Process(int(part.read_text()))
        self._send(signal.SIGKILL)
        containerd.kill()
        containerd.wait(PATIENCE)

    def remove(self) -> None:
        """End it with all that it runs, and remove all that it kept."""
        if self.is_running:
            with suppress(DockerException, RequestException):
                self.clear()
            self.end()
        self._remove_bridges()
        self._unmount()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _remove_bridges(self) -> None:
        """Undo the bridges of networks that an engine did not undo, killed or not."""
        notes = self.data / "network" / "files" / "local-kv.db"
        noted = notes.read_bytes() if notes.is_file() else b""
        for link in Path("/sys/class/net").glob("br-*"):
            if link.name.removeprefix("br-").encode() in noted:
                subprocess.run(["ip", "link", "delete", link.name], check=False)

    def _unmount(self) -> None:
        """Undo the mounts of an engine that was killed and could not do so itself."""
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        for place in sorted((line.split()[1] for line in mounts), reverse=True):
            if place.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", place], check=False)

    def _answers(self) -> bool:
        try:
            knock(self.host)
            with self.client() as client:
                return bool(client.ping())
        except (DockerException, RequestException, OSError):
            return False

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(PATIENCE)

    def bridges(self) -> list[str]:
        """Return the machine's links that are bridges of its networks."""
        with self.client() as client:
            found = [f"br-{network['Id'][:12]}" for network in client.networks()]
        return [name for name in found if Path("/sys/class/net", name).exists()]

    def clear(self) -> None:
        """Remove all containers and networks."""
        with self.client() as client:
            for container in client.containers(all=True):
                client.remove_container(container["Id"], force=True, v=True)
            for network in client.networks():
                with suppress(APIError):
                    client.remove_network(network["Id"])


def _has_room(folder: Path) -> bool:
    return folder.is_dir() and shutil.disk_usage(folder).free > _ROOM


@contextmanager
def private_engine(
    *more: str, data: Path | None = None, in_memory: bool = True
) -> Iterator[PrivateEngine]:
    """Run an engine until the block ends; *in_memory* where there is room for it."""
    base = _MEMORY if in_memory and _has_room(_MEMORY) else None
    # Short, because of the longest name that a socket can have.
    folder = Path(tempfile.mkdtemp(prefix="fleet-docker-", dir=base))
    engine = PrivateEngine(folder, *more, data=data)
    try:
        engine.start()
        yield engine
    finally:
        engine.remove()
