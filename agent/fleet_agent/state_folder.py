"""The agent's folder: who may read it, who works in it, and what it holds."""

from __future__ import annotations

import fcntl
import json
import os
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
    def ledger(self) -> Path:
        """The ledger's file."""
        return self.path / "ledger.sqlite"

    def make(self) -> None:
        """Make the folder for this user alone, or check that it is so.

        Raises:
            SettingsError: it cannot be made, or others may enter it.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.path.stat()
        except OSError as error:
            raise SettingsError(
                f"the state folder {self.path} cannot be made: {error.strerror}"
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

    def read_enrolment(self) -> dict[str, Any]:
        """Return what enrolment told; empty when this machine was not enrolled here.

        Raises:
            SettingsError: the file is damaged.
        """
        try:
            text = self.enrolment.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        try:
            told = json.loads(text)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise SettingsError(
                f"{self.enrolment} is damaged; enrol this machine again"
            )
        return told


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
