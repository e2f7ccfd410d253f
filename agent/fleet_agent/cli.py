"""The command ``fleet-agent``: one word says what to do; the rest is that command's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from fleet_agent import __version__


_COMMANDS = {
    "run": ("fleet_agent.daemon", "lend this computer to the fleet"),
    "enrol": ("fleet_agent.commands.enrol", "tell this computer whose fleet it joins"),
    "probe": ("fleet_agent.commands.probe", "show what this computer can do"),
    "doctor": (
        "fleet_agent.commands.doctor",
        "find out why this computer runs nothing",
    ),
    "install": ("fleet_agent.commands.install", "have the system start the agent"),
    "drain": ("fleet_agent.commands.drain", "take nothing new; what runs runs on"),
    "resume": ("fleet_agent.commands.resume", "take new work again"),
}
"""Each module has ``main(argv) -> int``; it is imported when it is asked for."""


def usage() -> str:
    """Return what the command can do."""
    lines = [f"  {name:<8} {what}" for name, (_, what) in _COMMANDS.items()]
    return "\n".join(
        [
            "usage: fleet-agent COMMAND [OPTION …]",
            "",
            *lines,
            "",
            "fleet-agent COMMAND --help explains a command.",
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    first = words[0] if words else ""
    if first in {"-h", "--help", "help"}:
        _say(usage())
        return 0
    if first == "--version":
        _say(__version__)
        return 0
    if first not in _COMMANDS:
        complaint = f"there is no command {first!r}\n\n" if first else ""
        sys.stderr.write(f"{complaint}{usage()}\n")
        return 2
    _leave_out_extras()
    module = import_module(_COMMANDS[first][0])
    command: Callable[[Sequence[str]], int] = module.main
    return command(words[1:])


def _leave_out_extras() -> None:
    """Keep what other people installed beside the agent out of its memory and start.

    Wherever it is installed, structlog loads a library for coloured tracebacks, which
    costs a tenth of an idle agent's memory; its log has one plain line for each record.
    And pydantic looks through all installed packages for plugins of its own.
    """
    # None is how Python is told that a module is not to be found.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
