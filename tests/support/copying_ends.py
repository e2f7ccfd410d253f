"""The two ends of a transfer on one machine: its folders, an order, what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from copying_lines import ME, Dialled

from fleet_agent.copying.receiving import fetch
from fleet_agent.drivers.base import Driver, NotebookFolder
from fleet_agent.drivers.common.folders import NotebookFolders
from fleet_agent.ledger_entry import Key
from fleet_contracts.protocol import SendFiles
from fleet_contracts.reasons import Explanation
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import DriverName


KEY = Key("alloc", 7)


class Keeper:
    """The one driver of a machine, which keeps files in *base*."""

    def __init__(self, base: Path) -> None:
        """Keep them there."""
        self.folders = NotebookFolders(base)

    def notebook(self, name: str, owner_id: int, owner: str) -> NotebookFolder:
        """Return where a folder is."""
        return self.folders.named(name, ME)


def drivers(base: Path) -> Any:
    """Return the drivers of a machine that keeps files in *base*."""
    keeper: Any = Keeper(base)
    found: dict[DriverName, Driver] = {DriverName.NATIVE: keeper}
    return found


def an_order(**changes: Any) -> SendFiles:
    """Return the order to send ada's folder."""
    values: dict[str, Any] = {
        "allocation": KEY.allocation,
        "epoch": KEY.epoch,
        "driver": DriverName.NATIVE,
        "notebook": "ada-1",
        "owner": "ada",
        "owner_id": 1,
        "limit_bytes": 1 << 30,
    }
    return SendFiles(**values | changes)


def there(base: Path) -> NotebookFolder:
    """Return where it is to arrive."""
    return NotebookFolder(base=base, name="ada-1-2", uid=ME.uid, gid=ME.gid)


class Heard:
    """What a start is told meanwhile."""

    def __init__(self) -> None:
        """Have heard nothing."""
        self.notes: list[Explanation] = []
        self.progress: list[Progress] = []

    async def note(self, explanation: Explanation) -> None:
        """Keep it."""
        self.notes.append(explanation)


async def fetched(
    dial: Dialled, base: Path, heard: Heard | None = None, limit: int = 1 << 30
) -> None:
    """Fetch what *dial* leads to."""
    heard = heard or Heard()
    await fetch(
        dial,
        KEY,
        there(base),
        limit_bytes=limit,
        progress=heard.progress.append,
        note=heard.note,
    )


def left(base: Path) -> list[str]:
    """Return everything below *base* but the places themselves."""
    return sorted(
        str(path.relative_to(base))
        for path in base.rglob("*")
        if path.name not in {".arriving", ".arrived"}
    )
