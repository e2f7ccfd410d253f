"""How is a notebook kept to the cores and the memory that its class has?

By control groups, where the system has given the agent some of its own: the folders of
cgroup v1 that it may write, or the part of cgroup v2 that its service was delegated.
Each run gets groups of its own, and is in them before its sandbox begins.  Where nothing
was delegated, nothing is limited; the sandbox is the same.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet_contracts.workloads import Resources


MOST_PROCESSES: Final = 4096
"""Processes and threads of one notebook: enough for any work, too few to end a machine."""
AGENTS_OWN: Final = "agent"
"""The group below its service's in which systemd starts the agent (cgroup v2)."""

_ROOT: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")
_PERIOD_US: Final = 100_000
_LEAST_QUOTA_US: Final = 1000
_CONTROLLERS: Final[tuple[str, ...]] = ("cpu", "memory", "pids")
_MARK: Final = "jupyterhub-fleet"
_GONE_SECONDS: Final = 5.0
_ENTER: Final = (
    'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ >"$1" || exit 126; '
    'shift; n=$((n - 1)); done; exec "$@"'
)
"""Enters the groups that come first, then becomes the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one notebook may use; 0 is without limit."""

    cpu_milli: int = 0
    memory_bytes: int = 0

    @classmethod
    def of(cls, resources: Resources) -> Limits:
        """Return the limits of what holds *resources*."""
        return cls(cpu_milli=resources.cpu_milli, memory_bytes=resources.memory_bytes)

    def settings(self, version: int) -> Mapping[str, Mapping[str, str]]:
        """Return what is written for each controller of this *version*, in order."""
        quota = max(self.cpu_milli * _PERIOD_US // 1000, _LEAST_QUOTA_US)
        memory, processes = str(self.memory_bytes), str(MOST_PROCESSES)
        if version == 1:
            written = {
                "cpu": {
                    "cpu.cfs_period_us": str(_PERIOD_US),
                    "cpu.cfs_quota_us": str(quota),
                },
                "memory": {
                    "memory.limit_in_bytes": memory,
                    "memory.memsw.limit_in_bytes": memory,
                },
                "pids": {"pids.max": processes},
            }
        else:
            written = {
                "cpu": {"cpu.max": f"{quota} {_PERIOD_US}"},
                "memory": {"memory.max": memory, "memory.swap.max": "0"},
                "pids": {"pids.max": processes},
            }
        if not self.cpu_milli:
            written["cpu"] = {}
        if not self.memory_bytes:
            written["memory"] = {}
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroups:
    """The groups below which this agent may make its own."""

    version: int
    bases: Mapping[str, Path]
    """By controller; of version 2 all are one folder."""
    name: str
    """What groups of this agent begin with."""

    def places(self, run: str) -> tuple[Path, ...]:
        """Return the folders of a run's groups, whether they are there or not."""
        folders = {base / f"{self.name}-{run}" for base in self.bases.values()}
        return tuple(sorted(folders))

    def make(self, run: str, limits: Limits) -> None:
        """Make the groups of a run.

        Raises:
            OSError: the system refuses.
        """
        for place in self.places(run):
            place.mkdir(exist_ok=True)
        for controller, settings in limits.settings(self.version).items():
            base = self.bases.get(controller)
            if base is None:
                continue
            for file, value in settings.items():
                _write(base / f"{self.name}-{run}" / file, value)

    def entering(self, run: str, command: Sequence[str]) -> tuple[str, ...]:
        """Return *command*, which is in the run's groups before it begins."""
        doors = [str(place / "cgroup.procs") for place in self.places(run)]
        return ("/bin/sh", "-c", _ENTER, "sh", str(len(doors)), *doors, *command)

    def sweep(self, kept: set[str]) -> None:
        """Remove groups of this agent that no run has any more."""
        for base in set(self.bases.values()):
            for place in base.glob(f"{self.name}-*"):
                if place.name not in kept:
                    with suppress(OSError):
                        place.rmdir()


def delegated(
    agent: str, *, root: Path = _ROOT, own: Path = _OWN
) -> ControlGroups | None:
    """Return the groups that the system left to the agent called *agent*, if any."""
    try:
        lines = own.read_text("utf-8").splitlines()
    except OSError:
        return None
    name = f"{_MARK}-{agent}"
    paths = {names: path for _, names, path in (line.split(":", 2) for line in lines)}
    if (root / "cgroup.controllers").exists():
        return _delegated_v2(name, root, paths.get("", "/"))
    bases: dict[str, Path] = {}
    for names, path in paths.items():
        for controller in set(names.split(",")) & set(_CONTROLLERS):
            base = root / controller / path.lstrip("/")
            if os.access(base, os.W_OK):
                bases[controller] = base
    return ControlGroups(version=1, bases=bases, name=name) if bases else None


def _delegated_v2(name: str, root: Path, path: str) -> ControlGroups | None:
    """A group that holds processes cannot limit others: the agent's own is beside.

    systemd puts it there (``DelegateSubgroup``).  Where it does not, nothing is taken:
    a service whose own group has controllers on could not be started again.
    """
    here = root / path.lstrip("/")
    base = here.parent
    switch = base / "cgroup.subtree_control"
    if here.name != AGENTS_OWN or not os.access(switch, os.W_OK):
        return None
    try:
        there = (base / "cgroup.controllers").read_text("ascii").split()
        wanted = [each for each in _CONTROLLERS if each in there]
        switch.write_text(" ".join(f"+{each}" for each in wanted))
    except OSError:
        return None
    bases: dict[str, Path] = dict.fromkeys(wanted, base)
    return ControlGroups(version=2, bases=bases, name=name) if bases else None


def remove(places: Sequence[Path]) -> None:
    """Remove groups whose processes have ended; what is not there is fine."""
    for place in places:
        until = time.monotonic() + _GONE_SECONDS
        while True:
            try:
                place.rmdir()
            except FileNotFoundError:
                break
            except OSError as error:
                # The last process is dead, and not yet forgotten.
                if error.errno != errno.EBUSY or time.monotonic() > until:
                    break
                time.sleep(0.02)
            else:
                break


def out_of_memory_kills(places: Sequence[Path]) -> int | None:
    """Return how many processes of these groups their limit has ended; None: unknown."""
    for place in places:
        for file in ("memory.oom_control", "memory.events"):
            with suppress(OSError, ValueError):
                for line in (place / file).read_text("ascii").splitlines():
                    name, _, value = line.partition(" ")
                    if name == "oom_kill":
                        return int(value)
    return None


def _write(file: Path, value: str) -> None:
    # Without swap accounting there is no such file, and nothing to limit.
    if "sw" in file.name and not file.exists():
        return
    file.write_text(value)
