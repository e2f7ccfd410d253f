"""The admin's catalog file, read again when it changes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import structlog

from fleet_contracts.catalog import Catalog
from fleet_contracts.catalog_diff import Edit, edits
from fleet_contracts.catalog_file import CatalogError
from fleet_contracts.catalog_yaml import Fault
from fleet_hub.catalog_check import default_catalog, load_catalog
from fleet_hub.service.kept_catalog import CatalogKeeper, Stamp


log = structlog.get_logger()

_KEPT: Final = 20
"""Reloads that are remembered."""
_PAUSE_SECONDS: Final = 1.0
"""How long a file has to stay as it is before it counts as written."""
_MOST_PAUSES: Final = 5
"""How often a start waits for that: who writes for longer is not waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """One time that the file was another one and could be used."""

    at: datetime
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStatus:
    """Where the catalog comes from, what changed lately, and what is wrong with it."""

    path: str | None
    """None: it comes with the program."""
    catalog: Catalog
    loaded_at: datetime
    reloads: tuple[Reload, ...] = ()
    """The latest first."""
    faults: tuple[Fault, ...] = ()
    """Why the file as it is now is not used; the last one that could be stays."""
    faults_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a file or folder held when it was looked at."""

    stamp: Stamp
    catalog: Catalog | None
    """None: it has faults."""
    faults: tuple[Fault, ...] = ()


async def refresh(catalogs: CatalogSource) -> bool:
    """Look whether there is another catalog; True: there is.

    A large file takes seconds to read, so that is done beside the event loop.
    """
    return catalogs.take(await asyncio.to_thread(catalogs.look))


class CatalogSource(Protocol):
    """A catalog that can say where it comes from."""

    def current(self) -> Catalog:
        """Return the last catalog that was valid."""

    def look(self) -> Look | None:
        """Read what is there now, and use nothing of it; None: nothing is new."""

    def take(self, found: Look | None) -> bool:
        """Use what was found if it can be used; True: there is another catalog now."""

    def status(self) -> CatalogStatus:
        """Return what an admin should know of it."""


class FileCatalog:
    """The last valid contents of a file or folder; a broken edit changes nothing."""

    def __init__(
        self,
        path: Path,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        keeper: CatalogKeeper | None = None,
    ) -> None:
        """Read *path*; where that is broken, use what *keeper* has of it.

        So it is where the file is another one than was in force: somebody may be
        writing it just now.  ``settle``, or a later look, reads it once nobody does.

        Raises:
            CatalogError: it cannot be read, or has faults, and was never in order.
        """
        self._path = path
        self._now = now
        self._keeper = keeper
        self._stamp = self._seen = _stamp(path)
        self._reloads: deque[Reload] = deque(maxlen=_KEPT)
        self._faults: tuple[Fault, ...] = ()
        self._faults_since: datetime | None = None
        kept = None if keeper is None else keeper.of(path)
        try:
            self._catalog, self._loaded_at = load_catalog(path), now()
        except CatalogError as error:
            if kept is None:
                raise
            self._catalog, self._loaded_at = kept.catalog, kept.loaded_at
            self._refuse(error.faults)
            return
        is_edited = kept is not None and kept.catalog.digest != self._catalog.digest
        if kept is not None and is_edited and kept.stamp != self._stamp:
            self._catalog, self._loaded_at = kept.catalog, kept.loaded_at
            self._stamp = kept.stamp
        else:
            self._keep()

    def settle(self, pause: Callable[[float], None] = time.sleep) -> None:
        """Use an edit that was there at the start, before anybody is served.

        Takes a second where there is one, and five where somebody goes on writing: then
        the earlier catalog stays in force until they have ended.
        """
        for _ in range(_MOST_PAUSES):
            if self._stamp == _stamp(self._path):
                return
            pause(_PAUSE_SECONDS)
            self.take(self.look())

    def current(self) -> Catalog:
        """Return the last catalog that was valid."""
        return self._catalog

    def look(self) -> Look | None:
        """Read the file again if it is another one and nobody writes to it any more.

        What is still being written may be a whole catalog, and not the one that is
        meant: without its last quotas, or with 1 in the place of 16G.
        """
        stamp, before = _stamp(self._path), self._seen
        self._seen = stamp
        if stamp == self._stamp or stamp != before:
            return None
        found = self._load(stamp)
        self._seen = _stamp(self._path)
        return found if self._seen == stamp else None

    def _load(self, stamp: Stamp) -> Look:
        try:
            return Look(stamp=stamp, catalog=load_catalog(self._path))
        except CatalogError as error:
            return Look(stamp=stamp, catalog=None, faults=error.faults)

    def take(self, found: Look | None) -> bool:
        """Use what was found, or keep the earlier one and remember what is wrong."""
        if found is None:
            return False
        self._stamp = found.stamp
        if found.catalog is None:
            self._refuse(found.faults)
            return False
        self._faults, self._faults_since = (), None
        if found.catalog.digest == self._catalog.digest:
            self._keep()
            return False
        self._use(found.catalog)
        return True

    def status(self) -> CatalogStatus:
        """Return what an admin should know of it."""
        return CatalogStatus(
            path=str(self._path),
            catalog=self._catalog,
            loaded_at=self._loaded_at,
            reloads=tuple(reversed(self._reloads)),
            faults=self._faults,
            faults_since=self._faults_since,
        )

    def _use(self, catalog: Catalog) -> None:
        reload = Reload(at=self._now(), edits=edits(self._catalog, catalog))
        self._reloads.append(reload)
        self._catalog, self._loaded_at = catalog, reload.at
        self._keep()
        log.info("catalog reloaded", path=str(self._path), edits=len(reload.edits))
        for edit in reload.edits:
            log.info("catalog edit", edit=str(edit))

    def _keep(self) -> None:
        if self._keeper is not None:
            self._keeper.keep(self._path, self._catalog, self._loaded_at, self._stamp)

    def _refuse(self, faults: tuple[Fault, ...]) -> None:
        self._faults, self._faults_since = faults, self._now()
        log.error("catalog not reloaded, the earlier one stays", faults=len(faults))
        for fault in faults:
            log.error("catalog fault", fault=str(fault))


class DefaultCatalog:
    """The catalog that comes with the program."""

    def __init__(self) -> None:
        """Read it once."""
        self._catalog = default_catalog()
        self._loaded_at = datetime.now(UTC)

    def current(self) -> Catalog:
        """Return it."""
        return self._catalog

    def look(self) -> Look | None:
        """It never changes."""
        return None

    def take(self, found: Look | None) -> bool:
        """It never changes."""
        return False

    def status(self) -> CatalogStatus:
        """Return what an admin should know of it."""
        return CatalogStatus(
            path=None, catalog=self._catalog, loaded_at=self._loaded_at
        )


def _stamp(path: Path) -> Stamp:
    """Return what changes when the file, or a file of the folder, does."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
    except OSError:
        return ()
    return tuple(_stamp_of(file) for file in files)


def _stamp_of(file: Path) -> tuple[str, int, int, int]:
    try:
        status = file.stat()
    except OSError:
        # A file that is gone is a change; one that stays away is none.
        return file.name, 0, 0, 0
    return file.name, status.st_mtime_ns, status.st_size, status.st_ino
