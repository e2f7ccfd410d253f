"""Ways out as they go over the wire."""

from __future__ import annotations

from fleet_hub.admission import WayOut
from fleet_hub.scheduling.decisions import Alternative


def way_out(found: Alternative) -> WayOut:
    """Return *found* for the spawn form and for an explanation."""
    fields = {"kind": found.kind.value, "class_name": found.class_name}
    return WayOut.model_validate({**fields, "machine": found.machine})
