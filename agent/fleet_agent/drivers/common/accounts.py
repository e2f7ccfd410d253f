"""As which uid does an owner's work run?

Stable per owner and unique among owners, so that files keep their owner and two owners
never share one.  An agent that is not root can only run things as itself.
"""

from __future__ import annotations

import json
import os
import pwd
import re
from dataclasses import dataclass
from pathlib import Path


HOME = "/home/jovyan"
"""The notebook folder, at the same path for everybody: what a user installs there names
its own path, and outlives renames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The unprivileged user that a workload runs as."""

    uid: int
    gid: int
    name: str

    def passwd(self) -> str:
        """Return the whole /etc/passwd inside."""
        return (
            f"{self.name}:x:{self.uid}:{self.gid}::{HOME}:/bin/bash\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        )

    def group(self) -> str:
        """Return the whole /etc/group inside."""
        return f"{self.name}:x:{self.gid}:\nnogroup:x:65534:\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class UidRange:
    """The uids that owners get, ``first`` included."""

    first: int = 1_900_000_000
    """In 1879048192..2147483647, which systemd's allocation leaves unused: no login,
    dynamic user, container or subordinate range is there."""
    count: int = 1_000_000


class OutOfUidsError(Exception):
    """Every uid of the range belongs to somebody."""


class Identities:
    """The uids given so far, durable; one process at a time."""

    def __init__(self, path: Path, uids: UidRange | None) -> None:
        """Remember at *path*; without *uids* everybody runs as the agent's own user."""
        self._path = path
        self._uids = uids

    def account(self, owner_id: int, owner: str) -> Account:
        """Return the account of *owner*, the Hub user number *owner_id*.

        Raises:
            OutOfUidsError: no uid is left.
        """
        name = _account_name(owner)
        if self._uids is None:
            return Account(uid=os.geteuid(), gid=os.getegid(), name=name)
        given = self._read()
        uid = given.get(str(owner_id))
        if uid is None:
            uid = self._unused(self._uids, set(given.values()))
            self._write({**given, str(owner_id): uid})
        return Account(uid=uid, gid=uid, name=name)

    def _unused(self, uids: UidRange, given: set[int]) -> int:
        for uid in range(uids.first, uids.first + uids.count):
            if uid not in given and not _is_known(uid):
                return uid
        raise OutOfUidsError(f"all {uids.count} uids from {uids.first} on are given")

    def _read(self) -> dict[str, int]:
        try:
            given: dict[str, int] = json.loads(self._path.read_text())
        except FileNotFoundError:
            return {}
        return given

    def _write(self, given: dict[str, int]) -> None:
        # Durable before first use: a uid given twice would mix up two owners' files.
        part = self._path.with_suffix(".part")
        with part.open("w") as file:
            part.chmod(0o600)
            json.dump(given, file)
            file.flush()
            os.fsync(file.fileno())
        part.rename(self._path)


def _is_known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _account_name(owner: str) -> str:
    """Return *owner* as a name that every program can read in /etc/passwd."""
    safe = re.sub(r"[^a-z0-9-]", "-", owner.lower())[:32].strip("-")
    if not safe or safe in ("nobody", "root") or not safe[0].isalpha():
        return "jovyan"
    return safe
