"""What a native driver is made from, on any system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fleet_agent.drivers.common.accounts import UidRange
from fleet_agent.drivers.common.listening import Addresses
from fleet_agent.drivers.native.environments.build import BuildTools
from fleet_agent.drivers.native.environments.locks import OWN_LOCKS, Locks
from fleet_agent.drivers.native.environments.store import EnvironmentStore
from fleet_agent.drivers.native.environments.wheel import installed_lab_package
from fleet_agent.drivers.native.sandbox import ENVIRONMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSettings:
    """What a native driver is made from."""

    state: Path
    """A folder that only the agent may enter."""
    interpreter: Path
    """The Python that environments stand on."""
    uv: Path
    uids: UidRange | None
    """The uids that owners get; None: the agent is not root, all run as its user."""
    addresses: Addresses = field(default_factory=Addresses)
    locks: Locks = field(default_factory=lambda: Locks(OWN_LOCKS))
    lab_package: Path = field(default_factory=installed_lab_package)
    environments: Path | None = None
    """Where environments are; None: in the state folder."""
    cache: Path | None = None
    """Where uv keeps downloads; None: in the state folder."""
    build_environment: Mapping[str, str] = field(default_factory=dict)
    """The process environment of uv: proxies, certificates and mirrors."""
    standby: bool = True
    """Keep a process ready for the notebook that was stopped last."""
    fence_python: Path | None = None
    """Whose torch looks for a Mac's GPU from the sandbox; None: a built environment's."""
    notebook_environment: Mapping[str, str] = field(default_factory=dict)
    """What the machine's owner gives every notebook, such as a proxy's address."""


def environment_store(settings: NativeSettings) -> EnvironmentStore:
    """Return the environments of a driver with *settings*.

    Bytecode names files where a sandbox on Linux shows them.  A Mac shows them where
    they are; Python puts the names right when it loads them.
    """
    return EnvironmentStore(
        settings.environments or settings.state / "environments",
        locks=settings.locks,
        lab_package=settings.lab_package,
        tools=BuildTools(
            uv=settings.uv,
            interpreter=settings.interpreter,
            cache=settings.cache or settings.state / "cache",
            environment=settings.build_environment,
        ),
        seen_as=ENVIRONMENT,
    )
