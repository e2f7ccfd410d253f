"""Whose turn it was, by which rule, after how long; and who is to come sooner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.language import mark, translated
from fleet_contracts.telling import duration
from fleet_hub.controller import moving
from fleet_hub.controller.audit import LONGEST_WHY
from fleet_hub.controller.moving import Place
from fleet_hub.controller.turns import Turn
from fleet_hub.scheduling.decisions import Rule
from fleet_hub.service.admin_page import AdminPage
from fleet_hub.service.listings import Column


PAGE_SIZE: Final = 100
FEW: Final = 8
"""How many the page of the line shows."""
RULES: Final = {
    Rule.ALONE: mark("nobody else waited"),
    Rule.BACKFILL: mark("before others, none of whom starts later for it"),
    Rule.MOVED: mark("put first by an admin"),
    Rule.PRIORITY: mark("priority"),
    Rule.YIELDED: mark("the next one was rejected again and again"),
    Rule.SHARE: mark("fair share"),
    Rule.AGE: mark("asked first"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """One decision, in words."""

    turn: Turn

    @property
    def at(self) -> datetime:
        """When."""
        return datetime.fromtimestamp(self.turn.decided.at, UTC)

    @property
    def rule(self) -> str:
        """By which rule."""
        return translated(RULES[self.turn.decided.rule])

    @property
    def waited(self) -> str:
        """How long it had waited."""
        return duration(self.turn.decided.waited)


_DECISIONS: Final[tuple[Column[TurnRow], ...]] = (
    Column(key="at", title=mark("When"), value=lambda row: row.at),
    Column(key="user", title=mark("User"), value=lambda row: row.turn.user),
    Column(key="group", value=lambda row: " ".join(row.turn.groups)),
    Column(key="server", value=lambda row: row.turn.server),
    Column(key="profile", title=mark("Asked for"), value=lambda row: row.turn.profile),
    Column(key="class", value=lambda row: row.turn.decided.class_name),
    Column(
        key="machine", title=mark("Machine"), value=lambda row: row.turn.decided.machine
    ),
    Column(key="rule", value=lambda row: row.turn.decided.rule.value),
    Column(key="why", title=mark("Rule"), value=lambda row: row.rule),
    Column(
        key="waited", title=mark("Waited"), value=lambda row: row.turn.decided.waited
    ),
    Column(key="workload", value=lambda row: row.turn.workload),
)


def turn_rows(turns: Iterable[Turn]) -> list[TurnRow]:
    """Return *turns* as rows."""
    return [TurnRow(turn=turn) for turn in turns]


PLACES: Final = (
    (Place.FIRST, mark("first: before everybody else")),
    (Place.USUAL, mark("usual: by priority, fair share and age")),
    (Place.LAST, mark("last: behind everybody else")),
)


def places() -> list[tuple[str, str]]:
    """Return the places that an admin may give, with their words."""
    return [(place.value, translated(text)) for place, text in PLACES]


class MoveHandler(AdminPage):
    """Giving somebody another place in the line."""

    @override
    def post(self, workload: str) -> None:
        """Move, and show the line."""
        self.require_admin()
        record = self.seen(workload)
        try:
            place = Place(self.form_text("place"))
        except ValueError:
            raise HTTPError(400, reason="place is none of the line") from None
        by = self.visitor.actor(why=self.form_text("why", LONGEST_WHY))
        moving.move(self.core, record, place, by=by)
        self.redirect(f"{self.context.prefix}line", status=HTTPStatus.SEE_OTHER)


class DecisionsHandler(AdminPage):
    """The latest decisions, newest first."""

    @override
    def get(self) -> None:
        """Show a page of them."""
        now = self.core.clock.now()
        rows = turn_rows(self.core.model.turns.latest())
        listing = self.listing(_DECISIONS, rows, size=PAGE_SIZE)
        if self.is_exported(listing, "decisions", now):
            return
        self.render_page(
            "decisions.html",
            as_of=now,
            listing=listing,
            xsrf_token=self.xsrf_token.decode(),
            here="line",
        )
