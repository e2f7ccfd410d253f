"""Codes with which somebody logs in once.

A code is made by whoever can write the Hub's folder, is valid once and for a day, and
is kept as a hash.  JupyterHub's side of it is ``local_login``.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fleet_hub.places import private_folder, write_private


LIFETIME_SECONDS: Final = 24 * 3600
ALPHABET: Final = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
"""Without the letters and digits that people take for one another."""
GROUPS: Final = 4
GROUP_LENGTH: Final = 4


class LoginCodes:
    """The codes in one file; safe to use from several processes at once."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Keep the codes in *path*, which is made on first use."""
        self._path = path
        self._clock = clock

    def make(self, name: str) -> str:
        """Return a new code for *name*; an earlier unused one is void."""
        code = "-".join(
            "".join(secrets.choice(ALPHABET) for _ in range(GROUP_LENGTH))
            for _ in range(GROUPS)
        )
        entry = {"hash": _hash(code), "expires": self._clock() + LIFETIME_SECONDS}
        with self._locked():
            codes = self._read()
            codes[name] = entry
            self._write(codes)
        return code

    def spend(self, name: str, code: str) -> bool:
        """Whether *code* was *name*'s valid code; it is not any more."""
        with self._locked():
            codes = self._read()
            entry = codes.get(name)
            right = entry is not None and hmac.compare_digest(
                str(entry["hash"]), _hash(code)
            )
            if right:
                del codes[name]
                self._write(codes)
            return right

    def _read(self) -> dict[str, dict[str, Any]]:
        if not self._path.exists():
            return {}
        try:
            codes = json.loads(self._path.read_text())
            now = self._clock()
            return {
                name: entry
                for name, entry in codes.items()
                if float(entry["expires"]) > now
            }
        except (ValueError, TypeError, KeyError, AttributeError):
            # Half a file is no code: whoever needs one makes another.
            return {}

    def _write(self, codes: dict[str, dict[str, Any]]) -> None:
        write_private(self._path, json.dumps(codes))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        private_folder(self._path.parent)
        lock = self._path.with_suffix(".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _hash(code: str) -> str:
    """Return what is kept of a code; its 78 random bits need no slow hash."""
    letters = "".join(each for each in code.upper() if each in ALPHABET)
    return hashlib.sha256(letters.encode()).hexdigest()
