"""The first page: one's own servers, and for admins everybody's."""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from fleet_contracts.allocations import ENDED, State
from fleet_contracts.language import speaking
from fleet_hub.controller.records import Workload
from fleet_hub.controller.words import headline_of
from fleet_hub.service.listings import Column, ListingPage


PAGE_SIZE: Final = 50
_SERVERS: Final[tuple[Column[Workload], ...]] = (
    Column(key="user", value=lambda row: row.principal.name),
    Column(key="group", value=lambda row: " ".join(row.principal.groups)),
    Column(key="server", value=lambda row: row.server_name),
    Column(key="profile", value=lambda row: row.choice.profile),
    Column(key="class", value=lambda row: row.choice.class_name),
    Column(key="state", value=lambda row: row.state.value),
    Column(
        key="machine",
        value=lambda row: row.assignment.machine if row.assignment else None,
    ),
    Column(key="asked", value=lambda row: row.asked_at),
    Column(key="workload", value=lambda row: row.id),
)


class OwnWorkloadsHandler(ListingPage):
    """What the visitor has asked for, and for admins what everybody has."""

    @override
    def get(self) -> None:
        """Show a page of it, what has ended last."""
        records = [
            record
            for record in self.core.model.workloads.values()
            if self.visitor.may_see(record)
        ]
        records.sort(key=lambda record: (record.state in ENDED, -record.line))
        listing = self.listing(_SERVERS, records, size=PAGE_SIZE)
        if self.is_exported(listing, "servers", self.core.clock.now()):
            return
        titles = {
            profile.name: profile.title
            for profile in self.core.catalogs.current().profiles
        }
        classes = {
            each.name: each.title for each in self.core.catalogs.current().classes
        }
        self.render_page(
            "workloads.html",
            as_of=self.core.clock.now(),
            listing=listing,
            xsrf_token=self.xsrf_token.decode(),
            workloads=[
                {
                    "record": record,
                    "profile": titles.get(record.choice.profile, record.choice.profile),
                    "class_title": classes.get(
                        record.choice.class_name or "", record.choice.class_name or ""
                    ),
                    "headline": self._headline(record),
                    "server_url": self.server_url(record),
                    "is_ready": record.state is State.READY,
                }
                for record in listing.rows
            ],
        )

    def _headline(self, record: Workload) -> str:
        with speaking(of_another=record.principal.name != self.visitor.name):
            return headline_of(self.core, record)
