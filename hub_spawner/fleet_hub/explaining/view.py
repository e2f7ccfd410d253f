"""What a question is answered from: the running engine, or one built from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from fleet_contracts.catalog import Catalog
from fleet_contracts.workloads import Principal
from fleet_hub.explaining.state import FleetState, Subject
from fleet_hub.scheduling.decisions import Wait
from fleet_hub.scheduling.likely import History
from fleet_hub.scheduling.likely_ends import Runs
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Pin
from fleet_hub.scheduling.telling import waits
from fleet_hub.scheduling.ways_out import Copying


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A fleet at one moment, with everything decided that could be."""

    as_of: datetime
    planner: Planner
    starts: dict[str, str]
    """Where those start who were in the line and are about to leave it."""
    subject: Callable[[str], Subject | None]
    principal: Callable[[str], Principal | None]
    files: Callable[[str, str], Pin | None] = lambda _user, _server: None
    """Where the files of a user's server are, by both names."""
    copying: Callable[[], Copying] = Copying
    waits: Callable[[], Iterable[Wait]]
    """Everybody who waits, in the order in which turns come."""
    history: History
    """How earlier waits went."""
    runs: Runs
    """How long earlier ones held what they had."""

    @property
    def catalog(self) -> Catalog:
        """The rules."""
        return self.planner.catalog


def view_of(state: FleetState) -> View:
    """Return *state* with the engine that decides about it."""
    planner = planner_of(state.snapshot)
    planner.use(state.snapshot.usage)
    decided = planner.decide(state.snapshot.now)
    return View(
        as_of=state.as_of,
        planner=planner,
        starts={one.workload: one.machine for one in decided.placements},
        subject=state.subject,
        principal=state.principal,
        files=state.files,
        copying=lambda: state.copying,
        waits=lambda: waits(planner),
        history=History(state.history),
        runs=Runs(state.runs),
    )
