"""``jupyter-fleet usage``: who has held how much, as a table or for a spreadsheet."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from fleet_hub.accounts import Account, UsageDocument, as_csv
from fleet_hub.asking_controller import ask_raw
from fleet_hub.command_places import controller_of
from fleet_hub.errors import ConfigurationError
from fleet_hub.periods import PeriodError, moment, month, month_before
from fleet_hub.terminal import Column, Style, table, width, wrapped


_HOUR: Final = 3600.0
_COLUMNS: Final = (
    Column(title="User", is_prose=True),
    Column(title="Class", is_prose=True),
    Column(title="Allocations", is_number=True),
    Column(title="Hours", is_number=True),
    Column(title="Device-hours", is_number=True),
    Column(title="Core-hours", is_number=True),
    Column(title="GiB-hours", is_number=True),
)


def show_usage(arguments: argparse.Namespace) -> int:
    """Print what was held in the period that was asked for."""
    since, until = _period(arguments)
    query = {"since": since, "until": until}
    asked = urlencode({name: at.isoformat() for name, at in query.items() if at})
    told = ask_raw(controller_of(arguments), f"usage?{asked}")
    document = UsageDocument.model_validate_json(told)
    if arguments.json:
        content = document.model_dump(mode="json", by_alias=True)
        sys.stdout.write(json.dumps(content, indent=2) + "\n")
    elif arguments.csv:
        sys.stdout.write(as_csv(document))
    else:
        sys.stdout.write(describe(document, Style.of()))
    return 0


def describe(document: UsageDocument, style: Style) -> str:
    """Return the accounts as a table with its period and its sum."""
    heading = style.faint(wrapped(_heading(document), width()))
    if not document.accounts:
        return f"{heading}\nNothing was held.\n"
    accounts = sorted(document.accounts, key=lambda one: (one.user, one.class_name))
    rows = [_row(one.user, one.class_name, [one]) for one in accounts]
    if len(accounts) > 1:
        rows.append(_row("all", "", accounts))
    return f"{heading}\n{table(_COLUMNS, rows, style)}\n"


def _row(user: str, class_name: str, accounts: list[Account]) -> tuple[str, ...]:
    return (
        user,
        class_name,
        str(sum(one.allocations for one in accounts)),
        _hours(sum(one.seconds for one in accounts)),
        _hours(sum(one.device_seconds for one in accounts)),
        _hours(sum(one.core_seconds for one in accounts)),
        _hours(sum(one.memory_gib_seconds for one in accounts)),
    )


def _hours(seconds: float) -> str:
    return f"{seconds / _HOUR:,.2f}"


def _heading(document: UsageDocument) -> str:
    since = "the beginning" if document.since is None else _minute(document.since)
    return f"Held from {since} to {_minute(document.until)}, UTC"


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _period(arguments: argparse.Namespace) -> tuple[datetime | None, datetime | None]:
    """Return the period that was asked for; by default the month so far.

    Raises:
        ConfigurationError: it is none.
    """
    now = datetime.now(UTC)
    try:
        if arguments.month is not None:
            if arguments.since is not None or arguments.until is not None:
                raise ConfigurationError("name --month, or --since and --until")
            return month(arguments.month)
        until = None if arguments.until is None else moment(arguments.until, now)
        if arguments.since == "beginning":
            return None, until
        if arguments.since is None:
            return month_before(until or now), until
        since = moment(arguments.since, now)
    except PeriodError as error:
        raise ConfigurationError(str(error)) from error
    if until is not None and until < since:
        raise ConfigurationError("the period ends before it begins")
    return since, until
