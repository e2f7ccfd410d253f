"""What the service managers are told.  Pure: from values to the text of a unit.

Both units have one thing that matters most: when the agent ends, is restarted or
upgraded, the notebooks that it started run on.
"""

from __future__ import annotations

import plistlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet_agent.drivers.native.limits import AGENTS_OWN
from fleet_agent.errors import (
    AnotherAgentError,
    DismissedError,
    LedgerBrokenError,
    SettingsError,
)


SYSTEMD_NAME: Final = "jupyterhub-fleet-agent.service"
LAUNCHD_LABEL: Final = "org.jupyterhub.fleet.agent"
_FOR_A_PERSON: Final = (
    *(SettingsError, AnotherAgentError, LedgerBrokenError, DismissedError),
)
"""Ends that another start does not mend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One agent that the system is to run."""

    command: Sequence[str]
    """The whole command line of ``fleet-agent run``."""
    search_path: str
    """Where the agent finds the machine's tools."""
    log: Path
    """Where launchd puts its lines; systemd has a journal."""
    for_all: bool = False
    """It starts with the machine, not with its user's session."""


def systemd_unit(service: Service) -> str:
    """Return the unit for systemd."""
    never_again = " ".join(
        str(code) for code in sorted({error.exit_code for error in _FOR_A_PERSON})
    )
    lines = [
        "[Unit]",
        "Description=JupyterHub Fleet agent: lends this computer to a fleet",
        "Wants=network-online.target",
        "After=network-online.target",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(_word(part) for part in service.command)}",
        f'Environment="PATH={_percent(service.search_path)}"',
        "Restart=always",
        "RestartSec=5",
        "# What only a person can mend is not tried again.",
        f"RestartPreventExitStatus={never_again}",
        "# Notebooks outlive the agent: only its own process is ended with it,",
        "KillMode=process",
        "# and a notebook that runs out of memory does not take it along.",
        "OOMPolicy=continue",
        "TimeoutStopSec=30",
        "# The agent limits its notebooks itself, below its own group.",
        "Delegate=cpu memory pids",
        f"DelegateSubgroup={AGENTS_OWN}",
        "LimitNOFILE=65536",
        "UMask=0077",
        "",
        "[Install]",
        f"WantedBy={'multi-user.target' if service.for_all else 'default.target'}",
        "",
    ]
    return "\n".join(lines)


def launchd_plist(service: Service) -> bytes:
    """Return the property list for launchd."""
    return plistlib.dumps(
        {
            "Label": LAUNCHD_LABEL,
            "ProgramArguments": list(service.command),
            "EnvironmentVariables": {"PATH": service.search_path},
            "RunAtLoad": True,
            "KeepAlive": True,
            # launchd cannot tell ends apart: what a person must mend is tried slowly.
            "ThrottleInterval": 30,
            # Notebooks outlive the agent.
            "AbandonProcessGroup": True,
            "ExitTimeOut": 30,
            # Background work is slowed down, and notebooks inherit that.
            "ProcessType": "Interactive",
            "SoftResourceLimits": {"NumberOfFiles": 65536},
            "StandardOutPath": str(service.log),
            "StandardErrorPath": str(service.log),
            "Umask": 0o077,
        }
    )


def _word(text: str) -> str:
    """Return *text* as one word of systemd's command lines."""
    quoted = _percent(text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    plain = text and not any(letter in text for letter in " \t\n\"'\\;$%#")
    return quoted if plain else '"' + quoted.replace("\n", "\\n") + '"'


def _percent(text: str) -> str:
    return text.replace("%", "%%")
