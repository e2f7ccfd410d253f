"""What was held, for users, admins and the command line; as JSON or for spreadsheets."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tornado.web import HTTPError
from typing_extensions import override

from fleet_hub.accounts import UsageDocument, as_csv
from fleet_hub.controller.accounting import usage
from fleet_hub.periods import PeriodError, moment
from fleet_hub.service.base import FleetHandler, SpawnerHandler
from fleet_hub.service.pages import PageHandler
from fleet_hub.service.people import PersonHandler


MOST_ROWS: Final = 500
"""On the page; a spreadsheet gets them all."""


class TellsUsage(FleetHandler):
    """Reads a period from the query and answers with what was held in it."""

    def accounts(self, user: str | None) -> UsageDocument:
        """Return the accounts of the period, of *user* alone where one is named.

        Raises:
            HTTPError: 400; the query names no period.
        """
        since, until = self._moment("since"), self._moment("until")
        if since is not None and until is not None and until < since:
            raise HTTPError(400, reason="the period ends before it begins")
        return usage(self.core, since=since, until=until, user=user)

    def tell(self, user: str | None = None) -> None:
        """Finish with the accounts, of *user* alone where one is named."""
        document = self.accounts(user)
        if self.get_query_argument("format", "json") == "csv":
            self.set_header("Content-Type", "text/csv; charset=utf-8")
            self.set_header("Content-Disposition", 'attachment; filename="usage.csv"')
            self.finish(as_csv(document))
        else:
            self.answer(document)

    def _moment(self, name: str) -> datetime | None:
        text = self.get_query_argument(name, "")
        try:
            return moment(text, self.core.clock.now()) if text else None
        except PeriodError as error:
            raise HTTPError(400, reason=f"{name} is no time: {error}") from None


class UsageForOperator(SpawnerHandler, TellsUsage):
    """Everybody's accounts, from the Hub's own machine."""

    @override
    def get(self) -> None:
        """Answer."""
        self.tell()


class UsageForPerson(PersonHandler, TellsUsage):
    """The visitor's own accounts; everybody's for who sees all."""

    @override
    def get(self) -> None:
        """Answer."""
        self.tell(None if self.visitor.sees_all else self.visitor.name)


class UsagePage(PageHandler, TellsUsage):
    """The visitor's own use of the fleet; everybody's for who sees all."""

    @override
    def get(self) -> None:
        """Show a period; it needs no script."""
        document = self.accounts(None if self.visitor.sees_all else self.visitor.name)
        self.render_page(
            "usage.html",
            document=document,
            accounts=document.accounts[:MOST_ROWS],
            left_out=max(len(document.accounts) - MOST_ROWS, 0),
            since=self.get_query_argument("since", "")[:40],
            until=self.get_query_argument("until", "")[:40],
        )
