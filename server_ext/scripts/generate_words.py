"""Writes the one catalogue of words, ``fleet_contracts/locale/fleet_lab.pot``.

It holds every text of the panel, of a cell's output, of the Hub's pages and of the
controller's.  A translation of it, ``<language>/LC_MESSAGES/fleet_lab.po`` beside it,
becomes the ``fleet_lab.json`` that all of them read.  A test compares both with what
this would write.
"""
# ruff: noqa: INP001 - a script beside the front end, not a package

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po, write_po

from fleet_contracts.languages import DOMAIN, LOCALE
from fleet_lab import answers


ROOT = Path(__file__).parents[2]
TARGET = LOCALE / f"{DOMAIN}.pot"

_KEYWORDS: dict[str, Any] = {
    "say": None,
    "said": None,
    "mark": None,
    "say_many": (1, 2),
    "_": None,
    "_n": (1, 2),
    "__": None,
}
_SOURCES = (
    ("python", "contracts/fleet_contracts", "*.py"),
    ("python", "hub_spawner/fleet_hub", "*.py"),
    ("python", "server_ext/fleet_lab", "*.py"),
    ("jinja2.ext:babel_extract", "hub_spawner/fleet_hub", "*.html"),
    ("javascript", "server_ext/src", "*.ts"),
    ("javascript", "hub_spawner/fleet_hub/pages/assets/fleet", "live.js"),
)
_OPTIONS = {"encoding": "utf-8", "trimmed": "false"}


def generate() -> str:
    """Return the whole catalogue."""
    catalog = Catalog(project="jupyterhub-fleet", header_comment="# Words of the fleet")
    for text, where in sorted(_texts(), key=lambda found: (found[1], str(found[0]))):
        catalog.add(text, locations=[(where, 0)])
    lines = [
        f'"Project-Id-Version: {catalog.project}\\n"',
        '"MIME-Version: 1.0\\n"',
        '"Content-Type: text/plain; charset=utf-8\\n"',
        '"Content-Transfer-Encoding: 8bit\\n"',
    ]
    head = "\n".join(["# Words of the fleet.", 'msgid ""', 'msgstr ""', *lines, "", ""])
    return head + _body(catalog)


def _body(catalog: Catalog) -> str:
    # Without dates, so that the same sources give the same file.
    buffer = _Lines()
    write_po(buffer, catalog, omit_header=True, include_lineno=False, width=0)
    return buffer.text


class _Lines:
    """What ``write_po`` writes to, as text."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, data: bytes) -> None:
        """Take some more of it."""
        self.text += data.decode()


def _texts() -> Iterator[tuple[str | tuple[str, ...], str]]:
    for method, folder, pattern in _SOURCES:
        for path in sorted((ROOT / folder).rglob(pattern)):
            where = path.relative_to(ROOT).as_posix()
            if "/assets/fleet/timeline.js" in where or "labextension" in where:
                continue
            found = extract_from_file(method, path, _KEYWORDS, options=_OPTIONS)
            for _, text, _, _ in found:
                kept = text[:2] if isinstance(text, tuple) else text
                if kept and not (isinstance(kept, tuple) and None in kept):
                    yield kept, where

    # A notebook server imports no contracts, so it cannot mark its texts.
    for text in answers.WORDS.values():
        if text:
            yield text, "server_ext/fleet_lab/answers.py"


def compiled(path: Path) -> str:
    """Return a translation as JupyterLab reads it; what is doubtful stays English."""
    with path.open("rb") as file:
        catalog = read_po(file)
    document: dict[str, Any] = {
        "": {
            "domain": DOMAIN,
            # JupyterLab looks for a dash here, and for an underscore in the folder.
            "language": path.parents[1].name.replace("_", "-"),
            "plural_forms": catalog.plural_forms,
        }
    }
    for message in catalog:
        forms = [message.string] if isinstance(message.string, str) else message.string
        if message.id and all(forms) and not message.fuzzy:
            one = message.id if isinstance(message.id, str) else message.id[0]
            document[one] = list(forms)
    return json.dumps(document, indent=0, ensure_ascii=False, sort_keys=True) + "\n"


def translations() -> list[Path]:
    """Return the translations that are kept here."""
    return sorted(LOCALE.glob(f"*/LC_MESSAGES/{DOMAIN}.po"))


if __name__ == "__main__":
    LOCALE.mkdir(exist_ok=True)
    TARGET.write_text(generate(), encoding="utf-8")
    for translation in translations():
        translation.with_suffix(".json").write_text(
            compiled(translation), encoding="utf-8"
        )
    sys.stdout.write(f"{TARGET.name} and {len(translations())} languages written\n")
