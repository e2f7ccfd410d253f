"""What the Hub's own pages show about one server, asked when the page is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fleet_contracts.allocations import ENDED, State
from fleet_contracts.language import say
from fleet_contracts.steps import shown
from fleet_contracts.telling import headline_words
from fleet_contracts.timeline import Timeline
from fleet_contracts.workloads import ServerKey
from fleet_hub.admission import ServerStatus
from fleet_hub.controller_client import ControllerClient
from fleet_hub.errors import ControllerError
from fleet_hub.pages.told import Told, tell


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """One server as a template sees it; ``reachable`` False: nobody answered."""

    reachable: bool
    status: ServerStatus | None = None
    timeline: Timeline | None = None
    page_url: str = ""
    service_url: str = ""
    document: dict[str, Any] = field(default_factory=dict)
    """The timeline of the current generation as JSON."""

    @property
    def waits(self) -> bool:
        """It is in the line."""
        return self.status is not None and self.status.state in {
            State.REQUESTED,
            State.QUEUED,
        }

    @property
    def holds(self) -> bool:
        """A machine holds something for it: it is on its way, or runs."""
        return self.status is not None and self.status.holds

    @property
    def can_ask(self) -> bool:
        """Somebody holds what it waits for, and can be asked to release it."""
        why = self.timeline.explanation if self.timeline and self.waits else None
        return why is not None and any(holder.handle for holder in why.holders)

    @property
    def token(self) -> str:
        """Reads this workload's timeline, for the page's own script."""
        return (self.status.view_token or "") if self.status else ""

    @property
    def told(self) -> Told:
        """The start under way, for a page without a script."""
        if self.timeline is not None and (self.waits or self.holds):
            return tell(self.timeline)
        headline = say("Asking the fleet for a machine.") if self.reachable else ""
        return tell(None, headline=headline)

    @property
    def last_told(self) -> Told | None:
        """How far the last start came, where it did not come to the end."""
        if self.timeline is None or self.timeline.state is not State.FAILED:
            return None
        # The refusal above says why already.
        return tell(self.timeline, headline="")

    @property
    def last_words(self) -> str:
        """How the last start ended, where it did."""
        if self.timeline is None or self.timeline.state not in ENDED:
            return ""
        return headline_words(self.timeline, shown(self.timeline))


async def view_server(
    client: ControllerClient, key: ServerKey, page_of: Callable[[str | None], str]
) -> ServerView:
    """Return what there is to show about *key*; never raises."""
    service = page_of(None)
    try:
        status = await client.status(key)
        if status.workload is None:
            return ServerView(reachable=True, status=status, service_url=service)
        timeline = await client.timeline(key)
    except ControllerError:
        return ServerView(reachable=False, service_url=service)
    return ServerView(
        reachable=True,
        status=status,
        timeline=timeline,
        page_url=page_of(status.workload),
        service_url=service,
        document=_current(timeline) if timeline.state not in ENDED else {},
    )


def _current(timeline: Timeline) -> dict[str, Any]:
    events = tuple(e for e in timeline.events if e.generation == timeline.generation)
    return timeline.model_copy(update={"events": events}).model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
