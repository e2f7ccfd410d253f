"""The command ``jupyter-fleet``: what an administrator does from a terminal."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fleet_hub.errors import ConfigurationError
from fleet_hub.places import DATA_DIR_VARIABLE, Places, default_data_dir


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command; return its exit status."""
    arguments = parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except ConfigurationError as error:
        sys.stderr.write(f"jupyter-fleet: {error}\n")
        return 1


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; each command adds its own part."""
    root = argparse.ArgumentParser(prog="jupyter-fleet", description=__doc__)
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands)
    _add_login_code(commands)
    _add_machines(commands)
    _add_redetect(commands)
    _add_catalog(commands)
    return root


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run", help="run a fleet of this one machine, until Ctrl-C"
    )
    run.add_argument("--port", type=int, default=8000, help="where people open it")
    run.add_argument(
        "--config",
        type=Path,
        default=Path("jupyterhub_config.py"),
        help="JupyterHub's configuration (default: the one in this folder)",
    )
    run.add_argument(
        "--owner", help="the Hub user who owns this machine (default: you)"
    )
    run.add_argument("--verbose", action="store_true", help="all logs in the terminal")
    run.add_argument(
        "--simulation",
        action="store_true",
        help="pretend to run notebooks, and run none",
    )
    _add_data_dir(run)
    run.set_defaults(command=_run)


def _run(arguments: argparse.Namespace) -> int:
    from fleet_hub.local_login import local_owner  # noqa: PLC0415 - imports JupyterHub
    from fleet_hub.local_run import LocalRun, RunOptions  # noqa: PLC0415 - as above

    if not arguments.config.is_file():
        raise ConfigurationError(
            f"there is no {arguments.config}: run this where it is, or name one "
            "with --config"
        )
    options = RunOptions(
        places=_places(arguments, beside=arguments.config),
        config_file=arguments.config.absolute(),
        owner=(arguments.owner or local_owner()).lower(),
        port=arguments.port,
        verbose=arguments.verbose,
        agent_arguments=("--simulation",) if arguments.simulation else (),
    )
    return LocalRun(options).run()


def _add_login_code(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> None:
    code = commands.add_parser(
        "login-code", help="make a code with which somebody logs in once"
    )
    code.add_argument("name", help="the Hub user")
    _add_data_dir(code)
    code.set_defaults(command=_login_code)


def _login_code(arguments: argparse.Namespace) -> int:
    from fleet_hub.local_login import LoginCodes  # noqa: PLC0415 - imports JupyterHub

    places = _places(arguments, beside=Path("jupyterhub_config.py"))
    if not places.hub.is_dir():
        raise ConfigurationError(
            f"there is no Hub in {places.root}; name its folder with --data-dir"
        )
    code = LoginCodes(places.login_codes).make(arguments.name.lower())
    sys.stdout.write(f"{code}\n")
    return 0


def _add_machines(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> None:
    machines = commands.add_parser(
        "machines", help="show the machines, and what each says that it can do"
    )
    machines.add_argument(
        "--json", action="store_true", help="print them as JSON, for programs"
    )
    _add_data_dir(machines)
    machines.set_defaults(command=_machines)


def _machines(arguments: argparse.Namespace) -> int:
    from fleet_hub.machines_command import show_machines  # noqa: PLC0415 - for this alone

    places = _places(arguments, beside=Path("jupyterhub_config.py"))
    return show_machines(places, as_json=arguments.json)


def _add_redetect(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> None:
    again = commands.add_parser(
        "redetect", help="have a machine look at itself again, now"
    )
    again.add_argument("name", help="the machine")
    _add_data_dir(again)
    again.set_defaults(command=_redetect)


def _redetect(arguments: argparse.Namespace) -> int:
    from fleet_hub.machines_command import redetect  # noqa: PLC0415 - for this alone

    places = _places(arguments, beside=Path("jupyterhub_config.py"))
    return redetect(places, arguments.name)


def _add_catalog(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> None:
    catalog = commands.add_parser("catalog", help="work on a catalog")
    actions = catalog.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser(
        "check", help="say everything that is wrong with a catalog"
    )
    check.add_argument("path", metavar="FILE", help="a file or a folder")
    check.add_argument("--json", action="store_true", help="print faults as JSON")
    check.set_defaults(command=_catalog_check)


def _catalog_check(arguments: argparse.Namespace) -> int:
    from fleet_hub.catalog_check import main as check  # noqa: PLC0415 - for this alone

    options = ["--json"] if arguments.json else []
    return check([*options, "--", arguments.path])


def _add_data_dir(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data-dir",
        type=Path,
        help=f"the data folder (default: ${DATA_DIR_VARIABLE}, else .fleet beside "
        "the configuration)",
    )


def _places(arguments: argparse.Namespace, *, beside: Path) -> Places:
    """Return the places that were asked for, or those of the checkout we are in."""
    if arguments.data_dir is not None:
        return Places(root=arguments.data_dir.absolute())
    if beside.is_file() and DATA_DIR_VARIABLE not in os.environ:
        return Places(root=beside.absolute().parent / ".fleet")
    return Places(root=default_data_dir())


if __name__ == "__main__":
    sys.exit(main())
