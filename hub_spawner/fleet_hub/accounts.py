"""The document of what was held: for programs, spreadsheets and the command line."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Final

from pydantic import AwareDatetime, Field

from fleet_contracts.base import Message


SCHEMA: Final = "jupyterhub-fleet/usage/v1"
_DANGEROUS: Final = ("=", "+", "-", "@", "\t", "\r")


class Account(Message):
    """What one user held as one class, from ``placed`` to released."""

    user: str
    user_id: int
    class_name: str = Field(alias="class")
    allocations: int
    """How many were held in the period, if only in part."""
    seconds: float
    """Allocation-seconds: two at a time count twice."""
    device_seconds: float
    core_seconds: float
    memory_gib_seconds: float


class UsageDocument(Message):
    """All accounts of one period."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    as_of: AwareDatetime
    since: AwareDatetime | None = None
    """None: from the beginning."""
    until: AwareDatetime
    accounts: tuple[Account, ...] = ()


def as_csv(document: UsageDocument) -> str:
    """Return the accounts for a spreadsheet, with a heading."""
    fields = [field.alias or name for name, field in Account.model_fields.items()]
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["since", "until", *fields])
    since = "" if document.since is None else document.since.isoformat()
    for account in document.accounts:
        values = account.model_dump(by_alias=True)
        row = [cell(values[name]) for name in fields]
        writer.writerow([since, document.until.isoformat(), *row])
    return text.getvalue()


def cell(value: str | float | None) -> str:
    """Return *value* as a cell that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_DANGEROUS) else value
    return f"{value:.6f}".rstrip("0").rstrip(".")
