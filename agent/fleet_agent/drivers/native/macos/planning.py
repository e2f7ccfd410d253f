"""What does one job become on a Mac?  Pure: from values to rights and a command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.native.environments.store import Environment
from fleet_agent.drivers.native.macos.seatbelt import SeatbeltPlan
from fleet_agent.drivers.native.runs import RunFolder
from fleet_contracts.workloads import Accelerator


SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
MARK = "JUPYTERHUB_FLEET_RUN"
"""Everything that a workload starts inherits it, and is found again by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one workload's own things are; every path is a real one, without links."""

    run: RunFolder
    notebook: Path
    boot: Path
    """A copy of the modules that run inside: the agent's own folder is closed."""
    account: Account


def rights(
    place: Place, environment: Environment, accelerator: Accelerator
) -> SeatbeltPlan:
    """Return what the workload at *place* may read and write."""
    return SeatbeltPlan(
        read=(
            str(environment.tree),
            environment.interpreter.prefix,
            str(place.boot),
        ),
        write=(str(place.notebook), str(place.run.temporary)),
        metal=accelerator is Accelerator.MPS,
    )


def command(
    sandbox_exec: Path, profile: Path, place: Place, environment: Environment
) -> tuple[str, ...]:
    """Return the command that runs the server in its sandbox.

    ``sandbox-exec`` becomes the server: its process id is the server's own.
    """
    return (
        *(str(sandbox_exec), "-f", str(profile)),
        # Neither the user's variables nor their packages reach the server itself.
        *(str(environment.tree / "bin/python"), "-I", "-c"),
        _start(place, "bootstrap", "main()"),
    )


def witness(
    sandbox_exec: Path, profile: Path, place: Place, *, python: Sequence[str], call: str
) -> tuple[str, ...]:
    """Return the command that looks from the same sandbox for the Mac's GPU.

    *python* is a program with its options; *call* is what it does of ``inside.fence``.
    """
    return (
        *(str(sandbox_exec), "-f", str(profile)),
        *(*python, "-c"),
        _start(place, "fence", call),
    )


def _start(place: Place, module: str, call: str) -> str:
    name = call.partition("(")[0]
    return (
        f"import sys; sys.path.insert(0, {str(place.boot)!r}); "
        f"from fleet_agent.drivers.native.inside.{module} import {name}; {call}"
    )


def clean_environment(place: Place, environment: Environment) -> dict[str, str]:
    """Return the variables that the sandbox starts with: nothing of the agent's own."""
    temporary = place.run.temporary
    return {
        "PATH": f"{environment.tree / 'bin'}:{SYSTEM_PATH}",
        "HOME": str(place.notebook),
        "USER": place.account.name,
        "LOGNAME": place.account.name,
        "SHELL": "/bin/zsh",
        "LANG": "en_US.UTF-8",
        "TMPDIR": str(temporary),
        # Sockets and pids of servers that are gone have no place in the user's files.
        "JUPYTER_RUNTIME_DIR": f"{temporary}/jupyter-runtime",
        MARK: place.run.name,
    }
