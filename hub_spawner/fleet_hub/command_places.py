"""Where the commands look for the fleet: its data folder, or its service with a token."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from fleet_hub.asking_controller import Controller, Remote
from fleet_hub.errors import ConfigurationError
from fleet_hub.places import DATA_DIR_VARIABLE, Places, default_data_dir, read_secret


BESIDE = Path("jupyterhub_config.py")
"""A checkout's own data folder is beside its configuration."""
TOKEN_VARIABLE: Final = "JUPYTERHUB_API_TOKEN"  # noqa: S105 - where one is found


def add_data_dir(command: argparse.ArgumentParser) -> None:
    """Let *command* name the data folder."""
    command.add_argument(
        "--data-dir",
        type=Path,
        help=f"the data folder (default: ${DATA_DIR_VARIABLE}, else .fleet beside "
        "the configuration)",
    )


def add_controller(command: argparse.ArgumentParser) -> None:
    """Let *command* name the controller that it asks."""
    add_data_dir(command)
    command.add_argument(
        "--service",
        metavar="URL",
        help="ask from anywhere, with a token of the Hub: the fleet service, such as "
        "https://hub.example.org/services/fleet/",
    )
    command.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"the file with the token for --service (default: ${TOKEN_VARIABLE})",
    )


def places_of(arguments: argparse.Namespace, *, beside: Path = BESIDE) -> Places:
    """Return the places that were asked for, or those of the checkout we are in."""
    if arguments.data_dir is not None:
        return Places(root=arguments.data_dir.absolute())
    if beside.is_file() and DATA_DIR_VARIABLE not in os.environ:
        return Places(root=beside.absolute().parent / ".fleet")
    return Places(root=default_data_dir())


def controller_of(arguments: argparse.Namespace) -> Controller:
    """Return the controller that was asked for.

    Raises:
        ConfigurationError: two were, or there is no token for it.
    """
    if arguments.service is None:
        if arguments.token_file is not None:
            raise ConfigurationError("--token-file is for --service")
        return places_of(arguments)
    if arguments.data_dir is not None:
        raise ConfigurationError("name --service, or --data-dir")
    url = f"{arguments.service.rstrip('/')}/"
    if not url.startswith(("https://", "http://")):
        raise ConfigurationError(
            f"{arguments.service} is no address; write it like "
            "https://hub.example.org/services/fleet/"
        )
    if arguments.token_file is not None:
        return Remote(url=url, token=read_secret(arguments.token_file))
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        raise ConfigurationError(
            "--service needs a token of the Hub, from its page Token: put it in a file "
            f"and name that with --token-file, or into {TOKEN_VARIABLE}"
        )
    return Remote(url=url, token=token)
