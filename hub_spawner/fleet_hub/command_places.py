"""Where the commands look for the fleet's data folder."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from fleet_hub.places import DATA_DIR_VARIABLE, Places, default_data_dir


BESIDE = Path("jupyterhub_config.py")
"""A checkout's own data folder is beside its configuration."""


def add_data_dir(command: argparse.ArgumentParser) -> None:
    """Let *command* name the data folder."""
    command.add_argument(
        "--data-dir",
        type=Path,
        help=f"the data folder (default: ${DATA_DIR_VARIABLE}, else .fleet beside "
        "the configuration)",
    )


def places_of(arguments: argparse.Namespace, *, beside: Path = BESIDE) -> Places:
    """Return the places that were asked for, or those of the checkout we are in."""
    if arguments.data_dir is not None:
        return Places(root=arguments.data_dir.absolute())
    if beside.is_file() and DATA_DIR_VARIABLE not in os.environ:
        return Places(root=beside.absolute().parent / ".fleet")
    return Places(root=default_data_dir())
