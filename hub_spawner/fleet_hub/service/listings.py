"""Long tables of the fleet page: filtered, sorted, cut into pages, and exported.

How a table is shown stands in its address, so that it needs no script, and can be kept
or passed on.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from fleet_contracts.language import translated
from fleet_hub.accounts import cell
from fleet_hub.service.pages import PageHandler


Row = TypeVar("Row")
Value = str | float | datetime | None
LONGEST_QUERY: Final = 255
_DESCENDING: Final = "-"
_NAMED: Final = ":"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[Row]):
    """What one column is called, and what a row has in it."""

    key: str
    """Its name in addresses, in the filter and in what is exported."""
    value: Callable[[Row], Value]
    title: str = ""
    """Marked for translators; empty: the table does not show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A column's heading as it is shown: pressed, it sorts."""

    title: str
    link: str
    order: str
    """``ascending``, ``descending``, or empty: the table is not sorted by it."""

    @property
    def glyph(self) -> str:
        """The sign of the order."""
        return {"ascending": "▲", "descending": "▼"}.get(self.order, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[Row]):
    """One page of a table, and the ways to its other pages."""

    columns: tuple[Column[Row], ...]
    found: tuple[Row, ...]
    """All that the filter leaves, in order."""
    of: int
    """How many there are without the filter."""
    first: int
    size: int
    query: str
    sort: str

    @property
    def rows(self) -> tuple[Row, ...]:
        """Those of this page."""
        return self.found[self.first : self.first + self.size]

    @property
    def total(self) -> int:
        """How many the filter leaves."""
        return len(self.found)

    @property
    def is_long(self) -> bool:
        """Whether a filter helps, or is at work."""
        return self.of > 1 or bool(self.query)

    @property
    def keys(self) -> tuple[str, ...]:
        """What the filter knows by name."""
        return tuple(column.key for column in self.columns)

    def head(self, key: str) -> Head:
        """Return the heading of the column *key*."""
        column = next(column for column in self.columns if column.key == key)
        order = {key: "ascending", f"{_DESCENDING}{key}": "descending"}
        shown = order.get(self.sort, "")
        turned = f"{_DESCENDING}{key}" if shown == "ascending" else key
        return Head(
            title=translated(column.title), link=self.link(sort=turned), order=shown
        )

    def link(self, **changes: str | int) -> str:
        """Return the address of this table with *changes*; empty ones are left out."""
        said: dict[str, str | int] = {"q": self.query, "sort": self.sort, **changes}
        return "?" + urlencode({name: value for name, value in said.items() if value})

    @property
    def earlier(self) -> str | None:
        """Where the page before is."""
        start = max(self.first - self.size, 0)
        return self.link(**{"from": start}) if self.first else None

    @property
    def later(self) -> str | None:
        """Where the next page is."""
        start = self.first + self.size
        return self.link(**{"from": start}) if start < self.total else None

    def as_csv(self) -> str:
        """Return all that the filter leaves, for a spreadsheet."""
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.keys)
        for row in self.found:
            writer.writerow([cell(_plain(c.value(row))) for c in self.columns])
        return text.getvalue()

    def as_objects(self) -> list[dict[str, Any]]:
        """Return all that the filter leaves, for a program."""
        return [
            {column.key: _plain(column.value(row)) for column in self.columns}
            for row in self.found
        ]


class ListingPage(PageHandler):
    """A page with a table on it."""

    def listing(
        self,
        columns: Sequence[Column[Row]],
        rows: Iterable[Row],
        *,
        size: int,
    ) -> Listing[Row]:
        """Return *rows* as the address asks for them."""
        return arrange(
            columns,
            rows,
            query=self.get_query_argument("q", "")[:LONGEST_QUERY],
            sort=self.get_query_argument("sort", ""),
            first=max(int(self.number("from", 0)), 0),
            size=size,
        )

    def is_exported(self, listing: Listing[Any], name: str, as_of: datetime) -> bool:
        """Finish with the table alone where the address asks for that."""
        wanted = self.get_query_argument("format", "")
        if wanted == "csv":
            self.set_header("Content-Type", "text/csv; charset=utf-8")
            self.set_header("Content-Disposition", f'attachment; filename="{name}.csv"')
            self.finish(listing.as_csv())
        elif wanted == "json":
            self.answer(
                {
                    "schema": f"jupyterhub-fleet/table-{name}/v1",
                    "as_of": as_of.isoformat(),
                    "rows": listing.as_objects(),
                }
            )
        return wanted in {"csv", "json"}


def arrange(
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    *,
    query: str,
    sort: str,
    first: int,
    size: int,
) -> Listing[Row]:
    """Return the table of *rows*; an order that no column gives changes nothing."""
    everything = tuple(rows)
    by_key = {column.key: column for column in columns}
    if sort.removeprefix(_DESCENDING) not in by_key:
        sort = ""
    return Listing(
        columns=tuple(columns),
        found=_sorted(_filtered(everything, by_key, query), by_key, sort),
        of=len(everything),
        first=first,
        size=size,
        query=query,
        sort=sort,
    )


def _filtered(
    rows: tuple[Row, ...], columns: dict[str, Column[Row]], query: str
) -> tuple[Row, ...]:
    """Return the rows in which each word of *query* occurs.

    A word such as ``user:ada`` is looked for in that column alone.
    """
    words = [_meant(word, columns) for word in query.casefold().split()]
    return tuple(
        row
        for row in rows
        if all(
            any(word in _text(column.value(row)) for column in among)
            for word, among in words
        )
    )


def _meant(
    word: str, columns: dict[str, Column[Row]]
) -> tuple[str, tuple[Column[Row], ...]]:
    key, named, rest = word.partition(_NAMED)
    if named and key in columns:
        return rest, (columns[key],)
    return word, tuple(columns.values())


def _sorted(
    rows: tuple[Row, ...], columns: dict[str, Column[Row]], sort: str
) -> tuple[Row, ...]:
    """Return *rows* by a column; what has nothing there comes last in both orders."""
    if not sort:
        return rows
    value = columns[sort.removeprefix(_DESCENDING)].value
    known = [row for row in rows if value(row) not in {None, ""}]
    unknown = [row for row in rows if value(row) in {None, ""}]
    known.sort(key=lambda row: _rank(value(row)), reverse=sort[0] == _DESCENDING)
    return (*known, *unknown)


def _rank(value: Value) -> Any:
    return value.casefold() if isinstance(value, str) else value


def _text(value: Value) -> str:
    return "" if value is None else str(_plain(value)).casefold()


def _plain(value: Value) -> str | float | None:
    return value.isoformat() if isinstance(value, datetime) else value
