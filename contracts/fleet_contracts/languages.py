"""Which languages are there besides English, and which does a browser want?

They are found where JupyterLab finds them: in ``locale`` beside this file, and in the
language packs that are installed.  So one file serves JupyterLab, a kernel, the Hub's
pages and the controller's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from fleet_contracts.language import ENGLISH, Language


DOMAIN: Final = "fleet_lab"
"""The name under which JupyterLab asks for these words."""
LOCALE: Final = Path(__file__).parent / "locale"
_PACKS: Final = "jupyterlab.languagepack"
_MOST_WISHES: Final = 20


@lru_cache(maxsize=1)
def languages() -> dict[str, Language]:
    """Return what is installed, by tag in lower case; a broken file is no language."""
    found: dict[str, Language] = {}
    for folder in _folders():
        for path in sorted(folder.glob(f"*/LC_MESSAGES/{DOMAIN}.json")):
            tag = path.parents[1].name
            try:
                document = json.loads(path.read_text(encoding="utf-8"))
                language = Language.read(tag, document)
            except (OSError, ValueError):
                continue
            found[language.tag.lower()] = language
    return found


def _folders() -> Iterator[Path]:
    # What is installed on purpose outranks what came along.
    yield LOCALE
    for entry in entry_points(group=_PACKS):
        try:
            origin = entry.load().__file__
        except Exception:  # noqa: BLE001, S112 - a stranger's package
            continue
        if origin:
            yield Path(origin).parent / "locale"


def language_of(wishes: str) -> Language:
    """Return the best of what is there for an ``Accept-Language`` header."""
    for wish in _in_order(wishes):
        if wish.split("-")[0] == "en":
            return ENGLISH
        found = language_named(wish)
        if found is not ENGLISH:
            return found
    return ENGLISH


def language_named(tag: str) -> Language:
    """Return the language called *tag*, or its nearest relative; English if none."""
    known = languages()
    wanted = tag.replace("_", "-").lower().partition(".")[0]
    base = wanted.split("-")[0]
    relatives = sorted(one for one in known if one.split("-")[0] == base)
    for candidate in (wanted, base, *relatives):
        if candidate in known:
            return known[candidate]
    return ENGLISH


def _in_order(wishes: str) -> list[str]:
    weighed = []
    for place, wish in enumerate(wishes.split(",")[:_MOST_WISHES]):
        tag, _, parameter = wish.partition(";")
        name, _, weight = parameter.strip().partition("=")
        try:
            rank = float(weight) if name.strip() == "q" else 1.0
        except ValueError:
            rank = 0.0
        if tag.strip() and rank > 0:
            weighed.append((-rank, place, tag.strip().lower()))
    return [tag for _, _, tag in sorted(weighed)]
