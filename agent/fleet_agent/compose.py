"""Which drivers this agent runs with: the only place that knows them by name."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fleet_agent.drivers.base import Driver
from fleet_agent.drivers.docker.packet_filter import what_is_missing
from fleet_agent.drivers.docker.reach import Reach, read_reach
from fleet_agent.drivers.docker.sockets import engine_host
from fleet_agent.errors import SettingsError
from fleet_agent.probes.readers import ask_machine
from fleet_agent.probes.settings import Environment, FindEnvironments
from fleet_agent.probes.tools import Ask
from fleet_contracts.amounts import AmountError, parse_bytes
from fleet_contracts.devices import MACOS
from fleet_contracts.workloads import DriverName


Settings = TypeVar("Settings", bound=BaseModel)


_FOR_DOWNLOADS = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""What uv may see of the agent's own environment, beside its own UV_… variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSettings:
    """What the drivers are made from."""

    folder: Path
    """The agent's state folder; each driver has its own place in it."""
    bind_address: str = "127.0.0.1"
    advertise_address: str = "127.0.0.1"
    standby: bool = True
    locks: str = ""
    """A folder with the owner's own locks; empty: only those that come along."""
    notebook_environment: Mapping[str, str] = field(default_factory=dict)
    docker_host: str = ""
    """Where the container engine answers; empty: as DOCKER_HOST says, or as usual."""
    docker_folders: Sequence[str] = ()
    docker_networks: Sequence[str] = ()
    """What of this machine's private network containers may reach."""
    docker_image_days: float = 30.0
    docker_free_disk: str = "10G"
    simulation: Mapping[str, Any] = field(default_factory=dict)
    fence_python: str = ""
    """A Python with torch that the owner names for the probe of a Mac's fence."""
    process_environment: Mapping[str, str] = field(default_factory=dict)
    system: str = sys.platform


def make_drivers(
    names: Sequence[str], settings: DriverSettings
) -> dict[DriverName, Driver]:
    """Return the drivers called *names*.

    Raises:
        SettingsError: there is no such driver, or its settings are wrong.
    """
    drivers: dict[DriverName, Driver] = {}
    for name in names:
        maker = _MAKERS.get(name)
        if maker is None:
            known = ", ".join(sorted(_MAKERS))
            raise SettingsError(f"there is no driver {name!r}; there are: {known}")
        driver = maker(settings)
        drivers[driver.name] = driver
    return drivers


def environment_finder(drivers: Mapping[DriverName, Driver]) -> FindEnvironments:
    """Return what finds the environments that *drivers* have built so far."""

    async def find() -> tuple[Environment, ...]:
        found: dict[str, Path] = {}
        for driver in drivers.values():
            found |= await driver.interpreters()
        return tuple(
            Environment(ref=ref, interpreter=str(path))
            for ref, path in sorted(found.items())
        )

    return find


def ask_for(
    shape: Mapping[str, Any], drivers: Collection[DriverName], name: str
) -> Ask:
    """Return what answers the probes: this machine, or a pretended one of *shape*.

    Raises:
        SettingsError: the shape is wrong, or a driver would run things for real.
    """
    from fleet_agent.simulated_machine import (  # noqa: PLC0415 - most agents need none
        MachineShape,
        SimulatedMachine,
    )

    if not shape:
        return ask_machine
    if set(drivers) != {DriverName.SIMULATION}:
        raise SettingsError(
            "only an agent whose one driver is `simulation` may pretend to be another "
            "computer: leave simulated_machine out, or set drivers to ['simulation']"
        )
    return SimulatedMachine(name, _valid(MachineShape, shape, "simulated machine"))


def _valid(model: type[Settings], told: Mapping[str, Any], what: str) -> Settings:
    try:
        return model.model_validate(dict(told))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise SettingsError(f"the {what}'s settings are wrong: {faults}") from error


# Drivers are imported where they are made: one that is not offered costs no memory.


def _native(settings: DriverSettings) -> Driver:
    from fleet_agent.drivers.common.accounts import UidRange  # noqa: PLC0415
    from fleet_agent.drivers.common.listening import Addresses  # noqa: PLC0415
    from fleet_agent.drivers.native.environments.interpreter import (  # noqa: PLC0415
        own_interpreter,
    )
    from fleet_agent.drivers.native.environments.locks import (  # noqa: PLC0415
        OWN_LOCKS,
        Locks,
    )
    from fleet_agent.drivers.native.settings import NativeSettings  # noqa: PLC0415

    native = NativeSettings(
        state=settings.folder / "native",
        interpreter=own_interpreter(),
        uv=_find_uv(settings.process_environment.get("PATH", os.defpath)),
        uids=UidRange() if os.geteuid() == 0 else None,
        addresses=Addresses(
            bind=settings.bind_address, advertise=settings.advertise_address
        ),
        build_environment=_for_downloads(settings.process_environment),
        standby=settings.standby,
        locks=Locks(*_own_locks(settings.locks), OWN_LOCKS),
        notebook_environment=settings.notebook_environment,
        fence_python=_program(settings.fence_python),
    )
    if settings.system == MACOS:
        # It keeps no process ready: that would hold the Mac's GPU.
        from fleet_agent.drivers.native.macos.driver import MacDriver  # noqa: PLC0415

        return MacDriver(native)
    from fleet_agent.drivers.native.driver import NativeDriver  # noqa: PLC0415

    return NativeDriver(native)


