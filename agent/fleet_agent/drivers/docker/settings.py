"""What a Docker driver is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fleet_agent.drivers.common.accounts import UidRange
from fleet_agent.drivers.common.listening import Addresses
from fleet_agent.drivers.docker.keeping import Keeping
from fleet_agent.drivers.docker.reach import Reach
from fleet_agent.drivers.docker.sockets import DEFAULT_HOST


FIRST_UID = 1_901_000_000
"""Beside the native driver's: no two owners on one machine share a uid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerSettings:
    """What a Docker driver is made from."""

    state: Path
    """A folder that only the agent may enter."""
    host: str = DEFAULT_HOST
    """Where the engine answers; it must be this machine's, see ``sockets``."""
    uids: UidRange | None = None
    """The uids that owners get; None: the agent is not root, all run as its user."""
    addresses: Addresses = field(default_factory=Addresses)
    notebook_environment: Mapping[str, str] = field(default_factory=dict)
    """What the machine's owner gives every notebook, such as a proxy's address."""
    folders: tuple[Path, ...] = ()
    """Folders of this machine that every notebook may read, at the same path."""
    processes: int = 4096
    """How many processes and threads one notebook may have."""
    trimming: Path | None = None
    """A module that shortens the imports of a known server; None: nothing is done."""
    stall_seconds: float = 120.0
    """How long a registry may send nothing before a pull is given up."""
    reach: Reach = field(default_factory=Reach)
    """What of this machine's private network containers may reach."""
    keeping: Keeping = field(default_factory=Keeping)
    """How long what nobody uses is kept."""
