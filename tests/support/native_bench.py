"""What the conformance suite needs of a driver that runs real notebook servers."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from command_lines import command_line
from fake_hub import FakeHub
from native_machine import OWNER, a_notebook, native_settings
from typing_extensions import override

from fleet_agent.drivers.base import Driver, Handle, Job
from fleet_agent.drivers.bench import Bench, Fault
from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.native.driver import NativeDriver


IGNORES_STOP = """
import signal
from jupyter_server.serverapp import ServerApp

def ignore(app):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

ServerApp.init_signal = ignore
"""


@contextmanager
def a_silent_hub() -> Iterator[str]:
    """A Hub that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hub/api"


@dataclass
class NativeBench(Bench):
    """Notebook servers below one state folder, with their faults."""

    state: Path
    hub: FakeHub
    silent_hub: str

    patience_seconds = 240.0
    grace_seconds = 20.0

    @override
    def driver(self) -> Driver:
        return NativeDriver(native_settings(self.state))

    @override
    def job(self, name: str, fault: Fault | None = None) -> Job:
        spec = a_notebook(self.hub, notebook=name)
        match fault:
            case Fault.FAILS_TO_PREPARE:
                runtime = spec.runtime.model_copy(update={"ref": "absent"})
                spec = spec.model_copy(update={"runtime": runtime})
            case Fault.FAILS_HALF_STARTED:
                # The sandbox stands when it turns out that no port may be used.
                environment = {"JUPYTERHUB_SERVICE_URL": "https://127.0.0.1:1/"}
                spec = a_notebook(self.hub, notebook=name, environment=environment)
            case Fault.DIES_BEFORE_READY:
                spec = spec.model_copy(
                    update={"arguments": ("--ServerApp.port=nonsense",)}
                )
            case Fault.NEVER_READY:
                environment = {"JUPYTERHUB_API_URL": self.silent_hub}
                spec = a_notebook(
                    self.hub, notebook=name, environment=environment, start_seconds=15
                )
            case Fault.IGNORES_STOP:
                self._configure(name, IGNORES_STOP)
            case Fault.DISAPPEARS | None:
                pass
        return Job(allocation=name, epoch=1, spec=spec)

    def account(self) -> Account:
        """Return as whom the notebooks run."""
        return NativeDriver(native_settings(self.state)).account_of(1, OWNER)

    def _configure(self, notebook: str, text: str) -> None:
        """Write the Jupyter configuration that the notebook's user could write."""
        account = self.account()
        folder = self.state / "notebooks" / notebook
        config = folder / ".jupyter"
        config.mkdir(parents=True, exist_ok=True)
        (config / "jupyter_server_config.py").write_text(text)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, account.uid, account.gid)
        folder.chmod(0o700)

    @override
    async def is_running(self, handle: Handle) -> bool:
        mark = str(self.state / "runs" / handle.data["run"])
        return any(mark in command_line(process) for process in psutil.process_iter())

    @override
    async def answers(self, handle: Handle) -> bool:
        if handle.url is None:
            return False
        address = urlsplit(handle.url)
        try:
            reader, writer = await asyncio.open_connection(
                address.hostname, address.port
            )
        except OSError:
            return False
        writer.write(f"GET {address.path}api HTTP/1.0\r\n\r\n".encode())
        line = await reader.readline()
        writer.close()
        return b" 200 " in line

    @override
    async def remove(self, handle: Handle) -> None:
        os.kill(handle.data["first"][0], signal.SIGKILL)

    @override
    async def leftovers(self) -> list[str]:
        runs = self.state / "runs"
        return [path.name for path in runs.iterdir()] if runs.is_dir() else []
