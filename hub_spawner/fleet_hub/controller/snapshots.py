"""The whole fleet at one moment, as an export shows it."""

from __future__ import annotations

from dataclasses import replace

from fleet_hub.controller.core import Core
from fleet_hub.controller.states import whole_fleet
from fleet_hub.scheduling.snapshot import Snapshot


def snapshot(core: Core) -> Snapshot:
    """Return the fleet, the line as it stands and the rules as of now."""
    now = core.clock.now()
    fleet = whole_fleet(core.model, core.catalogs.current(), core.settings, now)
    return replace(fleet, ranking=core.engine.ranking())
