"""Templates and assets of the Hub's pages and of the service's.

The assets are included into the pages, not linked: a page must be able to say that
the controller is away, so it cannot depend on being served by it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final


TEMPLATES: Final = Path(__file__).parent / "templates"
ASSETS: Final = Path(__file__).parent / "assets"


def template_paths() -> list[str]:
    """Return the folders to search before JupyterHub's own."""
    return [str(TEMPLATES), str(ASSETS)]
