"""The notebook's side of the fleet: its own admission timeline."""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Tell jupyter_server where the extension is.

    Imported here and not above, because a kernel imports this package as well and has
    no use for the server's modules.
    """
    from fleet_lab.app import FleetLab  # noqa: PLC0415 - see the docstring

    return [{"module": "fleet_lab", "app": FleetLab}]
