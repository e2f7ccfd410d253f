"""The fleet as admins see it: who waits, who holds what, who could start, who did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from typing_extensions import override

from fleet_contracts.language import mark, translated
from fleet_contracts.telling import duration
from fleet_contracts.timeline_phrases import STATES
from fleet_contracts.workloads import Principal
from fleet_hub.audit_words import KINDS, ROLES, words
from fleet_hub.controller.audit_entry import Numbered
from fleet_hub.controller.exporting import view_of
from fleet_hub.controller.offering import offers_for
from fleet_hub.controller.records import Workload
from fleet_hub.explaining.answers import line
from fleet_hub.explaining.document import InLine
from fleet_hub.machine_words import plain, resources_line
from fleet_hub.service.admin_page import AdminPage
from fleet_hub.service.class_rows import class_rows
from fleet_hub.service.internal_machines import UNNAMED
from fleet_hub.service.listings import Column
from fleet_hub.service.machine_sections import age
from fleet_hub.service.turn_pages import FEW, places, turn_rows


PAGE_SIZE: Final = 100
MOST_EXPORTED: Final = 10_000
"""So many entries of the audit log leave at once; ``before`` leads to older ones."""
MOST_PEOPLE: Final = 30
"""Of whom the profiles page says what they could start; others are asked by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InTheLine:
    """One who waits."""

    item: InLine
    groups: tuple[str, ...]
    moved: int
    """Above 0: an admin put it first; below 0: last."""
    now: datetime

    @property
    def waited(self) -> str:
        """How long, in words."""
        return duration(self.seconds)

    @property
    def seconds(self) -> float:
        """How long."""
        return max(0.0, (self.now - self.item.asked_at).total_seconds())


_LINE: Final[tuple[Column[InTheLine], ...]] = (
    Column(key="ahead", title=mark("Ahead"), value=lambda row: row.item.ahead),
    Column(key="user", title=mark("User"), value=lambda row: row.item.user),
    Column(key="group", value=lambda row: " ".join(row.groups)),
    Column(key="server", value=lambda row: row.item.server),
    Column(key="profile", title=mark("Asked for"), value=lambda row: row.item.profile),
    Column(key="class", value=lambda row: row.item.class_name),
    Column(key="waited", title=mark("Waited"), value=lambda row: row.seconds),
    Column(key="asked", value=lambda row: row.item.asked_at),
    Column(key="reason", value=lambda row: row.item.why.explanation.reason.value),
    Column(key="why", title=mark("Why"), value=lambda row: row.item.why.sentence),
    Column(
        key="no_later_than",
        title=mark("No later than"),
        value=lambda row: row.item.no_later_than,
    ),
    Column(key="workload", value=lambda row: row.item.workload),
)


class LineHandler(AdminPage):
    """Everybody who waits, in the order in which turns come, and why."""

    @override
    def get(self) -> None:
        """Show a page of the line."""
        document = line(view_of(self.core))
        known = self.core.model.workloads
        listing = self.listing(
            _LINE,
            (
                InTheLine(
                    item=item,
                    groups=known[item.workload].principal.groups,
                    moved=known[item.workload].moved,
                    now=document.as_of,
                )
                for item in document.waiting
            ),
            size=PAGE_SIZE,
        )
        if self.is_exported(listing, "line", document.as_of):
            return
        self.render_page(
            "line.html",
            as_of=document.as_of,
            listing=listing,
            classes=class_rows(self.core),
            places=places(),
            decisions=turn_rows(self.core.model.turns.latest()[:FEW]),
            xsrf_form_html=self.xsrf_form_html(),
            # A script's request is believed with it alone: no other site can read it.
            xsrf_token=self.xsrf_token.decode(),
        )


def _actor(name: str) -> str:
    return translated(UNNAMED) if name == UNNAMED else plain(name)


def _machine_of(record: Workload) -> str:
    return record.assignment.machine if record.assignment is not None else ""


def _held(record: Workload) -> str:
    return resources_line(record.assignment.resources) if record.assignment else ""


def _since(record: Workload) -> datetime | None:
    return record.assignment.since if record.assignment else None


_HOLDS: Final[tuple[Column[Workload], ...]] = (
    Column(key="machine", title=mark("Machine"), value=_machine_of),
    Column(key="user", title=mark("User"), value=lambda row: row.principal.name),
    Column(key="group", value=lambda row: " ".join(row.principal.groups)),
    Column(key="server", value=lambda row: row.server_name),
    Column(key="profile", title=mark("Class"), value=lambda row: row.choice.profile),
    Column(key="class", value=lambda row: row.choice.class_name),
    Column(key="what", value=_held),
    Column(key="state", title=mark("State"), value=lambda row: row.state.value),
    Column(key="since", title=mark("Since"), value=_since),
    Column(key="workload", value=lambda row: row.id),
)


