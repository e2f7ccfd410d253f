"""Which drivers this agent runs with: the only place that knows them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fleet_agent.drivers.base import Driver
from fleet_agent.errors import SettingsError
from fleet_contracts.workloads import DriverName


def make_drivers(
    names: Sequence[str], *, folder: Path, simulation: Mapping[str, Any]
) -> dict[DriverName, Driver]:
    """Return the drivers called *names*, each with its own folder below *folder*.

    Raises:
        SettingsError: there is no such driver, or its settings are wrong.
    """
    makers: dict[str, Callable[[], Driver]] = {
        DriverName.SIMULATION.value: lambda: _simulation(folder, simulation),
    }
    drivers: dict[DriverName, Driver] = {}
    for name in names:
        maker = makers.get(name)
        if maker is None:
            known = ", ".join(sorted(makers))
            raise SettingsError(f"there is no driver {name!r}; there are: {known}")
        driver = maker()
        drivers[driver.name] = driver
    return drivers


# Imported where needed: a driver that is not offered costs no memory.


def _simulation(folder: Path, settings: Mapping[str, Any]) -> Driver:
    from fleet_agent.drivers.simulation import SimulationDriver  # noqa: PLC0415
    from fleet_agent.drivers.simulation_behaviour import (  # noqa: PLC0415
        Behaviour,
    )

    try:
        behaviour = TypeAdapter(Behaviour).validate_python(dict(settings))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        raise SettingsError(f"the simulation's settings are wrong: {faults}") from error
    return SimulationDriver(folder / "simulation", behaviour)
