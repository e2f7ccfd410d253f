"""``fleet-agent enrol``: keep what this machine needs to join a fleet."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from fleet_agent.addresses import service_url
from fleet_agent.errors import AgentError
from fleet_agent.state_folder import (
    StateFolder,
    default_state_folder,
    read_token,
    write_private,
)


def main(argv: Sequence[str]) -> int:
    """Write the enrolment into the state folder; return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        _enrol(arguments)
    except AgentError as error:
        sys.stderr.write(f"fleet-agent enrol: {error}\n")
        return error.exit_code
    sys.stdout.write(
        f"This computer is enrolled with {arguments.controller}.\n"
        f"Start it with: fleet-agent run --state-dir {arguments.state_dir}\n"
    )
    return 0


def _enrol(arguments: argparse.Namespace) -> None:
    service = service_url(
        arguments.controller, trusted_network=arguments.trusted_network
    )
    token = read_token(arguments.token_file)
    folder = StateFolder(arguments.state_dir)
    folder.make()
    with folder.lock():
        write_private(folder.token, f"{token}\n")
        told = {
            "controller": service,
            "owner": arguments.owner,
            "trusted_network": arguments.trusted_network,
        }
        write_private(folder.enrolment, json.dumps(told, indent=2) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fleet-agent enrol", description="Tell this computer whose fleet it joins."
    )
    parser.add_argument(
        "--controller",
        required=True,
        metavar="URL",
        help="the fleet service, such as https://hub.example.org/services/fleet/",
    )
    parser.add_argument(
        "--token-file",
        required=True,
        type=Path,
        metavar="FILE",
        help="a file that only you can read, with the machine's token",
    )
    parser.add_argument(
        "--owner",
        default="",
        metavar="NAME",
        help="your name at the Hub: only you may run programs here without a container",
    )
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=default_state_folder(),
        metavar="DIR",
        help="the agent's own folder (default: %(default)s)",
    )
    parser.add_argument(
        "--trusted-network",
        action="store_true",
        help="allow an http:// controller on another computer",
    )
    return parser
