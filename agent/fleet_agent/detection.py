"""How this agent detects its machine's capabilities."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fleet_agent.picture import Detect, first_picture
from fleet_contracts.capabilities import WorkerCapabilities
from fleet_contracts.workloads import DriverName


def make_detect(*, drivers: Iterable[DriverName], folder: Path) -> Detect:
    """Return the detection for an agent with *drivers* and its state in *folder*."""
    names = tuple(drivers)

    async def detect() -> WorkerCapabilities:
        picture = first_picture(drivers=names, folder=folder)
        return picture.model_copy(update={"settled": True})

    return detect
