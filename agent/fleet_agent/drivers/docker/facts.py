"""What kind of engine is it, and can notebooks run there?  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What an engine said about itself."""

    version: str = ""
    os: str = ""
    podman: bool = False
    rootless: bool = False
    """Its root is the user who runs it, and other uids are that user's subordinates."""
    remapped: bool = False
    """Containers are in a user namespace unless they ask for the machine's own."""
    desktop: bool = False
    """Containers run in a virtual machine beside this one."""
    live_restore: bool = False
    """Containers live on while it is away."""
    root: str = ""
    """The folder in which it keeps images; it may be another machine's."""

    @classmethod
    def from_answers(cls, version: Mapping[str, Any], info: Mapping[str, Any]) -> Self:
        """Return the facts in the answers of ``/version`` and ``/info``."""
        components = version.get("Components") or ()
        names = [str(item.get("Name", "")).lower() for item in components]
        options = info.get("SecurityOptions") or ()
        security = {str(item).partition(",")[0] for item in options}
        return cls(
            version=str(version.get("Version") or info.get("ServerVersion") or ""),
            os=str(info.get("OSType") or version.get("Os") or "").lower(),
            podman=any("podman" in name for name in names),
            rootless="name=rootless" in security,
            remapped="name=userns" in security,
            desktop="docker desktop" in str(info.get("OperatingSystem", "")).lower(),
            live_restore=bool(info.get("LiveRestoreEnabled")),
            root=str(info.get("DockerRootDir") or ""),
        )

    def problem(self) -> str | None:
        """Return why notebooks cannot run there, as one sentence; None: they can."""
        if self.podman:
            return (
                "The container engine on this machine is podman, which this driver "
                "does not support; it needs Docker."
            )
        if self.os not in {"", "linux"}:
            return "The container engine on this machine does not run Linux containers."
        return None
