"""How does a process get into the sandbox of one owner's notebook?"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.native import bubblewrap, host, planning
from fleet_agent.drivers.native.confined import Confined
from fleet_agent.drivers.native.environments.store import Environment
from fleet_agent.drivers.native.limits import ControlGroups, Limits
from fleet_agent.drivers.native.planning import Place, System
from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.drivers.native.sandbox import Mount


@dataclass(frozen=True, slots=True, kw_only=True)
class Footing:
    """What a sandbox stands on: where two are equal, one will do for the other."""

    environment: Environment
    account: Account
    notebook: Path
    """The folder that the owner sees as home."""
    devices: tuple[Mount, ...] = ()
    limits: Limits = field(default_factory=Limits)


def confine(
    footing: Footing, folder: RunFolder, *, root: bool, groups: ControlGroups | None
) -> Confined:
    """Start a process in its sandbox; it imports, and waits for its launch message.

    *folder* is made for it.  *root*: the agent is, and the process drops to the
    account's uid.  *groups* keep it to its limits.

    Raises:
        DriverError: the sandbox tool is missing or too old.
        OSError: the machine refuses.
    """
    tools = host.find_tools(root=root)
    place = Place(
        run=folder,
        notebook=footing.notebook,
        account=footing.account,
        devices=footing.devices,
    )
    system = System(mounts=host.system_mounts(), links=host.system_links())
    folder.make(footing.account, footing.environment.identity)
    status = os.open(folder.status, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        plan = planning.sandbox_plan(
            system, place, footing.environment, status_fd=status
        )
        command = tuple(bubblewrap.command(plan, tools))
        if groups is not None:
            # Known before they are there, so that nothing can be left behind.
            folder.write_groups(groups.places(folder.name))
            groups.make(folder.name, footing.limits)
            command = groups.entering(folder.name, command)
        return Confined.spawn(
            command,
            status_fd=status,
            run=folder,
            environment=planning.clean_environment(footing.account),
        )
    finally:
        os.close(status)
