"""How does bubblewrap make a sandbox from a plan?

Pure: the same plan gives the same command.  Two ways lead to an unprivileged user.  An
agent that is root mounts as root and drops everything inside, because a user namespace
would map one uid only and hide files that belong to another.  An agent without rights
needs a user namespace to mount anything, and forbids further ones inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.native.sandbox import (
    Access,
    Mount,
    SandboxPlan,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BubblewrapTools:
    """The programs that make the sandbox."""

    bwrap: str
    setpriv: str | None
    """As it is found inside; None: the agent is not root."""


_BIND = {
    Access.READ: "--ro-bind",
    Access.WRITE: "--bind",
    Access.DEVICE: "--dev-bind",
}


def command(plan: SandboxPlan, tools: BubblewrapTools) -> list[str]:
    """Return the command that runs *plan*; to be run with the clean environment.

    bubblewrap's own environment is readable inside, whatever it is told to clear.
    """
    system = [mount for mount in plan.mounts if mount.access is not Access.DEVICE]
    devices = [mount for mount in plan.mounts if mount.access is Access.DEVICE]
    return [
        tools.bwrap,
        *_namespaces(plan.account, rootless=tools.setpriv is None),
        *["--json-status-fd", str(plan.status_fd)],
        *_folders(plan),
        *[part for link in plan.links for part in ("--symlink", link.to, link.path)],
        *[part for mount in system for part in _bind(mount)],
        *["--proc", "/proc", "--dev", "/dev"],
        # Root makes it for another user: its own mode would shut that user out.
        *["--perms", "1777", "--tmpfs", "/dev/shm"],  # noqa: S108 - a private one
        *[part for mount in devices for part in _bind(mount)],
        # Both are file systems of the sandbox's own, and would take writes.
        *["--remount-ro", "/dev", "--remount-ro", "/"],
        # The notebook folder may be closed to whom bubblewrap still is: its owner
        # enters it.
        *["--chdir", "/", "--"],
        *_drop(plan.account, tools),
        *plan.command,
    ]


def _namespaces(account: Account, *, rootless: bool) -> list[str]:
    arguments = ["--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try"]
    if rootless:
        arguments += ["--unshare-user", "--disable-userns"]
        arguments += ["--uid", str(account.uid), "--gid", str(account.gid)]
    # No --die-with-parent: a notebook outlives its agent.
    arguments += ["--new-session", "--cap-drop", "ALL"]
    if not rootless:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            arguments += ["--cap-add", capability]
    return arguments


def _folders(plan: SandboxPlan) -> list[str]:
    """Make the parents of everything: implicit ones would be closed to other users."""
    targets = [mount.target for mount in plan.mounts]
    parents = {
        str(parent)
        for path in [*targets, *(link.path for link in plan.links)]
        for parent in PurePosixPath(path).parents
        if str(parent) not in ("/", "/dev")
    }
    return [
        part
        for parent in sorted(parents)
        if not any(_covers(target, parent) for target in targets)
        for part in ("--perms", "0755", "--dir", parent)
    ]


def _covers(target: str, path: str) -> bool:
    return path == target or path.startswith(f"{target}/")


def _bind(mount: Mount) -> tuple[str, str, str]:
    return _BIND[mount.access], mount.source, mount.target


def _drop(account: Account, tools: BubblewrapTools) -> list[str]:
    if tools.setpriv is None:
        return []
    return [
        tools.setpriv,
        *["--reuid", str(account.uid), "--regid", str(account.gid), "--clear-groups"],
        *["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"],
        "--no-new-privs",
    ]
