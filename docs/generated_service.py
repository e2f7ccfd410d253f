"""The pages of the reference on the command line and on metrics, from the code."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from fleet_hub.cli import parser
from fleet_hub.service.gauges import PREFIX
from fleet_hub.service.metrics import Metrics


def command_line_page() -> str:
    """Return the page on ``jupyter-fleet``."""
    lines = [
        "# jupyter-fleet",
        "",
        "Generated from the command's own parsers.",
        "",
        "It runs on the Hub's machine, as the user whose data folder it is.",
        "Commands that ask the running controller find its address and its secret there.",
        "With `--service` they ask from anywhere, as the person whose token of the Hub they show; see [](../how-to/show-the-fleet-to-somebody.md).",
        "Its exit status is 0 on success, 1 where something is wrong, and 2 where the command line itself is.",
        "Tables fit the terminal: where it is too narrow each row becomes a short list.",
        "Nothing but words and signs carries meaning; `NO_COLOR` turns weight off as well.",
        "",
    ]
    for command, words in _commands(parser(), ()):
        lines += command_section(command, words)
    return "\n".join(lines)


def metrics_page() -> str:
    """Return the table of metrics."""
    core: Any = SimpleNamespace(observers=[])
    families = sorted(Metrics(core).families)
    lines = [
        "# Metrics",
        "",
        "Generated from the controller's own metrics.",
        "",
        "Prometheus reads them at `/services/fleet/metrics`.",
        "They are guarded as the Hub's own are: a Hub token with the scope `read:metrics` is needed, of a person or of a service, and `c.JupyterHub.authenticate_prometheus = False`, set before `configure(c)`, opens both.",
        "An admin may also read them in a browser.",
        "",
        "```python",
        'c.JupyterHub.services.append({"name": "prometheus", "api_token": token})',
        "c.JupyterHub.load_roles.append(",
        '    {"name": "metrics", "scopes": ["read:metrics"], "services": ["prometheus"]}',
        ")",
        "```",
        "",
        "No label names a person, a workload, a machine or a ref.",
        "`class` is a class of the catalog, `reason` a [reason code](reasons.md), `state` a [state](states.md).",
        "Counters begin at 0 with the controller's process; what must not is in `jupyter-fleet usage`.",
        "",
        "| Metric | Type | Labels | What it tells |",
        "|---|---|---|---|",
    ]
    for family in families:
        suffix = "_total" if family.kind == "counter" else ""
        labels = ", ".join(f"`{label}`" for label in family.labels) or "—"
        lines.append(
            f"| `{PREFIX}_{family.name}{suffix}` | {family.kind} | {labels} | {family.text} |"
        )
    lines += [
        f"| `{PREFIX}_info` | info | `version` | The version that runs. |",
        "",
        "The usual `process_` metrics of the controller are there too.",
        "",
        "## What to watch",
        "",
        f"- `{PREFIX}_waiting_oldest_seconds`: somebody waits longer than you promise.",
        f"- `{PREFIX}_broken_promises_total`: a promised time moved later; the cause says why.",
        f"- `{PREFIX}_likely_starts_total`: half should be `early`, at most a tenth `later`.",
        f"- `{PREFIX}_sweep_rescues_total`: must stay 0; report it otherwise.",
        f'- `{PREFIX}_machines{{state="offline"}}`: machines that are away.',
        "",
    ]
    return "\n".join(lines)


def _commands(
    found: argparse.ArgumentParser, words: tuple[str, ...], text: str = ""
) -> Iterator[tuple[argparse.ArgumentParser, tuple[str, str]]]:
    """Yield each command that does something, with its words and what it is for."""
    nested = [
        action
        for action in found._actions  # noqa: SLF001 - argparse has no other way
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - as above
    ]
    if not nested:
        yield found, (" ".join(("jupyter-fleet", *words)), found.description or text)
        return
    for action in nested:
        helps = {item.dest: item.help or "" for item in action._get_subactions()}  # noqa: SLF001 - as above
        for name, child in action.choices.items():
            yield from _commands(child, (*words, name), helps.get(name, ""))


def command_section(
    found: argparse.ArgumentParser, words: tuple[str, str]
) -> Iterator[str]:
    """Yield the lines on one command: what it is for, and its arguments."""
    name, text = words
    actions = [
        action
        for action in found._actions  # noqa: SLF001 - argparse has no other way
        if not isinstance(action, argparse._HelpAction)  # noqa: SLF001 - as above
    ]
    places = [action for action in actions if not action.option_strings]
    usage = [name, *(_place(action) for action in places)]
    yield f"## {name}"
    yield ""
    yield _sentence(text)
    yield ""
    yield "```"
    yield " ".join([*usage, "[OPTION …]"] if len(actions) > len(places) else usage)
    yield "```"
    yield ""
    yield "| Argument | What it means |"
    yield "|---|---|"
    for action in actions:
        help_ = (action.help or "").replace("|", "\\|")
        yield f"| {_argument(action)} | {help_} |"
    yield ""


def _argument(action: argparse.Action) -> str:
    value = _value(action)
    if not action.option_strings:
        return f"`{value}`"
    takes = action.nargs != 0
    return f"`{', '.join(action.option_strings)}{f' {value}' if takes else ''}`"


def _place(action: argparse.Action) -> str:
    value = _value(action)
    return f"[{value}]" if action.nargs in {"?", "*"} else value


def _value(action: argparse.Action) -> str:
    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.upper().replace("_", "-")


def _sentence(text: str) -> str:
    """Return *text* as sentences, one a line."""
    whole = " ".join(text.split())
    whole = f"{whole[:1].upper()}{whole[1:]}".rstrip(".") + "."
    return whole.replace(".  ", ".\n").replace(". ", ".\n")
