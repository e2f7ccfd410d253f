"""The front end's copy of the contracts, which is written by scripts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


SCRIPTS = Path(__file__).parents[3] / "server_ext" / "scripts"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", ["generate_contract", "generate_phrases", "generate_corpus"]
)
def test_the_front_end_speaks_of_the_contracts_as_they_are(name: str) -> None:
    """What the script would write now is what the file says; run it if this fails."""
    script = _load(name)

    assert script.TARGET.read_text(encoding="utf-8") == script.generate()


def test_every_field_of_a_timeline_may_be_absent_or_null() -> None:
    """A cleaned document has nulls, one of the Hub's leaves fields out."""
    written = _load("generate_contract").generate()

    assert "  position?: number | null;" in written
    assert "  limits?: ILimits | null;" in written
    assert "  seq: number;" in written
