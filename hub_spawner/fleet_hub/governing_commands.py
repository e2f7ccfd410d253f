"""Commands on machines: enrolment, whom they serve, what they take, and the audit log."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final
from urllib.parse import quote, urlencode

from fleet_hub.asking_controller import Controller, Remote, ask, who
from fleet_hub.command_places import add_controller, controller_of
from fleet_hub.places import read_secret


Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse gives it no other name
_PLACEHOLDER: Final = "https://YOUR-HUB/services/fleet/"
_DEEDS: Final = {
    "drain": "let a machine take nothing new; what runs there runs on",
    "resume": "let a machine take work again",
    "rotate": "void a machine's token, and give a code for a new one",
    "revoke": "void a machine's token; what runs there runs on",
    "lost": "give back what a machine held that will not come back",
}
_RELATIONS: Final = ("owner", "member", "guest")


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add all of them to the command line."""
    enrol = commands.add_parser("enrol", help="make a code with which a machine joins")
    enrol.add_argument("name", help="the machine, named like a host")
    enrol.add_argument("--owner", required=True, help="the Hub user who owns it")
    enrol.add_argument("--provider", help="who supplies it (default: its owner)")
    enrol.add_argument(
        "--local", action="store_true", help="it is the Hub's own machine"
    )
    enrol.set_defaults(command=_enrol)
    for deed, what in _DEEDS.items():
        command = commands.add_parser(deed, help=what)
        command.add_argument("name", help="the machine")
        command.set_defaults(command=_deed, deed=deed, choice="")
        command.add_argument("--why", default="", help="a reason, for the audit log")
        if deed == "rotate":
            _add_url(command)
        add_controller(command)
    audience = commands.add_parser(
        "audience", help="say whom a machine may serve, beside its owner's word"
    )
    audience.add_argument("name", help="the machine")
    audience.add_argument("choice", choices=_RELATIONS, help="the farthest to serve")
    audience.set_defaults(command=_deed, deed="audience")
    members = commands.add_parser(
        "members",
        help="say who a machine's members are",
        description="Say who a machine's members are: whom it serves beside its owner "
        "where both its owner and an admin let it serve its members. Whoever was one "
        "and is not named is none any more.",
    )
    members.add_argument("name", help="the machine")
    members.add_argument(
        "choice", nargs="*", metavar="MEMBER", help="a Hub user, or a group as @GROUP"
    )
    members.set_defaults(command=_deed, deed="members")
    label = commands.add_parser(
        "label",
        help="say which labels a machine has, for classes to ask for",
        description="Say which labels a machine has, for classes to ask for. What its "
        "own configuration says is shown, and asked for by nobody. A label that is not "
        "named is taken away.",
    )
    label.add_argument("name", help="the machine")
    label.add_argument(
        "choice", nargs="*", metavar="NAME=VALUE", help="a label, such as room=b12"
    )
    label.set_defaults(command=_deed, deed="label")
    audit = commands.add_parser("audit", help="show who did what, newest first")
    audit.add_argument("target", nargs="?", default="", help="a machine or workload")
    audit.add_argument("--limit", type=int, default=100, help="how many entries")
    audit.add_argument("--json", action="store_true", help="print them as JSON")
    audit.set_defaults(command=_audit)
    _add_url(enrol)
    for command in (enrol, audience, members, label, audit):
        add_controller(command)


def _add_url(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--url", default="", help="the fleet service as the machine reaches it"
    )


def _enrol(arguments: argparse.Namespace) -> int:
    body = {
        "name": arguments.name,
        "owner": arguments.owner,
        "local": arguments.local,
        "provider": arguments.provider,
        "by": who(),
    }
    controller = controller_of(arguments)
    answer = ask(controller, "codes", body=json.dumps(body).encode())
    _show_command(answer, arguments.url or _as_we_do(controller, arguments))
    return 0


def _as_we_do(controller: Controller, arguments: argparse.Namespace) -> str:
    """Return how we reach the controller, where the machine does so as well."""
    if isinstance(controller, Remote):
        return controller.url
    return read_secret(controller.controller_address) if arguments.local else ""


def _deed(arguments: argparse.Namespace) -> int:
    choice = arguments.choice
    body = {
        "by": who(),
        "why": getattr(arguments, "why", ""),
        "choice": choice if isinstance(choice, str) else ",".join(choice),
    }
    controller = controller_of(arguments)
    answer = ask(
        controller,
        f"machines/{quote(arguments.name, safe='')}/{arguments.deed}",
        body=json.dumps(body).encode(),
        missing=f"there is no machine {arguments.name!r}",
    )
    sys.stdout.write(f"{arguments.name}: {answer['said']}\n")
    if "code" in answer:
        known = controller.url if isinstance(controller, Remote) else ""
        _show_command(answer, arguments.url or known)
    return 0


def _show_command(answer: dict[str, Any], url: str) -> None:
    where = url or answer["url"] or _PLACEHOLDER
    minutes = int(answer["seconds"] // 60)
    sys.stdout.write(
        f"Run this on the machine within {minutes} minutes; the code is valid once:\n\n"
        f"  fleet-agent enrol --controller {where} --code {answer['code']}\n\n"
    )
    if where == _PLACEHOLDER:
        sys.stdout.write(
            "YOUR-HUB stands for your Hub's address: nothing here knows it. Tell it with\n"
            "c.FleetService.public_url in jupyterhub_config.py, or with --url.\n\n"
        )


def _audit(arguments: argparse.Namespace) -> int:
    query = urlencode({"limit": arguments.limit, "target": arguments.target})
    entries = ask(controller_of(arguments), f"audit?{query}")["entries"]
    if arguments.json:
        sys.stdout.write(json.dumps(entries, indent=2) + "\n")
    else:
        from fleet_hub.audit_words import line  # noqa: PLC0415 - for this alone

        sys.stdout.writelines(f"{line(entry)}\n" for entry in entries)
    return 0
