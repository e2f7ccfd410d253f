"""``fleet-agent enrol``: join a fleet, and keep what this machine needs for that."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fleet_agent.addresses import service_url
from fleet_agent.errors import AgentError
from fleet_agent.joining import Joining, address_towards, join
from fleet_agent.state_folder import (
    StateFolder,
    add_state_option,
    read_token,
    write_private,
)
from fleet_contracts.enrolment import Enrolled
from fleet_contracts.sentences import remedy, sentence


_LONGEST_CODE = 200


def main(argv: Sequence[str]) -> int:
    """Write the enrolment into the state folder; return the exit status."""
    arguments = parser().parse_args(argv)
    try:
        enrolled = _enrol(arguments)
    except AgentError as error:
        sys.stderr.write(f"fleet-agent enrol: {error}\n")
        return error.exit_code
    name = f" as {enrolled.machine}, owned by {enrolled.owner}" if enrolled else ""
    sys.stdout.write(
        f"This computer is enrolled with {arguments.controller}{name}.\n"
        f"Start it with: fleet-agent run --state-dir {arguments.state_dir}\n"
    )
    if enrolled is None or enrolled.explanation is None:
        return 0
    why = enrolled.explanation
    sys.stderr.write(
        f"fleet-agent enrol: it gets no work yet. {sentence(why)} "
        f"{remedy(why.reason)}\n"
    )
    return os.EX_UNAVAILABLE


def _enrol(arguments: argparse.Namespace) -> Enrolled | None:
    """Return what the controller told; None: a token was brought along."""
    service = service_url(
        arguments.controller, trusted_network=arguments.trusted_network
    )
    folder = StateFolder(arguments.state_dir)
    folder.make()
    # Before the code is used up: what it buys must have a place.
    with folder.lock():
        told: dict[str, Any] = {
            "controller": service,
            "owner": arguments.owner,
            "trusted_network": arguments.trusted_network,
        }
        if arguments.token_file is not None:
            enrolled, token = None, read_token(arguments.token_file)
        else:
            joining = _joining(arguments, service)
            enrolled = asyncio.run(join(joining))
            token = enrolled.token
            told |= {
                "owner": enrolled.owner,
                "machine": enrolled.machine,
                "bind_address": joining.bind,
                "advertise_address": joining.advertise,
            }
            if joining.ca_file is not None:
                told["ca_file"] = joining.ca_file
        # Wherever this ends, a token that is there belongs to what stands beside it:
        # a new one must not go to an earlier controller, nor serve an earlier owner.
        folder.token.unlink(missing_ok=True)
        write_private(folder.enrolment, json.dumps(told, indent=2) + "\n")
        write_private(folder.token, f"{token}\n")
        folder.ended.unlink(missing_ok=True)
    return enrolled


def _joining(arguments: argparse.Namespace, service: str) -> Joining:
    code = arguments.code
    if code == "-":
        code = sys.stdin.readline(_LONGEST_CODE)
    advertise = arguments.advertise_address or address_towards(service)
    return Joining(
        service=service,
        code=code.strip(),
        bind=arguments.bind_address or advertise,
        advertise=advertise,
        ca_file=str(arguments.ca_file.absolute()) if arguments.ca_file else None,
    )


def parser() -> argparse.ArgumentParser:
    """Return what the command line may hold."""
    found = argparse.ArgumentParser(
        prog="fleet-agent enrol", description="Tell this computer whose fleet it joins."
    )
    found.add_argument(
        "--controller",
        required=True,
        metavar="URL",
        help="the fleet service, such as https://hub.example.org/services/fleet/",
    )
    proof = found.add_mutually_exclusive_group(required=True)
    proof.add_argument(
        "--code",
        metavar="CODE",
        help="the code from the fleet page, valid once; - reads it from the terminal",
    )
    proof.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="a file that only you can read, with the machine's token",
    )
    found.add_argument(
        "--advertise-address",
        default="",
        metavar="ADDRESS",
        help="how the Hub reaches this computer (default: as this one reaches the Hub)",
    )
    found.add_argument(
        "--bind-address",
        default="",
        metavar="ADDRESS",
        help="where notebooks listen (default: the address above)",
    )
    found.add_argument(
        "--ca-file",
        type=Path,
        metavar="FILE",
        help="certificates to trust for the controller (default: the system's)",
    )
    found.add_argument(
        "--owner",
        default="",
        metavar="NAME",
        help="with --token-file: your name at the Hub; only you may run programs here "
        "without a container",
    )
    add_state_option(found)
    found.add_argument(
        "--trusted-network",
        action="store_true",
        help="allow an http:// controller on another computer",
    )
    return found
