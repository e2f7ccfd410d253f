"""The admin's catalog file, read again when it changes."""

from __future__ import annotations

from pathlib import Path

import structlog

from fleet_contracts.catalog import Catalog
from fleet_contracts.catalog_file import CatalogError
from fleet_hub.catalog_check import default_catalog, load_catalog


log = structlog.get_logger()


class FileCatalog:
    """The last valid contents of a file or folder; a broken edit changes nothing."""

    def __init__(self, path: Path) -> None:
        """Read *path*.

        Raises:
            CatalogError: it cannot be read, or has faults.
        """
        self._path = path
        self._catalog = load_catalog(path)
        self._stamp = _stamp(path)

    def current(self) -> Catalog:
        """Return the last catalog that was valid."""
        return self._catalog

    def refresh(self) -> bool:
        """Read the file again if it changed; True: there is another catalog now."""
        try:
            stamp = _stamp(self._path)
            if stamp == self._stamp:
                return False
            self._stamp = stamp
            catalog = load_catalog(self._path)
        except (OSError, CatalogError) as error:
            log.error(  # noqa: TRY400 - the message says all; no traceback helps
                "catalog not reloaded", path=str(self._path), fault=str(error)
            )
            return False
        changed = catalog.digest != self._catalog.digest
        if changed:
            log.info("catalog reloaded", path=str(self._path), digest=catalog.digest)
        self._catalog = catalog
        return changed


class DefaultCatalog:
    """The catalog that comes with the program."""

    def __init__(self) -> None:
        """Read it once."""
        self._catalog = default_catalog()

    def current(self) -> Catalog:
        """Return it."""
        return self._catalog

    def refresh(self) -> bool:
        """It never changes."""
        return False


def _stamp(path: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Return what changes when the file, or a file of the folder, does."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    stamps = ((file.name, file.stat()) for file in files)
    return tuple(
        (name, status.st_mtime_ns, status.st_size, status.st_ino)
        for name, status in stamps
    )
