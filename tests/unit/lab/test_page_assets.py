"""The script of the Hub's pages is built from the panel's own sources, and kept."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from fleet_hub.pages import ASSETS


FRONT_END = Path(__file__).parents[3] / "server_ext"
BUILT = ASSETS / "fleet" / "timeline.js"


def test_the_kept_script_is_built_from_the_sources_as_they_are() -> None:
    """Run ``npm run build:pages`` in server_ext if this fails."""
    digest = hashlib.sha256()
    for folder in ("page", "timeline"):
        for path in sorted((FRONT_END / "src" / folder).iterdir()):
            digest.update(path.read_bytes())

    assert digest.hexdigest() in BUILT.read_text(encoding="utf-8").splitlines()[0]


def test_pages_and_panel_have_one_style() -> None:
    """The kept style sheet is written from the panel's own, and says so first."""
    kept = (ASSETS / "fleet" / "timeline.css").read_text(encoding="utf-8")
    first, _, rest = kept.partition("\n")

    assert "do not edit" in first
    assert rest == (FRONT_END / "style" / "timeline.css").read_text(encoding="utf-8")


@pytest.mark.parametrize("mark", ["{{", "{%", "{#", "</script"])
def test_the_script_can_stand_inside_a_template(mark: str) -> None:
    """It is included into pages: nothing in it may read as a template's or as an end."""
    assert mark not in BUILT.read_text(encoding="utf-8")
