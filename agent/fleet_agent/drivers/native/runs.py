"""What of one workload lies on disk while it runs?

One folder per allocation and epoch, the agent's own: the status that the sandbox tool
writes, the log, the generated account files and the private temp.  Everything that a
new agent needs to find the workload again is in it or in the handle.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.common.trees import remove_tree


_TAIL_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the sandbox tool wrote so far."""

    child_pid: int | None = None
    """The namespace's first process, as the machine numbers it."""
    pid_namespace: int | None = None
    exit_code: int | None = None
    """Of the first program; the namespace may live on without it."""


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        """Name it; nothing is made."""
        self.path = path

    @classmethod
    def of(cls, base: Path, allocation: str, epoch: int) -> RunFolder:
        """Return the folder of *allocation* in this *epoch*, whatever its characters."""
        name = hashlib.sha256(f"{epoch} {allocation}".encode()).hexdigest()[:24]
        return cls(base / name)

    @property
    def name(self) -> str:
        """What a handle remembers of it."""
        return self.path.name

    @property
    def log(self) -> Path:
        """Where the workload's output goes."""
        return self.path / "server.log"

    @property
    def status(self) -> Path:
        """Where the sandbox tool reports."""
        return self.path / "status.json"

    @property
    def profile(self) -> Path:
        """What a Mac's sandbox lets the workload do."""
        return self.path / "sandbox.sb"

    @property
    def passwd(self) -> Path:
        """The account file of the workload."""
        return self.path / "passwd"

    @property
    def group(self) -> Path:
        """The group file of the workload."""
        return self.path / "group"

    @property
    def temporary(self) -> Path:
        """The private /tmp."""
        return self.path / "tmp"

    @classmethod
    def all(cls, base: Path) -> list[RunFolder]:
        """Return the folders of everything that runs, or did and was not stopped."""
        return [cls(path) for path in base.iterdir()] if base.is_dir() else []

    @property
    def environment(self) -> str:
        """The identity of the environment that it runs from; empty: not known."""
        try:
            return (self.path / "environment").read_text()
        except FileNotFoundError:
            return ""

    @property
    def groups(self) -> tuple[Path, ...]:
        """The control groups that were made for it, if any."""
        try:
            told = json.loads((self.path / "groups").read_text())
        except (FileNotFoundError, ValueError):
            return ()
        return tuple(Path(place) for place in told)

    def write_groups(self, places: Sequence[Path]) -> None:
        """Remember which control groups are made for it."""
        (self.path / "groups").write_text(json.dumps([str(each) for each in places]))

    def make(self, account: Account, environment: str) -> None:
        """Make the folder for a workload of *account* that runs from *environment*."""
        self.path.mkdir(mode=0o700, parents=True)
        (self.path / "environment").write_text(environment)
        for path, text in (
            (self.passwd, account.passwd()),
            (self.group, account.group()),
        ):
            path.write_text(text)
            path.chmod(0o644)
        self.temporary.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(self.temporary, account.uid, account.gid)

    def remove(self) -> None:
        """Remove all of it; symbolic links are never followed."""
        remove_tree(self.path)

    def read_status(self) -> Status:
        """Return what is known from the status file."""
        facts: dict[str, Any] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in self.status.read_text().splitlines():
                # The last line may be half written.
                with contextlib.suppress(ValueError):
                    facts.update(json.loads(line))
        return Status(
            child_pid=facts.get("child-pid"),
            pid_namespace=facts.get("pid-namespace"),
            exit_code=facts.get("exit-code"),
        )

    def read_log_tail(self) -> str:
        """Return the end of the log; it may hold anything, secrets included."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
