"""The page of the reference on the agent: its commands and its settings, from the code."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from generated_service import command_section

from fleet_agent.commands import drain, enrol, install, probe
from fleet_agent.settings import AgentSettings


def agent_page() -> str:
    """Return the page on ``fleet-agent``."""
    lines = [
        "# fleet-agent",
        "",
        "Generated from the command's own parsers and settings.",
        "",
        "It runs on the machine that is lent, as the user who lends it; on Linux it may be root.",
        "Its own folder is `~/.local/share/jupyterhub-fleet/agent`, root's is `/var/lib/jupyterhub-fleet/agent`; every command takes another one with `--state-dir`.",
        "",
        "## fleet-agent run",
        "",
        "Lend this computer to the fleet, until it is told to end.",
        "Notebooks that it started run on when it ends, and its next start finds them.",
        "",
        "Each setting is an option, `--FleetAgent.NAME=VALUE`, and a key of the file that `--config` names:",
        "",
        "```json",
        '{"FleetAgent": {"hours": "mon-fri 18:00-08:00, sat-sun 00:00-24:00", "max_memory": "8G"}}',
        "```",
        "",
        "| Setting | Default | What it means |",
        "|---|---|---|",
        *_settings(),
        "",
    ]
    for name, parser in (
        ("enrol", enrol.parser()),
        ("probe", probe.parser()),
        ("install", install.parser()),
        ("drain", drain.parser("drain")),
        ("resume", drain.parser("resume")),
    ):
        _without_defaults(parser)
        lines += command_section(
            parser, (f"fleet-agent {name}", parser.description or "")
        )
    lines += [
        "## fleet-agent doctor",
        "",
        "Find out why this computer takes no work, and what would mend it.",
        "Nothing is changed.",
        "It takes the options of `fleet-agent run`, and `--json`; it ends with 1 when something keeps the computer from taking work.",
        "",
    ]
    return "\n".join(lines)


def _settings() -> Iterator[str]:
    traits = AgentSettings.class_own_traits(config=True)
    for name, trait in sorted(traits.items()):
        # The state folder's default is this machine's.
        default = "see above" if name == "state_dir" else trait.default_value_repr()
        text = " ".join(trait.help.split()).replace("|", "\\|")
        yield f"| `{name}` | `{default}` | {text} |"


def _without_defaults(parser: argparse.ArgumentParser) -> None:
    """Take out what differs from machine to machine."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way
        if action.help:
            action.help = re.sub(r" \(default: %\(default\)s\)", "", action.help)
