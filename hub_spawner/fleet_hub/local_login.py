"""Logging in with single-use codes: for a JupyterHub on one's own machine.

Whoever may run programs here can open the login page, so a login without a secret
would hand the owner's rights to every local user.  A code is made by whoever can write
the Hub's folder, is valid once and for a day, and is kept as a hash.
"""

from __future__ import annotations

import fcntl
import getpass
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

from jupyterhub.auth import Authenticator
from traitlets import Unicode
from typing_extensions import override

from fleet_hub.errors import ConfigurationError
from fleet_hub.places import (
    OWNER_VARIABLE,
    Places,
    private_folder,
    write_private,
)


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


class LoginCodeAuthenticator(Authenticator):
    """Lets a user in who brings the code that was made for that name."""

    codes_file = Unicode(
        help="The file of codes, which `jupyter-fleet login-code` writes."
    ).tag(config=True)

    uses_login_codes = True
    """Tells the login page what to ask for."""

    @override
    async def authenticate(self, handler: Any, data: dict[str, str]) -> str | None:
        if not self.codes_file:
            raise ConfigurationError("LoginCodeAuthenticator.codes_file is not set")
        name = self.normalize_username(data["username"])
        # spent under the name that the Hub will know the user by
        codes = LoginCodes(Path(self.codes_file))
        return name if codes.spend(name, data.get("password", "")) else None


def local_owner() -> str:
    """Return the Hub user who owns this machine: whoever runs the Hub."""
    return (os.environ.get(OWNER_VARIABLE) or getpass.getuser()).lower()


def login_with_codes(c: Any, places: Places) -> None:
    """Have JupyterHub's configuration *c* ask for codes, and make the owner an admin.

    Anybody for whom a code was made may log in.
    """
    c.JupyterHub.authenticator_class = LoginCodeAuthenticator
    c.LoginCodeAuthenticator.codes_file = str(places.login_codes)
    c.LoginCodeAuthenticator.allow_all = True
    c.LoginCodeAuthenticator.admin_users = {local_owner()}
