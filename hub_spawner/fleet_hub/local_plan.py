"""What a local run is to do: which machines, where, and what its people are told."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet_hub.errors import ConfigurationError
from fleet_hub.local_services import Ports
from fleet_hub.places import OWNER_VARIABLE, Places


FIRST_START: Final = """\
Choose a profile and press Start.  The first start builds the notebook's environment,
which takes a minute or two; later ones take a moment."""


class RunError(ConfigurationError):
    """The run cannot begin or go on; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMachine:
    """One machine whose agent runs on this computer."""

    name: str
    owner: str
    folder: Path
    """Its agent's state folder."""
    provider: str | None = None
    arguments: tuple[str, ...] = ()
    """Of its agent, beside what every agent of a run is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line decides."""

    places: Places
    config_file: Path
    owner: str
    port: int = 8000
    verbose: bool = False
    machines: tuple[LocalMachine, ...]
    """Whose agents run here."""
    hint: str = FIRST_START
    """What a newcomer does next."""
    end: str = "Press Ctrl-C to end everything, notebooks included.  Files stay."
    when_up: Callable[[Places, Ports, Callable[[], None]], None] | None = None
    """Done once the agents are started, before the run says that it is up.

    It calls what it is given now and then: that raises when there is no use in going on.
    """


def local_owner() -> str:
    """Return the Hub user who owns this machine: whoever runs the Hub."""
    return (os.environ.get(OWNER_VARIABLE) or getpass.getuser()).lower()