class HoldsHandler(AdminPage):
    """What is held of which machine, by whom, since when."""

    @override
    def get(self) -> None:
        """Show a page of it, by machine."""
        now = self.core.clock.now()
        holders = (
            record for record in self.core.model.workloads.values() if record.holds
        )
        listing = self.listing(
            _HOLDS,
            sorted(holders, key=lambda record: (_machine_of(record), record.id)),
            size=PAGE_SIZE,
        )
        if self.is_exported(listing, "holds", now):
            return
        self.render_page(
            "holds.html",
            as_of=now,
            listing=listing,
            xsrf_token=self.xsrf_token.decode(),
            holds=[
                {
                    "record": record,
                    "machine": _machine_of(record),
                    "state": translated(STATES[record.state]),
                    "what": _held(record),
                    "since": age(record.assignment.since, now)
                    if record.assignment
                    else "",
                }
                for record in listing.rows
            ],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceRow:
    """One profile in one class: who could start it now, who would wait, who may not."""

    title: str
    class_title: str
    now: tuple[str, ...]
    waits: tuple[str, ...]
    why: str
    """For those who wait; the first one's."""
    never: tuple[str, ...]


class ProfilesHandler(AdminPage):
    """What is offered, and who could start it now."""

    @override
    def get(self) -> None:
        """Show it for the people whom the fleet knows, or for one of any name."""
        asked = self.get_query_argument("user", "")[:255]
        people = self._people(asked)
        self.render_page(
            "profiles.html",
            as_of=self.core.clock.now(),
            asked=asked,
            people=[person.name for person in people],
            rows=self._rows(people),
        )

    def _people(self, asked: str) -> list[Principal]:
        model = self.core.model
        known = {
            record.principal.name: record.principal
            for record in model.workloads.values()
            if record.principal.name
        }
        for machine in model.machines.values():
            # An owner who never asked for anything: no group is known of them.
            known.setdefault(machine.owner, Principal(user_id=0, name=machine.owner))
        if asked:
            return [known.get(asked, Principal(user_id=0, name=asked))]
        return [known[name] for name in sorted(known)[:MOST_PEOPLE]]

    def _rows(self, people: list[Principal]) -> list[ChoiceRow]:
        found = {person.name: offers_for(self.core, person, None) for person in people}
        catalog = self.core.catalogs.current()
        rows = []
        for profile in catalog.profiles:
            for chosen in catalog.classes_of(profile):
                offered = {
                    name: offer
                    for name, offers in found.items()
                    for offer in offers.offers
                    if (offer.profile, offer.class_name) == (profile.name, chosen.name)
                }
                waits = [
                    name
                    for name, offer in offered.items()
                    if offer.choosable and not offer.startable
                ]
                now = [name for name, offer in offered.items() if offer.startable]
                rows.append(
                    ChoiceRow(
                        title=profile.title,
                        class_title=chosen.title,
                        now=tuple(now),
                        waits=tuple(waits),
                        why=offered[waits[0]].headline if waits else "",
                        never=tuple(
                            name for name in found if name not in {*now, *waits}
                        ),
                    )
                )
        return rows


_AUDIT: Final[tuple[Column[Numbered], ...]] = (
    Column(key="seq", value=lambda row: row.seq),
    Column(key="at", value=lambda row: row.entry.at),
    Column(key="actor", value=lambda row: row.entry.actor),
    Column(key="role", value=lambda row: row.entry.role.value),
    Column(key="action", value=lambda row: row.entry.action.value),
    Column(key="kind", value=lambda row: row.entry.kind.value),
    Column(key="target", value=lambda row: row.entry.target),
    Column(key="detail", value=lambda row: row.entry.detail),
    Column(key="why", value=lambda row: row.entry.why),
    Column(key="words", value=words),
)


class AuditHandler(AdminPage):
    """Who did what to what, newest first."""

    @override
    def get(self) -> None:
        """Show a page of it."""
        before = int(self.number("before", 0))
        target = self.get_query_argument("target", "")[:255]
        is_page = not self.get_query_argument("format", "")
        entries = self.core.store.audit(
            before=before if before > 0 else None,
            limit=PAGE_SIZE + 1 if is_page else MOST_EXPORTED,
            target=target,
        )
        listing = self.listing(_AUDIT, entries, size=PAGE_SIZE)
        if self.is_exported(listing, "audit", self.core.clock.now()):
            return
        shown = entries[:PAGE_SIZE]
        self.render_page(
            "audit.html",
            target=target,
            entries=[
                {
                    "item": item.entry,
                    "actor": _actor(item.entry.actor),
                    "role": translated(ROLES[item.entry.role]),
                    "kind": translated(KINDS[item.entry.kind]),
                    "words": words(item),
                }
                for item in shown
            ],
            older=shown[-1].seq if len(entries) > PAGE_SIZE else None,
        )
