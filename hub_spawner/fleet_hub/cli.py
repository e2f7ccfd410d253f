"""The command ``jupyter-fleet``: what an administrator does from a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fleet_hub import governing_commands
from fleet_hub.command_places import (
    add_controller,
    add_data_dir,
    controller_of,
    places_of,
)
from fleet_hub.demo import command as demo
from fleet_hub.errors import ConfigurationError
from fleet_hub.explaining import commands as explaining


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
    root = argparse.ArgumentParser(
        prog="jupyter-fleet",
        description="What an administrator of a fleet does from a terminal.",
    )
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands)
    demo.add_to(commands)
    _add_login_code(commands)
    _add_machines(commands)
    _add_redetect(commands)
    explaining.add(commands)
    governing_commands.add_to(commands)
    _add_usage(commands)
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
    add_data_dir(run)
    run.set_defaults(command=_run)


def _run(arguments: argparse.Namespace) -> int:
    from fleet_hub.local_plan import (  # noqa: PLC0415 - for this alone
        LocalMachine,
        RunOptions,
        local_owner,
    )
    from fleet_hub.local_run import LocalRun  # noqa: PLC0415 - as above
    from fleet_hub.local_services import machine_name  # noqa: PLC0415 - as above

    if not arguments.config.is_file():
        raise ConfigurationError(
            f"there is no {arguments.config}: run this where it is, or name one "
            "with --config"
        )
    places = places_of(arguments, beside=arguments.config)
    owner = (arguments.owner or local_owner()).lower()
    this = LocalMachine(
        name=machine_name(),
        owner=owner,
        folder=places.agent,
        arguments=("--simulation",) if arguments.simulation else (),
    )
    options = RunOptions(
        places=places,
        config_file=arguments.config.absolute(),
        owner=owner,
        port=arguments.port,
        verbose=arguments.verbose,
        machines=(this,),
    )
    return LocalRun(options).run()


def _add_login_code(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> None:
    code = commands.add_parser(
        "login-code", help="make a code with which somebody logs in once"
    )
    code.add_argument("name", help="the Hub user")
    add_data_dir(code)
    code.set_defaults(command=_login_code)


def _login_code(arguments: argparse.Namespace) -> int:
    from fleet_hub.login_codes import LoginCodes  # noqa: PLC0415 - for this alone

    places = places_of(arguments)
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
    add_controller(machines)
    machines.set_defaults(command=_machines)


def _machines(arguments: argparse.Namespace) -> int:
    from fleet_hub.machines_command import show_machines  # noqa: PLC0415 - for this alone

    return show_machines(controller_of(arguments), as_json=arguments.json)


def _add_redetect(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> None:
    again = commands.add_parser(
        "redetect", help="have a machine look at itself again, now"
    )
    again.add_argument("name", help="the machine")
    add_controller(again)
    again.set_defaults(command=_redetect)


def _redetect(arguments: argparse.Namespace) -> int:
    from fleet_hub.machines_command import redetect  # noqa: PLC0415 - for this alone

    return redetect(controller_of(arguments), arguments.name)


def _add_usage(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    usage = commands.add_parser(
        "usage",
        help="show who has held how much, by user and class",
        description="Show the time that each user's allocations of each class were "
        "held, from being placed to being released; what still runs counts until now.  "
        "Times are in UTC.",
    )
    usage.add_argument(
        "--since",
        help="when the period begins: 2026-11-01, 2026-11-01T12:00, 7d for a week ago, "
        "or beginning (default: with the month)",
    )
    usage.add_argument("--until", help="when it ends (default: now)")
    usage.add_argument("--month", help="a whole month instead, such as 2026-11")
    form = usage.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV, in seconds")
    form.add_argument("--json", action="store_true", help="print JSON, in seconds")
    add_controller(usage)
    usage.set_defaults(command=_usage)


def _usage(arguments: argparse.Namespace) -> int:
    from fleet_hub.usage_command import show_usage  # noqa: PLC0415 - for this alone

    return show_usage(arguments)


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
    status = actions.add_parser(
        "status", help="show what the running controller makes of its catalog"
    )
    status.add_argument("--json", action="store_true", help="print it as JSON")
    add_controller(status)
    status.set_defaults(command=_catalog_status)


def _catalog_status(arguments: argparse.Namespace) -> int:
    from fleet_hub.catalog_status import show_status  # noqa: PLC0415 - for this alone

    return show_status(controller_of(arguments), as_json=arguments.json)


def _catalog_check(arguments: argparse.Namespace) -> int:
    from fleet_hub.catalog_check import main as check  # noqa: PLC0415 - for this alone

    options = ["--json"] if arguments.json else []
    return check([*options, "--", arguments.path])


if __name__ == "__main__":
    sys.exit(main())
