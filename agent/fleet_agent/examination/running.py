"""Which agents of this user run on this computer, and where they keep their state."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import psutil

from fleet_agent.state_folder import StateFolder, default_state_folder


_PROGRAMS: Final = ("fleet-agent", "fleet_agent.cli")
_OPTIONS: Final = ("--state-dir", "--FleetAgent.state_dir")


def folder_meant(named: Path) -> tuple[StateFolder, list[Path]]:
    """Return the folder that *named* means, and those of agents where it is not clear.

    An agent that works elsewhere is meant where none was ever in the usual folder.
    """
    path = named.expanduser().resolve()
    if path.is_dir() or named != default_state_folder():
        return StateFolder(path), []
    running = running_folders()
    if len(running) == 1:
        return StateFolder(running[0]), []
    return StateFolder(path), running


def running_folders() -> list[Path]:
    """Return the state folders in which this user's agents work now, by name."""
    return sorted({path for path in _named() if _is_used(path)})


def _named() -> Iterator[Path]:
    """Yield what the command lines of agents name, whether it is used or not."""
    for process in psutil.process_iter():
        try:
            if process.uids().effective != os.geteuid():
                continue
            words = process.cmdline()
            if is_agent(words):
                yield (Path(process.cwd()) / state_folder_of(words)).resolve()
        except (psutil.Error, OSError):
            # It has ended meanwhile, or is none of ours to look at.
            continue


def is_agent(words: Sequence[str]) -> bool:
    """Whether *words* is the command line of a running agent."""
    for number, word in enumerate(words[:-1]):
        if os.path.basename(word) in _PROGRAMS:  # noqa: PTH119 - it may be no path
            return words[number + 1] == "run"
    return False


def state_folder_of(words: Sequence[str]) -> Path:
    """Return the state folder that a command line names; else the usual one."""
    for number, word in enumerate(words):
        option, is_joined, value = word.partition("=")
        if option in _OPTIONS:
            value = value if is_joined else "".join(words[number + 1 : number + 2])
            return Path(value).expanduser()
    return default_state_folder()


def _is_used(path: Path) -> bool:
    try:
        return StateFolder(path).is_locked()
    except OSError:
        return False
