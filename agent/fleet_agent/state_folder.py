"""The agent's folder: who may read it, who works in it, and what it holds."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet_agent.errors import AnotherAgentError, SettingsError


_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_LONGEST_TOKEN = 4096


def default_state_folder() -> Path:
    """Return where an agent keeps its state unless told otherwise."""
    if os.geteuid() == 0:
        return Path("/var/lib/jupyterhub-fleet/agent")
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(home) / "jupyterhub-fleet" / "agent"


def add_state_option(parser: argparse.ArgumentParser) -> None:
    """Let a command's user name the agent's folder, as ``state_dir``."""
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=default_state_folder(),
        metavar="DIR",
        help="the agent's own folder (default: %(default)s)",
    )


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The places below one state folder."""

    path: Path

    @property
    def token(self) -> Path:
        """The machine's token."""
        return self.path / "token"

    @property
    def enrolment(self) -> Path:
        """What enrolment told this machine."""
        return self.path / "enrolment.json"

    @property
    def last_run(self) -> Path:
        """What the agent that works here, or did last, was told of its controller."""
        return self.path / "last-run.json"

    @property
    def drained(self) -> Path:
        """A file that is there while the owner wants nothing new to start."""
        return self.path / "drained"

    @property
    def ended(self) -> Path:
        """Why the last agent could not go on, until another one starts."""
        return self.path / "ended"

    @property
    def cut_off(self) -> Path:
        """Since when nobody was heard, while that is so."""
        return self.path / "cut-off"

    @property
    def ledger(self) -> Path:
        """The ledger's file."""
        return self.path / "ledger.sqlite"

    @property
    def as_option(self) -> str:
        """What names this folder in a command for a person; nothing for the usual one."""
        if self.path == default_state_folder():
            return ""
        return f" --state-dir {shlex.quote(str(self.path))}"

    def make(self) -> None:
        """Make the folder for this user alone, or check that it is so.

        Raises:
            SettingsError: it cannot be made, or others may enter it.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"the state folder {self.path} cannot be made: {error.strerror}"
            ) from error
        self.check()

    def check(self) -> None:
        """Say whether the folder is this user's alone.

        Raises:
            SettingsError: it is not there, or others may enter it.
        """
        try:
            status = self.path.stat()
        except OSError as error:
            raise SettingsError(
                f"the state folder {self.path} cannot be read: {error.strerror}"
            ) from error
        _check_private(self.path, status, "the state folder", mode="700")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep every other agent out of this folder; freed when the process ends.

        Raises:
            AnotherAgentError: one works in it already.
        """
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AnotherAgentError(
                    f"another agent works in {self.path}; stop it first, or give this "
                    "one a state folder of its own (--state-dir)"
                ) from error
            yield
        finally:
            os.close(descriptor)

    def is_locked(self) -> bool:
        """Whether an agent works in this folder now; leaves nothing behind.

        Raises:
            OSError: nobody can tell.
        """
        try:
            descriptor = os.open(self.path / "lock", os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def read_enrolment(self) -> dict[str, Any]:
        """Return what enrolment told; empty when this machine was not enrolled here.

        Raises:
            SettingsError: the file is damaged.
        """
        try:
            text = self.enrolment.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        told = _fields(text)
        if told is None:
            raise SettingsError(
                f"{self.enrolment} is damaged; enrol this machine again"
            )
        return told

    def note_run(self, *, controller: str, ca_file: str | None) -> None:
        """Keep what an agent that begins to work here was told of its controller."""
        told = {"controller": controller, "ca_file": ca_file}
        write_private(self.last_run, json.dumps(told))

    def read_last_run(self) -> dict[str, Any]:
        """Return what ``note_run`` kept; empty where nothing can be read."""
        try:
            return _fields(self.last_run.read_text(encoding="utf-8")) or {}
        except OSError:
            return {}


def _fields(text: str) -> dict[str, Any] | None:
    try:
        told = json.loads(text)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def read_token(path: Path) -> str:
    """Return the machine's token.

    Raises:
        SettingsError: there is none, or others may read it.
    """
    try:
        with path.open(encoding="utf-8") as file:
            _check_private(path, os.fstat(file.fileno()), "the token file", mode="600")
            token = file.read(_LONGEST_TOKEN).strip()
    except OSError as error:
        raise SettingsError(
            f"the token file {path} cannot be read: {error.strerror}. Enrol this "
            "machine with `fleet-agent enrol`, or name the file with --token-file"
        ) from error
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            f"the token file {path} holds no token; enrol this machine again"
        )
    return token


def write_private(path: Path, text: str) -> None:
    """Put a file that only this user may read at *path*, whole or not at all."""
    draft = path.with_name(f".{path.name}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _check_private(path: Path, status: os.stat_result, what: str, *, mode: str) -> None:
    if status.st_uid != os.geteuid():
        raise SettingsError(
            f"{what} {path} belongs to another user (uid {status.st_uid}); it must "
            f"belong to the user of the agent (uid {os.geteuid()})"
        )
    if status.st_mode & _OTHERS:
        raise SettingsError(
            f"{what} {path} is open to other users of this computer; run: "
            f"chmod {mode} {path}"
        )
