"""``fleet-agent drain``: let this computer take nothing new, until ``resume``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fleet_agent.errors import AgentError, SettingsError
from fleet_agent.examination.running import folder_meant
from fleet_agent.state_folder import StateFolder, add_state_option, write_private


def main(argv: Sequence[str]) -> int:
    """Note the wish, which a running agent sees within seconds; return the status."""
    return carry_out("drain", argv)


def carry_out(command: str, argv: Sequence[str]) -> int:
    """Drain or resume, as *command* says; return the exit status."""
    arguments = parser(command).parse_args(argv)
    try:
        folder = _folder(command, arguments.state_dir)
        folder.check()
        if command == "drain":
            write_private(folder.drained, "by the machine's owner\n")
            said = (
                "This computer takes nothing new within a few seconds, with or without "
                "a restart of its agent.\nWhat runs here runs on. "
                f"Undo it with: fleet-agent resume{folder.as_option}\n"
            )
        else:
            folder.drained.unlink(missing_ok=True)
            said = "This computer takes new work again within a few seconds.\n"
    except (AgentError, OSError) as error:
        sys.stderr.write(f"fleet-agent {command}: {error}\n")
        return error.exit_code if isinstance(error, AgentError) else 1
    sys.stdout.write(said)
    return 0


def _folder(command: str, named: Path) -> StateFolder:
    """Return the folder of the agent that is meant.

    Raises:
        SettingsError: several agents run here, and none of them is named.
    """
    folder, running = folder_meant(named)
    if running:
        commands = [
            f"fleet-agent {command}{StateFolder(it).as_option}" for it in running
        ]
        raise SettingsError(
            f"several agents run on this computer; name one: {', or '.join(commands)}"
        )
    return folder


def parser(command: str) -> argparse.ArgumentParser:
    """Return what the command line of *command* may hold."""
    does = {
        "drain": "Let this computer take nothing new; what runs here runs on.",
        "resume": "Let this computer take new work again.",
    }
    found = argparse.ArgumentParser(
        prog=f"fleet-agent {command}", description=does[command]
    )
    add_state_option(found)
    return found
