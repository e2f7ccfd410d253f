"""What does a handle remember of a workload, and what is left of it?"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from fleet_agent.drivers.native.processes import (
    Process,
    ProcessId,
    boot_id,
    identify,
    pid_namespace,
)
from fleet_agent.drivers.native.runs import RunFolder, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that must survive the agent: goes into a handle as JSON."""

    run: str
    boot: str
    """The boot that the pids belong to."""
    out_of_memory_kills: int
    """How many the kernel had counted before."""
    environment: str | None = None
    supervisor: ProcessId | None = None
    """The sandbox tool outside: it ends with the server, and its exit code says how."""
    first: ProcessId | None = None
    """The namespace's first process: while it lives, anything inside may."""

    @classmethod
    def begin(cls, run: RunFolder) -> Self:
        """Return the record of a workload of which nothing runs yet."""
        return cls(
            run=run.name, boot=boot_id(), out_of_memory_kills=out_of_memory_kills()
        )

    def to_json(self) -> dict[str, Any]:
        """Return the form that a handle carries."""
        return {
            "run": self.run,
            "boot": self.boot,
            "out_of_memory_kills": self.out_of_memory_kills,
            "environment": self.environment,
            "supervisor": _pair(self.supervisor),
            "first": _pair(self.first),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the record that *data* holds."""
        return cls(
            run=data["run"],
            boot=data["boot"],
            out_of_memory_kills=data["out_of_memory_kills"],
            environment=data["environment"],
            supervisor=_process(data["supervisor"]),
            first=_process(data["first"]),
        )

    def completed(self, folder: RunFolder) -> Self:
        """Return the record with what an agent that died could not write down.

        Between starting the sandbox and the next handle only the sandbox's own files
        and command lines tell of it.
        """
        if self.boot != boot_id() or self.first is not None:
            return self
        supervisor, first = _find(folder)
        return replace(self, supervisor=supervisor or self.supervisor, first=first)

    def open_supervisor(self) -> Process | None:
        """Hold the sandbox tool; None: it is gone."""
        return self._open(self.supervisor)

    def open_first(self) -> Process | None:
        """Hold the namespace's first process; None: nothing inside runs any more."""
        return self._open(self.first)

    def _open(self, identity: ProcessId | None) -> Process | None:
        if identity is None or self.boot != boot_id():
            return None
        return Process.open(identity)


def _find(folder: RunFolder) -> tuple[ProcessId | None, ProcessId | None]:
    """Return the sandbox tool and the namespace's first process of a run."""
    status = folder.read_status()
    mark = str(folder.path).encode()
    own_namespace = pid_namespace(os.getpid())
    supervisor = first = None
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or not _mentions(entry, mark):
            continue
        pid = int(entry.name)
        namespace = pid_namespace(pid)
        if namespace == own_namespace:
            supervisor = identify(pid)
        elif status.child_pid in (None, pid):
            first = identify(pid)
    return supervisor, first or _named_by(status)


def _named_by(status: Status) -> ProcessId | None:
    """Return the first process of the namespace that the sandbox tool wrote down.

    The arguments of what was kept ready name the folder that it had before this one.
    """
    if status.child_pid is None or status.pid_namespace is None:
        return None
    if pid_namespace(status.child_pid) != status.pid_namespace:
        return None
    return identify(status.child_pid)


def _mentions(process: Path, mark: bytes) -> bool:
    try:
        command = (process / "cmdline").read_bytes()
    except OSError:
        return False
    # The tool's own processes carry its arguments; the server inside has others.
    return b"--json-status-fd" in command and mark in command


def out_of_memory_kills() -> int:
    """Return how many processes the kernel has ended for lack of memory."""
    for line in Path("/proc/vmstat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return 0


def _pair(process: ProcessId | None) -> list[int] | None:
    return None if process is None else [process.pid, process.started]


def _process(pair: list[int] | None) -> ProcessId | None:
    return None if pair is None else ProcessId(pid=pair[0], started=pair[1])
