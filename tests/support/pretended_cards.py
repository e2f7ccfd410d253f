"""An nvidia-smi of several cards, for the PATH of a real agent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def uuid_of(number: int) -> str:
    """Return the UUID of the card with this number."""
    return f"GPU-00000000-0000-0000-0000-{number:012}"


class PretendedCards:
    """Cards of 80 GiB; each change is there in one step, for the next call."""

    def __init__(self, folder: Path, count: int) -> None:
        """Have *count* idle cards, and their tool in *folder*."""
        self.folder = folder
        self.count = count
        self._used: dict[int, int] = {}
        self._gone: set[int] = set()
        folder.mkdir(exist_ok=True)
        self._install()

    def use(self, number: int, mib: int) -> None:
        """Let a program outside the fleet compute with *mib*; 0: it ends."""
        self._used[number] = mib
        self._install()

    def unplug(self, number: int, *, gone: bool = True) -> None:
        """Let a card be gone, or there again."""
        (self._gone.add if gone else self._gone.discard)(number)
        self._install()

    def _install(self) -> None:
        there = [number for number in range(self.count) if number not in self._gone]
        rows = "".join(_row(number, self._used.get(number, 0)) for number in there)
        programs = "".join(
            f"{uuid_of(number)}, {self._used[number]} MiB\n"
            for number in there
            if self._used.get(number)
        )
        made = self.folder / "nvidia-smi.new"
        made.write_text(_tool({"compute-apps": programs, "query-gpu": rows}))
        made.chmod(0o755)
        made.rename(self.folder / "nvidia-smi")


def _row(number: int, used: int) -> str:
    total, busy = 81_920, 97 if used else 0
    taken = used or 4
    return (
        f"{number}, {uuid_of(number)}, 00000000:{number + 1:02}:00.0, 550.54.15, "
        f"{total}, 8.0, Disabled, {taken}, {total - taken}, {busy}, "
        "NVIDIA A100-SXM4-80GB\n"
    )


def _tool(replies: Mapping[str, str]) -> str:
    cases = "".join(
        f"  *{key}*) cat <<'END'\n{text}END\n  ;;\n" for key, text in replies.items()
    )
    return f'#!/bin/sh\ncase "$*" in\n{cases}esac\n'
