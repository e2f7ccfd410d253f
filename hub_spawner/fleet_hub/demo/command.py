"""``jupyter-fleet demo``: a Hub, its controller, and agents that pretend."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fleet_hub.command_places import add_data_dir
from fleet_hub.places import Places, write_private


if TYPE_CHECKING:
    from fleet_hub.demo.fleet_file import DemoFleet, DemoMachine


CATALOG_VARIABLE: Final = "JUPYTERHUB_FLEET_DEMO_CATALOG"
_HERE: Final = Path(__file__).parent
_HINT: Final = """\
Nothing runs for real: the computers are pretended, and a notebook is a page that says
what would have run.  Look at the profiles and why they wait, at the machines on
Services > fleet, and start something yourself."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    demo = commands.add_parser(
        "demo", help="show a pretended fleet of Macs and GPU machines, until Ctrl-C"
    )
    demo.add_argument("--port", type=int, default=8000, help="where people open it")
    demo.add_argument(
        "--fleet",
        type=Path,
        default=_HERE / "fleet.yaml",
        help="the file that describes it",
    )
    demo.add_argument(
        "--catalog",
        type=Path,
        default=_HERE / "catalog.yaml",
        help="what people can choose from",
    )
    demo.add_argument("--verbose", action="store_true", help="all logs in the terminal")
    add_data_dir(demo)
    demo.set_defaults(command=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    from fleet_hub.demo.fleet_file import read_fleet  # noqa: PLC0415 - for this alone

    fleet = read_fleet(arguments.fleet)
    if arguments.data_dir is not None:
        return _run(arguments, fleet, Places(root=arguments.data_dir.absolute()))
    with tempfile.TemporaryDirectory(prefix="jupyter-fleet-demo-") as folder:
        return _run(arguments, fleet, Places(root=Path(folder)))


def _run(arguments: argparse.Namespace, fleet: DemoFleet, places: Places) -> int:
    from fleet_hub.demo.visitors import let_in, open_to_everybody  # noqa: PLC0415
    from fleet_hub.local_plan import (  # noqa: PLC0415 - for this alone
        LocalMachine,
        RunOptions,
        local_owner,
    )
    from fleet_hub.local_run import LocalRun  # noqa: PLC0415 - as above
    from fleet_hub.local_services import Ports  # noqa: PLC0415 - as above

    places.make()
    os.environ[CATALOG_VARIABLE] = str(arguments.catalog.absolute())

    def machine_of(machine: DemoMachine) -> LocalMachine:
        folder = places.agent / machine.name
        folder.mkdir(mode=0o700, exist_ok=True)
        settings = folder / "settings.json"
        write_private(settings, json.dumps(machine.settings()))
        return LocalMachine(
            name=machine.name,
            owner=machine.owner,
            provider="demo",
            folder=folder,
            arguments=("--config", str(settings)),
        )

    def people(places: Places, ports: Ports, check: Callable[[], None]) -> None:
        open_to_everybody(places, fleet.machines, check)
        let_in(places, fleet, ports.public_url)

    options = RunOptions(
        places=places,
        config_file=_HERE / "jupyterhub_config.py",
        owner=local_owner(),
        port=arguments.port,
        verbose=arguments.verbose,
        machines=tuple(map(machine_of, fleet.machines)),
        hint=_HINT,
        end="Press Ctrl-C to end everything.",
        when_up=people,
    )
    return LocalRun(options).run()
