"""Which drivers this agent runs with: the only place that knows them by name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fleet_agent.drivers.base import Driver
from fleet_agent.errors import SettingsError
from fleet_agent.probes.settings import Environment, FindEnvironments
from fleet_contracts.workloads import DriverName


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
    notebook_environment: Mapping[str, str] = field(default_factory=dict)
    simulation: Mapping[str, Any] = field(default_factory=dict)
    process_environment: Mapping[str, str] = field(default_factory=dict)


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


# Drivers are imported where they are made: one that is not offered costs no memory.


def _native(settings: DriverSettings) -> Driver:
    from fleet_agent.drivers.native.driver import (  # noqa: PLC0415
        NativeDriver,
        NativeSettings,
    )
    from fleet_agent.drivers.native.environments.interpreter import (  # noqa: PLC0415
        own_interpreter,
    )
    from fleet_agent.drivers.native.identities import UidRange  # noqa: PLC0415
    from fleet_agent.drivers.native.listening import Addresses  # noqa: PLC0415

    return NativeDriver(
        NativeSettings(
            state=settings.folder / "native",
            interpreter=own_interpreter(),
            uv=_find_uv(settings.process_environment.get("PATH", os.defpath)),
            uids=UidRange() if os.geteuid() == 0 else None,
            addresses=Addresses(
                bind=settings.bind_address, advertise=settings.advertise_address
            ),
            build_environment=_for_downloads(settings.process_environment),
            notebook_environment=settings.notebook_environment,
        )
    )


def _simulation(settings: DriverSettings) -> Driver:
    from fleet_agent.drivers.simulation import SimulationDriver  # noqa: PLC0415
    from fleet_agent.drivers.simulation_behaviour import (  # noqa: PLC0415
        Simulation,
    )

    try:
        simulation = Simulation.model_validate(dict(settings.simulation))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise SettingsError(f"the simulation's settings are wrong: {faults}") from error
    return SimulationDriver(settings.folder / "simulation", simulation)


_MAKERS: Mapping[str, Callable[[DriverSettings], Driver]] = {
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
