"""The front end's copy of the contracts, which is written by scripts."""

from __future__ import annotations

import importlib.util
import json
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
    "name",
    [
        "generate_contract",
        "generate_phrases",
        "generate_corpus",
        "generate_timelines",
        "generate_words",
    ],
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


def test_a_translation_becomes_what_jupyterlab_reads(tmp_path: Path) -> None:
    """With a dash in its name and its plurals; what is doubtful stays English."""
    path = tmp_path / "pt_BR" / "LC_MESSAGES" / "fleet_lab.po"
    path.parent.mkdir(parents=True)
    path.write_text(
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
        '"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n\n'
        'msgid "Ready"\nmsgstr "Pronto"\n\nmsgid "Stopped"\nmsgstr ""\n\n'
        '#, fuzzy\nmsgid "Failed"\nmsgstr "?"\n\n'
        'msgid "%1 core"\nmsgid_plural "%1 cores"\n'
        'msgstr[0] "%1 nucleo"\nmsgstr[1] "%1 nucleos"\n'
    )
    document = json.loads(_load("generate_words").compiled(path))

    assert document.pop("") == {
        "domain": "fleet_lab",
        "language": "pt-BR",
        "plural_forms": "nplurals=2; plural=(n > 1);",
    }
    assert document == {"Ready": ["Pronto"], "%1 core": ["%1 nucleo", "%1 nucleos"]}
