"""The latest decisions: who got which machine, by which rule, after how long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from typing_extensions import override

from fleet_contracts.language import mark, translated
from fleet_contracts.telling import duration
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
