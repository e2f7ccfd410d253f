"""Sets rules of the kernel's packet filter, with nft."""

from __future__ import annotations

import os
import shutil
import subprocess


_SECONDS = 30
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


class PacketFilterError(Exception):
    """The rules are not as they were asked for; the text is for operators."""


def what_is_missing() -> str | None:
    """Return why this agent cannot set rules here, as half a sentence; None: it can."""
    if os.geteuid() != 0:
        return "its agent does not run as root"
    if shutil.which("nft", path=_PATH) is None:
        return "nft is not installed"
    return None


def put(rules: str) -> None:
    """Have *rules* hold, all at once.

    Raises:
        PacketFilterError: none of them does.
    """
    _nft(["-f", "-"], rules)


def is_there(table: str) -> bool:
    """Say whether there is a table of that name."""
    try:
        _nft(["list", "table", "inet", table])
    except PacketFilterError:
        return False
    return True


def remove(table: str) -> None:
    """Remove *table*, if there is one.

    Raises:
        PacketFilterError: it is still there.
    """
    # Both lines: one that is not there cannot be deleted.
    _nft(["-f", "-"], f"add table inet {table}\ndelete table inet {table}\n")


def _nft(arguments: list[str], text: str = "") -> None:
    try:
        done = subprocess.run(
            ["nft", *arguments],  # noqa: S607 - each distribution has its own place for it
            input=text,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={"PATH": _PATH, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PacketFilterError(str(error)) from error
    if done.returncode != 0:
        raise PacketFilterError(
            done.stderr.strip() or f"nft ended with {done.returncode}"
        )
