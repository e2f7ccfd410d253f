"""``fleet-agent install``: have this system start the agent, and keep it running."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from fleet_agent.errors import AgentError, SettingsError
from fleet_agent.service.managers import Manager, manager_for, own_config
from fleet_agent.service.units import Service
from fleet_agent.state_folder import StateFolder, add_state_option


def main(argv: Sequence[str]) -> int:
    """Install or remove the service; return the exit status."""
    arguments = parser().parse_args(argv)
    try:
        return _carry_out(arguments)
    except AgentError as error:
        sys.stderr.write(f"fleet-agent install: {error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"fleet-agent install: {error}\n")
        return os.EX_OSFILE


def _carry_out(arguments: argparse.Namespace) -> int:
    home = Path.home()
    manager = manager_for(
        platform.system().lower(),
        uid=os.geteuid(),
        home=home,
        config=own_config(dict(os.environ), home),
    )
    if arguments.remove:
        return _remove(manager)
    service = _service(arguments)
    if arguments.print:
        sys.stdout.write(manager.text(service).decode())
        return 0
    # Enrolled or not: without a token every start would fail.
    folder = StateFolder(arguments.state_dir.expanduser().resolve())
    folder.make()
    if not folder.token.exists():
        sys.stderr.write(
            "fleet-agent install: this computer is not enrolled yet, so its agent would "
            "end at once; run `fleet-agent enrol` first\n"
        )
        return os.EX_CONFIG
    manager.install(service, start=not arguments.no_start)
    done = "written" if arguments.no_start else "installed and started"
    sys.stdout.write(f"The agent's service is {done}: {manager.unit}\n")
    if manager.advice:
        sys.stdout.write(f"{manager.advice}\n")
    return 0


def _remove(manager: Manager) -> int:
    if manager.remove():
        sys.stdout.write(
            "The agent's service is removed. Notebooks that run here run on, and nobody "
            "watches them until an agent is started again.\n"
        )
    else:
        sys.stdout.write("There is no service of the agent to remove.\n")
    return 0


def _service(arguments: argparse.Namespace) -> Service:
    folder = arguments.state_dir.expanduser().resolve()
    command = [sys.executable, "-m", "fleet_agent.cli", "run", f"--state-dir={folder}"]
    if arguments.config is not None:
        config = arguments.config.resolve()
        if not config.is_file():
            raise SettingsError(f"there is no configuration file {config}")
        command.append(f"--config={config}")
    return Service(
        command=command,
        search_path=os.environ.get("PATH", os.defpath),
        log=folder / "agent.log",
        for_all=os.geteuid() == 0,
    )


def parser() -> argparse.ArgumentParser:
    """Return what the command line may hold."""
    found = argparse.ArgumentParser(
        prog="fleet-agent install",
        description="Have this system start the agent, and keep it running. "
        "As root it is a service of the whole computer, otherwise one of yours.",
    )
    add_state_option(found)
    found.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="the agent's configuration file, if it has one",
    )
    found.add_argument(
        "--no-start", action="store_true", help="write the unit and start nothing"
    )
    either = found.add_mutually_exclusive_group()
    either.add_argument(
        "--print", action="store_true", help="show the unit, and write nothing"
    )
    either.add_argument(
        "--remove", action="store_true", help="stop the service and forget it"
    )
    return found
