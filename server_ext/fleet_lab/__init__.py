"""The notebook's side of the fleet: its own admission timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from fleet_lab.snapshot import Admission

__all__ = ["load_ipython_extension", "timeline"]


def timeline(language: str | None = None) -> Admission:
    """Return this server's admission timeline as of now, told in *language*.

    As a cell's value it is a table that stays true when it is saved.  It never raises:
    without a Hub, or without an answer, it says so instead.
    """
    # Here and not above: a notebook server imports this package at its start, and what
    # draws a timeline needs a model library.
    from fleet_lab.kernel import Asker  # noqa: PLC0415 - see above
    from fleet_lab.snapshot import Admission  # noqa: PLC0415 - see above

    return Admission(Asker.of_this_process().ask(), language)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Provide ``%admission``; what ``%load_ext fleet_lab`` calls."""
    from fleet_lab.magic import register  # noqa: PLC0415 - only a kernel has use for it

    register(shell)


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Tell jupyter_server where the extension is.

    Imported here and not above, because a kernel imports this package as well and has
    no use for the server's modules.
    """
    from fleet_lab.app import FleetLab  # noqa: PLC0415 - see the docstring

    return [{"module": "fleet_lab", "app": FleetLab}]
