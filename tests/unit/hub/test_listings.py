"""Long tables: what the address filters, sorts, cuts into pages and exports."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import pytest

from fleet_hub.service.listings import Column, Listing, arrange


@dataclass(frozen=True)
class Pet:
    """Something to list."""

    name: str
    legs: float | None = None
    born: datetime | None = None


COLUMNS: tuple[Column[Pet], ...] = (
    Column(key="name", title="Name", value=lambda pet: pet.name),
    Column(key="legs", title="Legs", value=lambda pet: pet.legs),
    Column(key="born", value=lambda pet: pet.born),
)
PETS = (
    Pet("Rex", 4, datetime(2026, 1, 2, tzinfo=UTC)),
    Pet("adder"),
    Pet("Bird", 2),
    Pet("bee", 6),
)


def listing(rows: tuple[Pet, ...] = PETS, **asked: Any) -> Listing[Pet]:
    """Return the pets as an address asks for them."""
    given: dict[str, Any] = {"query": "", "sort": "", "first": 0, "size": 10}
    return arrange(COLUMNS, rows, **(given | asked))


def names(**asked: Any) -> list[str]:
    """Return the names of the page's rows."""
    return [pet.name for pet in listing(**asked).rows]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["Rex", "adder", "Bird", "bee"]),
        ("B", ["Bird", "bee"]),
        ("b 6", ["bee"]),
        ("legs:4", ["Rex"]),
        ("name:4", []),
        ("born:2026-01", ["Rex"]),
        ("unheard:of", []),
        ("  ", ["Rex", "adder", "Bird", "bee"]),
        ("name: 2", ["Rex", "Bird"]),
    ],
)
def test_every_word_has_to_occur_in_any_column_or_in_the_one_it_names(
    query: str, found: list[str]
) -> None:
    """Capitals do not count."""
    assert names(query=query) == found


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("name", ["adder", "bee", "Bird", "Rex"]),
        ("-name", ["Rex", "Bird", "bee", "adder"]),
        ("legs", ["Bird", "Rex", "bee", "adder"]),
        ("-legs", ["bee", "Rex", "Bird", "adder"]),
        ("wings", ["Rex", "adder", "Bird", "bee"]),
        ("-", ["Rex", "adder", "Bird", "bee"]),
    ],
)
def test_what_is_unknown_comes_last_in_both_orders(sort: str, order: list[str]) -> None:
    """Capitals do not count; a column that is not there changes nothing."""
    assert names(sort=sort) == order


def test_pages_keep_the_filter_and_the_order() -> None:
    """Each page's address is whole; before the first and after the last is nothing."""
    first = listing(query="e", sort="-name", size=2)
    assert [pet.name for pet in first.rows] == ["Rex", "bee"]
    assert (first.total, first.of, first.earlier) == (3, 4, None)
    assert first.later is not None
    asked = parse_qs(first.later.removeprefix("?"))
    assert asked == {"q": ["e"], "sort": ["-name"], "from": ["2"]}
    last = listing(query="e", sort="-name", size=2, first=2)
    assert [pet.name for pet in last.rows] == ["adder"]
    assert last.later is None
    assert last.earlier == "?q=e&sort=-name"
    assert listing(first=10**15).rows == ()


def test_a_heading_says_the_order_and_turns_it() -> None:
    """A new order begins at the first page."""
    unsorted = listing(first=2).head("name")
    assert (unsorted.order, unsorted.glyph, unsorted.link) == ("", "", "?sort=name")
    up = listing(sort="name").head("name")
    assert (up.order, up.link) == ("ascending", "?sort=-name")
    down = listing(sort="-name").head("name")
    assert (down.order, down.link) == ("descending", "?sort=name")
    assert up.glyph != down.glyph


def test_what_is_exported_is_all_that_the_filter_leaves_and_no_formula() -> None:
    """In the order that is shown, beyond the page."""
    pets = (*PETS, Pet('=HYPERLINK("http://x")', 1))
    shown = listing(pets, sort="legs", size=1)
    rows = list(csv.DictReader(io.StringIO(shown.as_csv())))
    assert [row["legs"] for row in rows] == ["1", "2", "4", "6", ""]
    assert rows[0]["name"] == '\'=HYPERLINK("http://x")'
    assert rows[2]["born"] == "2026-01-02T00:00:00+00:00"
    objects = shown.as_objects()
    assert objects[0] == {"name": '=HYPERLINK("http://x")', "legs": 1, "born": None}
    assert len(objects) == 5


def test_a_table_of_one_row_needs_no_filter() -> None:
    """But one that a filter has emptied does, to get out of it."""
    assert not listing(PETS[:1]).is_long
    assert listing(PETS[:1], query="nothing").is_long
    assert listing().is_long
