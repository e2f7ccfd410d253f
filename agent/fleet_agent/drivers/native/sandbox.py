"""What does a workload see of the machine, and as whom does it run?

A plan says it in words that no particular tool owns; ``bubblewrap.py`` turns it into a
command on Linux.  Everything not named here does not exist inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fleet_agent.drivers.common.accounts import Account


ENVIRONMENT = "/opt/fleet/environment"
BOOT = "/opt/fleet/boot"
TEMPORARY = "/tmp"  # noqa: S108 - a private folder is mounted there


class Access(StrEnum):
    """What may be done with a mounted path."""

    READ = "read"
    WRITE = "write"
    DEVICE = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One path of the machine that is seen inside."""

    source: str
    target: str
    access: Access = Access.READ


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A symbolic link that exists inside."""

    path: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPlan:
    """One workload's view of the machine."""

    account: Account
    mounts: tuple[Mount, ...]
    links: tuple[Link, ...] = ()
    command: tuple[str, ...]
    status_fd: int
    """Where the sandbox tool writes the pid of the namespace's first process, and the
    exit code."""
