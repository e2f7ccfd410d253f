"""Reading catalogs from disk, and ``jupyter-fleet catalog check``."""

from __future__ import annotations

import argparse
import io
import json
import stat
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from fleet_contracts.catalog import Catalog
from fleet_contracts.catalog_file import CatalogError, parse_catalog
from fleet_contracts.catalog_yaml import MAX_CHARACTERS, Fault, Source


_SUFFIXES = (".yaml", ".yml")
_MAX_BYTES = 4 * MAX_CHARACTERS + 1
"""No text of the characters that are allowed is longer."""


def default_catalog() -> Catalog:
    """Return what the fleet offers until an admin writes a catalog."""
    text = files("fleet_hub").joinpath("default_catalog.yaml").read_text("utf-8")
    return parse_catalog([Source("default_catalog.yaml", text)])


def load_catalog(path: Path) -> Catalog:
    """Return the catalog in a file, or in all YAML files of a folder, by name.

    Raises:
        CatalogError: it cannot be read, or something is wrong with it.
    """
    sources: list[Source] = []
    faults: list[Fault] = []
    for file in _catalog_files(path):
        try:
            sources.append(_source(file))
        except CatalogError as error:
            faults += error.faults
    return parse_catalog(sources, faults)


def main(argv: Sequence[str] | None = None) -> int:
    """Check one catalog for a person or a script; return 0 if it can be used, else 1."""
    parser = argparse.ArgumentParser(
        prog="jupyter-fleet catalog check",
        description="Say everything that is wrong with a catalog, with line numbers.",
    )
    parser.add_argument("path", type=Path, metavar="FILE", help="a file or a folder")
    parser.add_argument("--json", action="store_true", help="print faults as JSON")
    arguments = parser.parse_args(argv)
    try:
        catalog = load_catalog(arguments.path)
    except CatalogError as error:
        _report(error.faults, as_json=arguments.json)
        return 1
    if arguments.json:
        sys.stdout.write("[]\n")
    else:
        sys.stdout.write(
            f"{arguments.path}: {len(catalog.profiles)} profiles, "
            f"{len(catalog.classes)} classes, {len(catalog.runtimes)} runtimes; "
            "no fault found.\n"
        )
    return 0


def _report(faults: Sequence[Fault], *, as_json: bool) -> None:
    if as_json:
        json.dump([asdict(fault) for fault in faults], sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    sys.stderr.write(f"{count} found.\n")


def _catalog_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    try:
        found = sorted(file for file in path.iterdir() if _is_meant(file))
    except OSError as error:
        raise _unreadable(
            path, f"the folder cannot be read: {error.strerror}", "Check its mode."
        ) from error
    if not found:
        raise _unreadable(path, "the folder has no YAML file", "Add one.")
    return found


def _is_meant(file: Path) -> bool:
    """Return whether *file* is one of a catalog; editors leave others beside it."""
    if file.suffix not in _SUFFIXES or file.name.startswith("."):
        return False
    try:
        mode = file.stat().st_mode
    except OSError:
        return True
    # A pipe or a socket would keep whoever opens it.
    return stat.S_ISREG(mode)


def _source(file: Path) -> Source:
    try:
        with file.open("rb") as stream:
            # More than allowed, so that a larger file is seen to be one.
            content = stream.read(_MAX_BYTES)
    except OSError as error:
        raise _unreadable(
            file, f"the file cannot be read: {error.strerror}", "Check the path."
        ) from error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(content) == _MAX_BYTES:
            return Source(str(file), " " * (MAX_CHARACTERS + 1))
        line = content.count(b"\n", 0, error.start) + 1
        raise _unreadable(
            file, "the file is not UTF-8", "Save it as UTF-8.", line
        ) from error
    return Source(str(file), io.StringIO(text, newline=None).read())


def _unreadable(path: Path, message: str, remedy: str, line: int = 1) -> CatalogError:
    fault = Fault(file=str(path), line=line, message=message, remedy=remedy)
    return CatalogError([fault])
