"""``jupyter-fleet explain``, ``queue`` and ``export``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote, urlencode

from fleet_contracts.language import speaking
from fleet_hub.command_places import add_controller, controller_of
from fleet_hub.errors import ConfigurationError


if TYPE_CHECKING:
    from pydantic import BaseModel

    from fleet_hub.explaining.document import Question
    from fleet_hub.explaining.view import View

    Found = TypeVar("Found")

_PLACES: Final = {
    "first": "first in the line, within the quotas",
    "usual": "in the line by priority, fair share and age",
    "last": "last in the line",
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to the command line."""
    explain = commands.add_parser(
        "explain",
        help="say why something waits, or whether somebody could start a profile now",
        description="Say why a workload waits, or whether a user could start a profile "
        "now, down to each machine, with the smallest change that would help.",
    )
    explain.add_argument("workload", nargs="?", help="a workload, such as queue shows")
    explain.add_argument("--profile", help="ask about this profile instead")
    explain.add_argument(
        "--class",
        dest="class_name",
        metavar="CLASS",
        help="its class (default: its first)",
    )
    explain.add_argument("--user", help="who would start it")
    explain.add_argument(
        "--group",
        action="append",
        dest="groups",
        metavar="GROUP",
        help="a group of the user; may be repeated (default: as last seen)",
    )
    explain.add_argument(
        "--server",
        help="the server that would be started, by name ('' is the default server): "
        "it goes back to its files",
    )
    explain.add_argument(
        "--page",
        type=int,
        default=1,
        help="which forty of the machines to show, the nearest first (default: 1)",
    )
    _add_common(explain)
    explain.set_defaults(command=_explain)
    queue = commands.add_parser("queue", help="show who waits, in which order, and why")
    _add_common(queue)
    queue.set_defaults(command=_queue)
    _add_move(queue)
    export = commands.add_parser(
        "export",
        help="write the whole state as JSON, without refs and tokens",
        description="Write the whole state as JSON, from which explain and queue "
        "answer elsewhere.  Refs are replaced by stand-ins, and no token or "
        "environment is in it; names of users and machines are.",
    )
    export.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="the file to write (default: standard output)",
    )
    add_controller(export)
    export.set_defaults(command=_export)


def _add_move(queue: argparse.ArgumentParser) -> None:
    actions = queue.add_subparsers(metavar="ACTION")
    move = actions.add_parser("move", help="give somebody another place in the line")
    move.add_argument("workload", help="a workload, such as queue shows")
    move.add_argument(
        "place",
        choices=_PLACES,
        help="before everybody else, by priority, fair share and age, or behind",
    )
    move.add_argument("--why", default="", help="a reason, for the audit log")
    add_controller(move)
    move.set_defaults(command=_move)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="answer from an exported state instead of the running controller",
    )
    command.add_argument("--json", action="store_true", help="print JSON, for programs")
    add_controller(command)


def _explain(arguments: argparse.Namespace) -> int:
    from fleet_hub.explaining.document import Answer  # noqa: PLC0415 - for this alone
    from fleet_hub.explaining.prose import describe  # noqa: PLC0415 - as above
    from fleet_hub.terminal import Style  # noqa: PLC0415 - as above

    question = _question(arguments)
    if arguments.state is not None:
        from fleet_hub.explaining.answers import answer  # noqa: PLC0415 - an engine

        found = _offline(arguments.state, lambda view: answer(view, question))
    else:
        told = _ask(arguments, f"explain?{_query(question)}")
        found = Answer.model_validate_json(told)
    _print(found, describe(found, Style.of()), as_json=arguments.json)
    return 0


def _queue(arguments: argparse.Namespace) -> int:
    from fleet_hub.explaining.document import (  # noqa: PLC0415 - for this alone
        LineDocument,
    )
    from fleet_hub.explaining.prose import describe_line  # noqa: PLC0415 - as above
    from fleet_hub.terminal import Style  # noqa: PLC0415 - as above

    if arguments.state is not None:
        from fleet_hub.explaining.answers import line  # noqa: PLC0415 - an engine

        found = _offline(arguments.state, line)
    else:
        found = LineDocument.model_validate_json(_ask(arguments, "queue"))
    _print(found, describe_line(found, Style.of()), as_json=arguments.json)
    return 0


