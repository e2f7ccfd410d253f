"""A simulated Mac: the whole native path of macOS, but for the kernel's enforcement."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
from fake_sandbox_exec import FakeSandboxExec
from native_bench import NativeBench
from native_machine import native_settings
from typing_extensions import override

from fleet_agent.drivers.base import Handle, Job
from fleet_agent.drivers.bench import Fault
from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.native.macos.driver import MacDriver
from fleet_agent.drivers.native.macos.planning import MARK


@dataclass
class MacBench(NativeBench):
    """Notebook servers as a Mac's agent starts them."""

    tool: FakeSandboxExec = field(kw_only=True)

    @override
    def driver(self) -> MacDriver:
        # An agent that is root refuses; the one of a Mac runs as its owner.
        settings = native_settings(self.state, uids=None)
        return MacDriver(settings, sandbox_exec=self.tool.program)

    @override
    def job(self, name: str, fault: Fault | None = None) -> Job:
        job = super().job(name, fault)
        # Where these tests run as root, nothing here takes that away.
        spec = job.spec.model_copy(
            update={"arguments": ("--allow-root", *job.spec.arguments)}
        )
        return replace(job, spec=spec)

    @override
    def account(self) -> Account:
        return Account(uid=os.geteuid(), gid=os.getegid(), name="anna")

    @override
    async def is_running(self, handle: Handle) -> bool:
        return bool(marked(handle.data["run"]))

    @override
    async def remove(self, handle: Handle) -> None:
        os.kill(handle.data["leader"]["pid"], signal.SIGKILL)


def marked(run: str) -> list[int]:
    """Return the living processes of a run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == run:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def a_tool(base: Path) -> FakeSandboxExec:
    """Return a stand-in for ``sandbox-exec`` below *base*."""
    return FakeSandboxExec.make(base)
