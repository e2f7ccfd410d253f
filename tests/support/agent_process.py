"""Real agents as child processes of a test."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from patience import PATIENCE, until_so


class AgentProcess:
    """``fleet-agent run`` with one state folder; it can be killed and started again."""

    def __init__(self, folder: Path, *, controller: str, token: str = "t0k3n") -> None:
        """Prepare *folder* for an agent of *controller*."""
        self.folder = folder
        self.controller = controller
        self.settings: dict[str, Any] = {
            "drivers": ["simulation"],
            "owner": "olivia",
            "simulation": {},
        }
        self.program: tuple[str, ...] = ("-m", "fleet_agent.cli")
        """What Python runs as the agent."""
        self.log = folder.parent / f"{folder.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(mode=0o700)
        (folder / "token").write_text(token)
        (folder / "token").chmod(0o600)

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process is not None
        return self._process.pid

    def start(self, *arguments: str) -> None:
        """Start an agent, with the settings as they are now."""
        config = self.folder.parent / f"{self.folder.name}.json"
        config.write_text(json.dumps({"FleetAgent": self.settings}))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *self.program,
                    "run",
                    f"--state-dir={self.folder}",
                    f"--controller={self.controller}",
                    f"--config={config}",
                    *arguments,
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONWARNINGS": "error"},
            )

    async def exit_status(self) -> int:
        """Return the status with which it ended, once it has."""
        assert self._process is not None
        return await asyncio.to_thread(self._process.wait, PATIENCE)

    async def kill(self) -> None:
        """Kill it as hard as can be."""
        assert self._process is not None
        self._process.kill()
        await self.exit_status()

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, and return its status."""
        assert self._process is not None
        self._process.send_signal(number)
        return await self.exit_status()

    def told(self) -> str:
        """Return what it has logged."""
        return self.log.read_text() if self.log.exists() else ""

    async def until_told(self, text: str) -> None:
        """Return once it has logged *text*."""
        await until_so(lambda: text in self.told(), f"the agent tells {text}")

    def clean_up(self) -> None:
        """Leave nothing behind: neither the agent nor what it started."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pid in self.workloads():
            os.kill(pid, signal.SIGKILL)

    def workloads(self) -> list[int]:
        """Return the processes of simulated notebooks of this agent, dead ones not."""
        found = []
        inside = f"{self.folder}/simulation/"
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                directory = str((entry / "cwd").readlink())
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if directory.startswith(inside) and state != "Z":
                found.append(int(entry.name))
        return found
