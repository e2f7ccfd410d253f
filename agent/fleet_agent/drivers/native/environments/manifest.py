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
from itertools import zip_longest
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


def take(tree: Path) -> dict[str, Entry]:
    """Return an entry for everything below *tree*, by relative path, in one order."""
    return dict(_entries(tree))


def write(path: Path, entries: dict[str, Entry]) -> None:
    """Write *entries* to *path*: how many there are, then each on its own line."""
    with path.open("w") as file:
        file.write(f"{len(entries)}\n")
        for name, entry in entries.items():
            file.write(f"{json.dumps([name, *entry], separators=(',', ':'))}\n")


def compare(
    tree: Path, path: Path, counted: Count = lambda done, total: None
) -> Difference | None:
    """Return how *tree* differs from the manifest at *path*; None: not at all.

    Both are read side by side and never held in memory: an agent that looked at its
    environments when it started would keep the room for tens of thousands of entries.
    """
    try:
        with path.open() as file:
            total = int(file.readline())
            pairs = zip_longest(map(_read_line, file), _entries(tree))
            number = -1
            for number, (expected, found) in enumerate(pairs):
                if expected != found:
                    return _difference(expected, found)
                if number % _COUNT_EVERY == 0:
                    counted(number, total)
    except (OSError, TypeError, ValueError) as error:
        return Difference(path=path.name, what=f"cannot be read ({error})")
    if number + 1 != total:
        return Difference(path=path.name, what="is cut off")
    counted(total, total)
    return None


def _read_line(line: str) -> tuple[str, Entry]:
    name, *entry = json.loads(line)
    return name, entry


def _difference(
    expected: tuple[str, Entry] | None, found: tuple[str, Entry] | None
) -> Difference:
    """Say what differs where both had the same entries so far."""
    if expected and (not found or _order(expected[0]) < _order(found[0])):
        return Difference(path=expected[0], what="is missing")
    name = found[0] if found else ""
    if expected and expected[0] == name:
        return Difference(path=name, what="was changed")
    return Difference(path=name, what="was added")


def _order(name: str) -> list[str]:
    """Return the key by which ``_walk`` orders names: folder by folder."""
    return name.split("/")


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


def _entries(tree: Path) -> Iterator[tuple[str, Entry]]:
    for item in _walk(os.fspath(tree)):
        yield os.path.relpath(item.path, tree), _entry(item)


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
