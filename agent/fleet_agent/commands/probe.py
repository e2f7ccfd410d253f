"""``fleet-agent probe``: show what this computer can do, or what a recorded one could."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fleet_agent.drivers.docker.sockets import engine_host
from fleet_agent.probes.detect import detect
from fleet_agent.probes.documents import answer_document, picture_document
from fleet_agent.probes.host.reading import visibility
from fleet_agent.probes.interpret import interpret
from fleet_agent.probes.prose import describe
from fleet_agent.probes.record import Recorder
from fleet_agent.probes.replay import (
    CaseError,
    case_folders,
    is_case,
    is_recording,
    load_case,
    load_settings,
)
from fleet_agent.probes.settings import DetectSettings, Environment
from fleet_contracts.capabilities import WorkerCapabilities
from fleet_contracts.workloads import DriverName


_USAGE_STATUS = 2


def main(argv: Sequence[str]) -> int:
    """Show the picture; return the exit status."""
    arguments = parser().parse_args(argv)
    try:
        if arguments.replay is not None:
            _print_json(_replay(arguments.replay))
        else:
            _live(arguments)
    except (CaseError, OSError) as error:
        sys.stderr.write(f"fleet-agent probe: {error}\n")
        return _USAGE_STATUS
    return 0


def _live(arguments: argparse.Namespace) -> None:
    settings = _settings(arguments)
    recorder = None
    if arguments.record is not None:
        recorder = Recorder(ask=settings.ask)
        settings = replace(settings, ask=recorder)
    picture = asyncio.run(detect(settings))
    if recorder is not None:
        count = recorder.write(
            arguments.record,
            settings=settings,
            context=_context(picture),
            visibility=visibility(os.environ),
        )
        sys.stderr.write(
            f"{count} answers are in {arguments.record}, without user names, serial "
            "numbers and addresses.\nRead them before you give them to anyone.\n"
        )
    if arguments.json:
        _print_json(picture_document(picture))
    else:
        sys.stdout.write(describe(picture))


def _replay(folder: Path) -> Any:
    if is_case(folder):
        return answer_document(interpret(load_case(folder)))
    if is_recording(folder):
        return picture_document(asyncio.run(detect(load_settings(folder))))
    if not folder.is_dir():
        raise CaseError(f"{folder} is not a folder")
    cases = case_folders(folder)
    if not cases:
        raise CaseError(f"{folder} holds no case: a case is a folder with meta.json")
    return {case.name: answer_document(interpret(load_case(case))) for case in cases}


def _context(picture: WorkerCapabilities) -> dict[str, Any]:
    """Return what decides where an output alone does not."""
    host = picture.host
    facts = {
        "os": host.os.value,
        "os_version": host.os_version.value,
        "apple_silicon": host.apple_silicon.value,
        "virtual_machine": host.virtual_machine.value,
        "cpu_brand": host.cpu_name.value,
        "container": host.container.value,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _settings(arguments: argparse.Namespace) -> DetectSettings:
    return DetectSettings(
        state_dir=str(arguments.state_dir),
        environments=tuple(arguments.environment),
        drivers=(DriverName.NATIVE, DriverName.DOCKER),
        torch=not arguments.no_torch,
        engine_host=_engine_host(),
    )


def _engine_host() -> str | None:
    """Return where an engine would be asked; None: nothing is there."""
    try:
        host = engine_host("", os.environ)
    except ValueError:
        return None
    socket = urlsplit(host)
    if socket.scheme == "unix" and not Path(socket.path).exists():
        return None
    return host


def _environment(text: str) -> Environment:
    ref, separator, interpreter = text.partition("=")
    if not separator or not ref or not interpreter:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PYTHON")
    return Environment(ref=ref, interpreter=interpreter)


def parser() -> argparse.ArgumentParser:
    """Return what the command line may hold."""
    found = argparse.ArgumentParser(
        prog="fleet-agent probe",
        description="Show what this computer can do, with the reason for every unknown.",
    )
    found.add_argument(
        "--json", action="store_true", help="print the picture as JSON, for programs"
    )
    found.add_argument(
        "--state-dir",
        type=Path,
        default=Path.home(),
        metavar="DIR",
        help="the folder whose disk counts; your home unless given",
    )
    found.add_argument(
        "--environment",
        type=_environment,
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="ask the packages and the torch of this interpreter; may be repeated",
    )
    found.add_argument(
        "--no-torch",
        action="store_true",
        help="do not start torch, which takes seconds",
    )
    either = found.add_mutually_exclusive_group()
    either.add_argument(
        "--record",
        type=Path,
        metavar="DIR",
        help="also keep what every tool answered, for a report",
    )
    either.add_argument(
        "--replay",
        type=Path,
        metavar="DIR",
        help="interpret a recorded case, a folder of cases or a recording instead",
    )
    return found
