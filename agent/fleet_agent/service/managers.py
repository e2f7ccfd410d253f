"""Puts the unit in its place, and has the service manager start or forget it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet_agent.errors import SettingsError
from fleet_agent.service.units import (
    LAUNCHD_LABEL,
    SYSTEMD_NAME,
    Service,
    launchd_plist,
    systemd_unit,
)


_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """One service manager of one user, or of the whole machine."""

    unit: Path
    starts: tuple[tuple[str, ...], ...]
    """The commands that have it read the unit and start it, in order."""
    ends: tuple[tuple[str, ...], ...]
    may_fail: tuple[str, ...] = ()
    """Words of commands whose failure means that there was nothing to do."""
    advice: str = ""
    """What only a person can add."""

    def text(self, service: Service) -> bytes:
        """Return the unit of *service* for this manager."""
        if self.unit.suffix == ".plist":
            return launchd_plist(service)
        return systemd_unit(service).encode()

    def install(self, service: Service, *, start: bool) -> None:
        """Write the unit, and start it if asked.

        Raises:
            SettingsError: the manager refused; its own words are in the text.
            OSError: the unit cannot be written.
        """
        self.unit.parent.mkdir(parents=True, exist_ok=True)
        draft = self.unit.with_name(f".{self.unit.name}.new")
        draft.write_bytes(self.text(service))
        draft.chmod(0o644)
        draft.replace(self.unit)
        if start:
            self._run(self.starts)

    def remove(self) -> bool:
        """Stop and forget the agent, whose notebooks run on; whether it was there.

        Raises:
            SettingsError: the manager refused.
            OSError: the unit cannot be removed.
        """
        if not self.unit.exists():
            return False
        self._run(self.ends)
        self.unit.unlink()
        return True

    def _run(self, commands: Sequence[Sequence[str]]) -> None:
        for command in commands:
            try:
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=_SECONDS,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise SettingsError(
                    f"{command[0]} does not work here: {error}. The unit is at "
                    f"{self.unit}; start it by the means of this system"
                ) from error
            if done.returncode != 0 and not set(command) & set(self.may_fail):
                said = (done.stderr or done.stdout).strip()
                raise SettingsError(f"{' '.join(command)} failed: {said}")


def manager_for(system: str, *, uid: int, home: Path, config: Path) -> Manager:
    """Return the manager of *system* for the user *uid*.

    *config* is that user's folder of settings, ``~/.config`` on most systems.

    Raises:
        SettingsError: this system has none that we know, or not for this user.
    """
    if system == "darwin":
        return _launchd(uid, home)
    if system != "linux":
        raise SettingsError(f"there is no service manager for {system} here")
    for_all = uid == 0
    folder = Path("/etc/systemd/system") if for_all else config / "systemd/user"
    own = ("systemctl",) if for_all else ("systemctl", "--user")
    return Manager(
        unit=folder / SYSTEMD_NAME,
        starts=((*own, "daemon-reload"), (*own, "enable", "--now", SYSTEMD_NAME)),
        ends=((*own, "disable", "--now", SYSTEMD_NAME),),
        advice=(
            ""
            if for_all
            else "It runs while you are logged in. To have it run always: "
            "sudo loginctl enable-linger $USER"
        ),
    )


def _launchd(uid: int, home: Path) -> Manager:
    if uid == 0:
        raise SettingsError(
            "on a Mac the agent runs as its owner, never as root: run this without sudo"
        )
    unit = home / "Library/LaunchAgents" / f"{LAUNCHD_LABEL}.plist"
    domain = f"gui/{uid}"
    return Manager(
        unit=unit,
        starts=(
            # An older one must go first; usually there is none.
            ("launchctl", "bootout", f"{domain}/{LAUNCHD_LABEL}"),
            ("launchctl", "bootstrap", domain, str(unit)),
        ),
        ends=(("launchctl", "bootout", f"{domain}/{LAUNCHD_LABEL}"),),
        may_fail=("bootout",),
        advice="It runs while you are logged in.",
    )


def own_config(environment: dict[str, str], home: Path) -> Path:
    """Return the user's folder of settings."""
    named = environment.get("XDG_CONFIG_HOME", "")
    return Path(named) if os.path.isabs(named) else home / ".config"  # noqa: PTH117 - of a text
