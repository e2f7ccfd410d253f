"""The page on REST has every request that the service answers, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fleet_hub.options import CLASS, FILES, PROFILE, WAYS_WITH_FILES
from fleet_hub.service.web import routes


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rest.md"
_ROW = re.compile(r"^\| `(GET|POST) ([^`?]+)", re.MULTILINE)
_PLACE = re.compile(r"\(\?P<(\w)\w*>.*?\)(?=/|$)")


def answered() -> set[tuple[str, str]]:
    """Return each request for programs, with placeholders as the page writes them."""
    context: Any = SimpleNamespace(prefix="", core=None, registry=None, transfers=None)
    found = set()
    for pattern, handler, _ in routes(context):
        path = _PLACE.sub(lambda place: place[1].upper(), pattern)
        if path in {"health", "metrics"} or path.startswith("api/"):
            found |= {
                (method.upper(), path)
                for method in ("get", "post")
                if any(method in kind.__dict__ for kind in _own(handler))
            }
    return found


def _own(handler: type) -> list[type]:
    return [kind for kind in handler.__mro__ if kind.__module__.startswith("fleet_hub")]


def test_each_request_is_described() -> None:
    """With its method; what is not described is not there."""
    assert set(_ROW.findall(PAGE.read_text())) == answered()


def test_each_option_of_a_start_is_described() -> None:
    """And each way with files."""
    text = PAGE.read_text()
    for option in (PROFILE, CLASS, FILES):
        assert f"| `{option}` |" in text
    for way in WAYS_WITH_FILES:
        assert f"`{way}`" in text
