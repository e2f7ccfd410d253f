"""The last catalog that could be used, for a controller that starts while it is broken.

A bad edit changes nothing: not at once, and not after the next restart either.  Nor
does half of a file, which a controller finds that starts while somebody writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog
from pydantic import AwareDatetime, ValidationError

from fleet_contracts.base import Contract
from fleet_contracts.catalog import Catalog
from fleet_hub.places import write_private


log = structlog.get_logger()


Stamp = tuple[tuple[str, int, int, int], ...]
"""What changes when a file, or a file of a folder, does."""


class Kept(Contract):
    """A catalog that was in force, and since when."""

    path: str
    """Where it came from: what stood elsewhere is no earlier version of this file."""
    loaded_at: AwareDatetime
    catalog: Catalog
    stamp: Stamp = ()
    """Of the files that held it; empty: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogKeeper:
    """Keeps the catalog that is in force in a file that only the operator reads."""

    file: Path

    def keep(
        self, path: Path, catalog: Catalog, loaded_at: datetime, stamp: Stamp
    ) -> None:
        """Remember *catalog*; where that fails the fleet goes on all the same."""
        kept = Kept(path=str(path), loaded_at=loaded_at, catalog=catalog, stamp=stamp)
        try:
            write_private(self.file, kept.model_dump_json())
        except OSError as error:
            log.warning("catalog not kept for a restart", error=str(error))

    def of(self, path: Path) -> Kept | None:
        """Return what was in force of *path*; None: nothing, or nobody can read it."""
        try:
            kept = Kept.model_validate_json(self.file.read_bytes())
        except (OSError, ValidationError):
            return None
        return kept if kept.path == str(path) else None
