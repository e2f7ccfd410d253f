"""Is an environment still what was built?

The manifest lists every file of the tree with its size, mode and hash.  A wheel's own
RECORD covers neither bytecode nor the interpreter's links, and nothing that was added.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


Count = Callable[[int, int], None]
"""Hears how many files were looked at, of how many."""
Entry = list[str | int]
"""Kind, mode, size and hash of a file; kind and target of a link; kind and mode."""

_INSTALLED = re.compile(r"(^|/site-packages/)[^/]+\.dist-info/RECORD$")
"""Of a package itself: those of packages that it has vendored, and patched, are not."""

_BLOCK_BYTES = 1024 * 1024
_COUNT_EVERY = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first thing that is not as the manifest says."""

    path: str
    what: str


def take(
    tree: Path, counted: Callable[[int], None] = lambda done: None
) -> dict[str, Entry]:
    """Return an entry for everything below *tree*, by relative path."""
    entries: dict[str, Entry] = {}
    for number, item in enumerate(_walk(os.fspath(tree))):
        entries[os.path.relpath(item.path, tree)] = _entry(item)
        if number % _COUNT_EVERY == 0:
            counted(number)
    counted(len(entries))
    return entries


def write(path: Path, entries: dict[str, Entry]) -> None:
    """Write *entries* to *path*."""
    path.write_text(json.dumps(entries, sort_keys=True, separators=(",", ":")))


def compare(
    tree: Path, path: Path, counted: Count = lambda done, total: None
) -> Difference | None:
    """Return how *tree* differs from the manifest at *path*; None: not at all."""
    try:
        expected: dict[str, Entry] = json.loads(path.read_text())
        names = expected.keys()
        total = len(expected)
        found = take(tree, lambda done: counted(min(done, total), total))
    except (OSError, ValueError, AttributeError) as error:
        return Difference(path=path.name, what=f"cannot be read ({error})")
    for name in sorted(names | found.keys()):
        if name not in found:
            return Difference(path=name, what="is missing")
        if name not in expected:
            return Difference(path=name, what="was added")
        if found[name] != expected[name]:
            return Difference(path=name, what="was changed")
    return None


def check_records(entries: dict[str, Entry], tree: Path) -> Difference | None:
    """Return the first file that is not what its wheel's RECORD says; None: all are.

    This ties the tree to the lock: the lock's hashes cover the wheels, and the wheels'
    RECORDs cover their files.  Entries without a hash are the installer's own.
    """
    for name in entries:
        if not _INSTALLED.search(name):
            continue
        base = os.path.dirname(os.path.dirname(name))  # noqa: PTH120 - a relative name
        with (tree / name).open(newline="") as record:
            for row in csv.reader(record):
                difference = _check_row(entries, base, row)
                if difference:
                    return difference
    return None


def _check_row(
    entries: dict[str, Entry], base: str, row: list[str]
) -> Difference | None:
    path, checksum = os.path.normpath(os.path.join(base, row[0])), row[1]  # noqa: PTH118 - as above
    if not checksum:
        return None
    algorithm, _, value = checksum.partition("=")
    entry = entries.get(path)
    if entry is None:
        return Difference(path=path, what="is missing")
    if algorithm == "sha256" and entry[-1] != _hexadecimal(value):
        return Difference(path=path, what="differs from its wheel")
    return None


def _hexadecimal(value: str) -> str:
    try:
        return base64.urlsafe_b64decode(f"{value}{'=' * (-len(value) % 4)}").hex()
    except binascii.Error:
        return value


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as items:
        for item in sorted(items, key=lambda item: item.name):
            yield item
            if item.is_dir(follow_symlinks=False):
                yield from _walk(item.path)


def _entry(item: os.DirEntry[str]) -> Entry:
    status = item.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return ["link", os.readlink(item.path)]  # noqa: PTH115 - as given, a string
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return ["folder", mode]
    if not stat.S_ISREG(status.st_mode):
        return ["other", mode]
    return ["file", mode, status.st_size, _sha256(item.path)]


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - 20,000 times
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