def _move(arguments: argparse.Namespace) -> int:
    from fleet_hub.asking_controller import ask, who  # noqa: PLC0415 - for this alone

    body = {"place": arguments.place, "why": arguments.why, "by": who()}
    answer = ask(
        controller_of(arguments),
        f"workloads/{quote(arguments.workload, safe='')}/move",
        body=json.dumps(body).encode(),
        missing=f"there is no workload {arguments.workload!r}",
    )
    said = _PLACES[answer["place"]]
    sys.stdout.write(f"{answer['workload']}: {said}\n")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from fleet_hub.places import write_private  # noqa: PLC0415 - for this alone

    content = json.dumps(json.loads(_ask(arguments, "export")), indent=2) + "\n"
    if arguments.output is None:
        sys.stdout.write(content)
        return 0
    try:
        write_private(arguments.output.absolute(), content)
    except OSError as error:
        raise ConfigurationError(
            f"{arguments.output} cannot be written: {error.strerror}"
        ) from error
    sys.stderr.write(f"{arguments.output}: the state, without refs and tokens.\n")
    return 0


def _question(arguments: argparse.Namespace) -> Question:
    """Return what the arguments ask.

    Raises:
        ConfigurationError: they ask nothing, or two things.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - for this alone

    from fleet_hub.explaining.document import Question  # noqa: PLC0415 - as above

    if (arguments.workload is None) == (arguments.profile is None):
        raise ConfigurationError(
            "name a workload (see jupyter-fleet queue), or --profile and --user"
        )
    if arguments.profile is not None and not arguments.user:
        raise ConfigurationError("say with --user who would start it")
    try:
        return Question.model_validate(
            {
                "workload": arguments.workload,
                "profile": arguments.profile,
                "class": arguments.class_name,
                "user": arguments.user,
                "groups": arguments.groups,
                "server": arguments.server,
                "page": arguments.page,
            }
        )
    except ValidationError as error:
        wrong = {str(fault["loc"][0]): fault["input"] for fault in error.errors()}
        told = ", ".join(f"{name} {str(value)!r:.80}" for name, value in wrong.items())
        named = wrong.keys() & {"profile", "class"}
        hint = "; profiles and classes have names such as torch-gpu" if named else ""
        raise ConfigurationError(f"not understood: {told}{hint}") from None


def _query(question: Question) -> str:
    fields = question.model_dump(by_alias=True, exclude_none=True)
    groups = fields.pop("groups", ())
    return urlencode([*fields.items(), *(("group", group) for group in groups)])


def _offline(path: Path, ask: Callable[[View], Found]) -> Found:
    """Return what *ask* finds out in the exported state in *path*.

    Raises:
        ConfigurationError: there is no such state, or nothing can be found out in it.
    """
    from fleet_hub.explaining.answers import (  # noqa: PLC0415 - an engine
        UnknownSubjectError,
    )

    try:
        # Whoever asks here is not the one who waits.
        with speaking(of_another=True):
            return ask(_view(path))
    except UnknownSubjectError as error:
        raise ConfigurationError(str(error)) from error
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # What the controller writes can be answered from: this was edited.
        raise ConfigurationError(
            f"{path}: no fleet is ever in this state: {str(error).splitlines()[0]}"
        ) from error


def _view(path: Path) -> View:
    from fleet_hub.explaining.state import StateError, load  # noqa: PLC0415 - as above
    from fleet_hub.explaining.view import view_of  # noqa: PLC0415 - as above

    try:
        state = load(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except StateError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    this = version("jupyterhub-fleet")
    if state.version != this:
        sys.stderr.write(
            f"{path} was written by version {state.version}, and this is {this}: it "
            "may decide otherwise.\n"
        )
    return view_of(state)


def _ask(arguments: argparse.Namespace, path: str) -> bytes:
    from fleet_hub.asking_controller import ask_raw  # noqa: PLC0415 - for this alone

    return ask_raw(controller_of(arguments), path)


def _print(document: BaseModel, prose: str, *, as_json: bool) -> None:
    if as_json:
        # ASCII alone: a machine's word must not reach a terminal as it is.
        content = document.model_dump(mode="json", by_alias=True)
        sys.stdout.write(json.dumps(content, indent=2) + "\n")
    else:
        sys.stdout.write(prose)
