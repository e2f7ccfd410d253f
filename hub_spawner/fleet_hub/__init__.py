"""JupyterHub's side of the fleet: the Spawner, the controller and their pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from fleet_hub.config import configure as configure


def __getattr__(name: str) -> Any:
    """Import ``configure`` on first use: the controller needs no JupyterHub."""
    if name == "configure":
        from fleet_hub.config import configure  # noqa: PLC0415 - see the docstring

        return configure
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
