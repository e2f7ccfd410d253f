"""Where the fleet keeps things on the Hub's machine, and how secret files are made.

Everything lives below one data folder: ``hub/`` (the Hub's database, cookie secret
and login codes), ``controller/`` (the store and the secrets of its wire) and
``agent/`` (the local machine's own, in a local run).  Folders are 0700, files 0600.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet_hub.errors import ConfigurationError


DATA_DIR_VARIABLE: Final = "JUPYTERHUB_FLEET_DATA_DIR"
"""Names the data folder; the controller's process is told by it too."""
CONTROLLER_PORT_VARIABLE: Final = "JUPYTERHUB_FLEET_CONTROLLER_PORT"
CATALOG_VARIABLE: Final = "JUPYTERHUB_FLEET_CATALOG"
"""Names the catalog file for the controller; unset: the built-in catalog."""
TRUSTED_NETWORKS_VARIABLE: Final = "JUPYTERHUB_FLEET_TRUSTED_NETWORKS"
"""Names, separated by commas, the networks where nobody listens in between."""
USERS_MAY_ENROL_VARIABLE: Final = "JUPYTERHUB_FLEET_USERS_MAY_ENROL"
"""Set to 1: everybody may enrol a machine of their own, not only admins."""
OPEN_METRICS_VARIABLE: Final = "JUPYTERHUB_FLEET_OPEN_METRICS"
"""Tells the controller, with ``1``, that the Hub's own metrics are open to everybody."""
OWNER_VARIABLE: Final = "JUPYTERHUB_FLEET_OWNER"
"""Names the Hub user to whom this machine belongs, in a local run."""
DEFAULT_CONTROLLER_PORT: Final = 8098
SERVICE_NAME: Final = "fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The files and folders below one data folder."""

    root: Path

    @property
    def hub(self) -> Path:
        """The Hub's own folder."""
        return self.root / "hub"

    @property
    def controller(self) -> Path:
        """The controller's folder."""
        return self.root / "controller"

    @property
    def agent(self) -> Path:
        """The state folder of the local machine's agent."""
        return self.root / "agent"

    @property
    def spawner_secret(self) -> Path:
        """The secret that the Hub shows to the controller on each request."""
        return self.controller / "spawner.secret"

    @property
    def controller_address(self) -> Path:
        """Where the controller that uses this folder listens, written by itself."""
        return self.controller / "address"

    @property
    def hub_database(self) -> Path:
        """The Hub's SQLite file."""
        return self.hub / "jupyterhub.sqlite"

    @property
    def cookie_secret(self) -> Path:
        """What the Hub signs its cookies with."""
        return self.hub / "cookie_secret"

    @property
    def login_codes(self) -> Path:
        """The single-use login codes, hashed."""
        return self.hub / "login-codes.json"

    def make(self) -> None:
        """Create the folders, readable by their owner alone.

        Raises:
            ConfigurationError: a folder cannot be made, or others can read it.
        """
        for folder in (self.root, self.hub, self.controller, self.agent):
            private_folder(folder)


def default_data_dir() -> Path:
    """Return the data folder where nothing else was asked for."""
    named = os.environ.get(DATA_DIR_VARIABLE)
    if named:
        return Path(named).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/jupyterhub-fleet")
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "jupyterhub-fleet"


def private_folder(folder: Path) -> None:
    """Make *folder*, and make it private if it is ours and is not.

    Raises:
        ConfigurationError: it cannot be made or closed to others.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise ConfigurationError(
            f"the folder {folder} cannot be made private: {error.strerror}. "
            f"Choose another data folder with {DATA_DIR_VARIABLE}."
        ) from error


def write_private(path: Path, content: str) -> None:
    """Replace *path* by a file that only its owner reads, in one step."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_secret(path: Path) -> str:
    """Return the secret in *path*.

    Raises:
        ConfigurationError: it is missing, empty, or others can read it.
    """
    try:
        mode = path.stat().st_mode
        secret = path.read_text().strip()
    except OSError as error:
        raise ConfigurationError(
            f"the secret file {path} cannot be read: {error.strerror}"
        ) from error
    if mode & 0o077:
        raise ConfigurationError(
            f"the secret file {path} can be read by others; run: chmod 600 {path}"
        )
    if not secret:
        raise ConfigurationError(
            f"the secret file {path} is empty; delete it and start again"
        )
    return secret


def secret_of(path: Path) -> str:
    """Return the secret in *path*, making a random one on first use."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32) + "\n")
    return read_secret(path)