def _docker(settings: DriverSettings) -> Driver:
    try:
        from fleet_agent.drivers.docker.driver import DockerDriver  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SettingsError(
            "the docker driver needs Docker's SDK; install it beside the agent: "
            "pip install jupyterhub-fleet[docker]"
        ) from error
    from fleet_agent.drivers.common.accounts import UidRange  # noqa: PLC0415
    from fleet_agent.drivers.common.listening import Addresses  # noqa: PLC0415
    from fleet_agent.drivers.docker.keeping import DAY, Keeping  # noqa: PLC0415
    from fleet_agent.drivers.docker.settings import (  # noqa: PLC0415
        FIRST_UID,
        DockerSettings,
    )
    from fleet_agent.drivers.native.inside import trimming  # noqa: PLC0415

    return DockerDriver(
        DockerSettings(
            state=settings.folder / "docker",
            host=find_engine(settings),
            uids=UidRange(first=FIRST_UID) if os.geteuid() == 0 else None,
            addresses=Addresses(
                bind=settings.bind_address, advertise=settings.advertise_address
            ),
            notebook_environment=settings.notebook_environment,
            folders=_shown(settings.docker_folders),
            trimming=Path(trimming.__file__),
            reach=_reach(settings),
            keeping=Keeping(
                image_seconds=settings.docker_image_days * DAY,
                free_bytes=_bytes(settings.docker_free_disk),
            ),
        )
    )


def can_keep_in(settings: DriverSettings) -> bool | None:
    """Whether this agent can keep containers out of the machine's private network.

    None: the machine's owner lets them in.

    Raises:
        SettingsError: the owner's word means nothing.
    """
    if _reach(settings).everything:
        return None
    return what_is_missing() is None


def _reach(settings: DriverSettings) -> Reach:
    try:
        return read_reach(settings.docker_networks)
    except ValueError as error:
        raise SettingsError(
            f"docker_networks: {error}; write addresses, networks such as "
            "192.168.7.0/24, or all"
        ) from error


def _bytes(text: str) -> int:
    try:
        return parse_bytes(text)
    except AmountError as error:
        raise SettingsError(f"docker_free_disk: {error}") from error


def find_engine(settings: DriverSettings) -> str:
    """Return where the Docker driver's engine answers.

    Raises:
        SettingsError: it is another machine's, or no address of an engine.
    """
    try:
        return engine_host(settings.docker_host, settings.process_environment)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _program(path: str) -> Path | None:
    if not path:
        return None
    if not Path(path).is_absolute() or not os.access(path, os.X_OK):
        raise SettingsError(
            f"fence_python is to be a Python on this machine, and {path} is no program"
        )
    return Path(path)


def _own_locks(folder: str) -> tuple[Path, ...]:
    if not folder:
        return ()
    path = Path(folder)
    if not path.is_absolute() or not os.access(path, os.R_OK | os.X_OK):
        raise SettingsError(
            f"locks is to be a folder of this machine that the agent may read, and "
            f"{path} is none"
        )
    return (path,)


def _shown(folders: Sequence[str]) -> tuple[Path, ...]:
    paths = tuple(Path(folder) for folder in folders)
    for path in paths:
        if not path.is_absolute() or not path.is_dir():
            raise SettingsError(
                f"{path} is to be shown to notebooks, and is no folder of this machine"
            )
    return paths


def _simulation(settings: DriverSettings) -> Driver:
    from fleet_agent.drivers.common.listening import Addresses  # noqa: PLC0415
    from fleet_agent.drivers.simulation import SimulationDriver  # noqa: PLC0415
    from fleet_agent.drivers.simulation_behaviour import (  # noqa: PLC0415
        Simulation,
    )

    simulation = _valid(Simulation, settings.simulation, "simulation")
    return SimulationDriver(
        settings.folder / "simulation",
        simulation,
        Addresses(bind=settings.bind_address, advertise=settings.advertise_address),
    )


_MAKERS: Mapping[str, Callable[[DriverSettings], Driver]] = {
    DriverName.DOCKER.value: _docker,
    DriverName.NATIVE.value: _native,
    DriverName.SIMULATION.value: _simulation,
}


def _find_uv(search_path: str) -> Path:
    """Return the uv that was installed with the agent, else the system's."""
    try:
        from uv import find_uv_bin  # noqa: PLC0415 - only the native driver needs it

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv", path=search_path)
    if found is None:
        raise SettingsError(
            "uv is not installed, and the native driver builds environments with it; "
            "install it beside the agent: pip install uv"
        )
    return Path(found)


def _for_downloads(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name in _FOR_DOWNLOADS or name.startswith("UV_")
    }
