"""The file that describes a pretended fleet: its computers, and who uses them already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field, ValidationError

from fleet_contracts.base import Contract, MachineName, Slug
from fleet_hub.errors import ConfigurationError


OWN_FLEET = Path(__file__).with_name("fleet.yaml")

UserName = Annotated[str, Field(min_length=1, max_length=255)]


class DemoMachine(Contract):
    """A computer that is pretended; its agent reads ``computer`` and ``simulation``."""

    name: MachineName
    owner: UserName
    computer: dict[str, Any]
    simulation: dict[str, Any] = Field(default_factory=dict)

    def settings(self) -> dict[str, Any]:
        """Return the configuration of its agent."""
        return {
            "FleetAgent": {
                "drivers": ["simulation"],
                "simulated_machine": self.computer,
                "simulation": self.simulation,
            }
        }


class DemoPerson(Contract):
    """Somebody who asks for a server when the fleet is up."""

    name: UserName
    profile: Slug
    class_name: Slug | None = Field(default=None, alias="class")
    server: Annotated[str, Field(max_length=255)] = ""

    def options(self) -> dict[str, str]:
        """Return what they choose, as JupyterHub's ``user_options``."""
        chosen = {"profile": self.profile, "class": self.class_name}
        return {key: value for key, value in chosen.items() if value is not None}


def _different(machines: tuple[DemoMachine, ...]) -> tuple[DemoMachine, ...]:
    names = [machine.name for machine in machines]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"several machines are called {', '.join(sorted(twice))}")
    return machines


class DemoFleet(Contract):
    """A whole file."""

    machines: Annotated[
        tuple[DemoMachine, ...],
        Field(min_length=1, max_length=50),
        AfterValidator(_different),
    ]
    people: tuple[DemoPerson, ...] = ()


def read_fleet(path: Path) -> DemoFleet:
    """Return the fleet that *path* describes.

    Raises:
        ConfigurationError: it cannot be read, or is no such file; all faults at once.
    """
    try:
        return DemoFleet.model_validate(yaml.safe_load(path.read_text()))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path} is no YAML: {error}") from error
    except ValidationError as error:
        faults = "\n".join(
            f"  {'.'.join(map(str, fault['loc'])) or 'the file'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise ConfigurationError(f"{path} describes no fleet:\n{faults}") from error
