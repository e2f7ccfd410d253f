"""A language in which every translated text is bracketed, so that a forgotten one shows.

What stands outside of the brackets on a page is either data, which a test names, or a
literal that nobody can translate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from babel.messages.pofile import read_po
from bs4 import BeautifulSoup, Comment

from fleet_contracts.language import Language
from fleet_contracts.languages import DOMAIN, LOCALE


TAG: Final = "ach_UG"
"""The only tag without a real language that JupyterLab accepts."""
HEADERS: Final = {"Accept-Language": "ach-UG"}
FORMULA: Final = "nplurals=2; plural=(n != 1);"

_ATTRIBUTES: Final = ("aria-label", "title", "placeholder", "alt", "data-label")
_SKIPPED: Final = ("script", "style", "template", "code", "pre", "noscript")
_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ][\d:.]*([+-][\d:]+|Z)?( UTC)?|[\d:]+ UTC"
    # as a browser writes them, with its narrow spaces
    r"|\d+ [A-Z][a-z]{2} \d{4}, \d+:\d\d:\d\d [A-Z]+"
    r"|\d+ [A-Z][a-z]{2}( \d{4})?, \d+:\d\d"
    r"|([A-Z][a-z]{2} \d+, \d{4}, )?\d+:\d\d:\d\d\s[AP]M( UTC)?"
)
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


def document() -> dict[str, Any]:
    """Return the language as a file for JupyterLab."""
    with (LOCALE / f"{DOMAIN}.pot").open("rb") as file:
        catalog = read_po(file)
    words: dict[str, Any] = {
        "": {
            "domain": DOMAIN,
            "language": TAG.replace("_", "-"),
            "plural_forms": FORMULA,
        }
    }
    for message in catalog:
        if message.id:
            forms = [message.id] if isinstance(message.id, str) else message.id
            words[forms[0]] = [f"⟦{form}⟧" for form in forms]
    return words


def language() -> Language:
    """Return the language."""
    return Language.read(TAG, document())


def install(folder: Path) -> Path:
    """Make *folder* hold a language pack; it has to be on Python's path.

    Like ``jupyterlab-language-pack-de-DE``: a package, and an entry point that names it.
    """
    package = folder / "pseudo_language_pack"
    words = package / "locale" / TAG / "LC_MESSAGES" / f"{DOMAIN}.json"
    words.parent.mkdir(parents=True)
    (package / "__init__.py").touch()
    words.write_text(json.dumps(document()), encoding="utf-8")
    info = folder / "pseudo_language_pack-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: pseudo-language-pack\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[jupyterlab.languagepack]\n{TAG} = pseudo_language_pack\n"
    )
    return folder


def literals(texts: Iterable[str], data: Iterable[str] = ()) -> list[str]:
    """Return the parts of *texts* that nobody could translate and that are no *data*.

    *texts* are in the order in which they stand on the page: a sentence may be spread
    over several of them.
    """
    depth, outside = 0, []
    for sign in "\n".join(texts):
        if sign == "⟦":
            depth += 1
        elif sign == "⟧":
            depth -= 1
        elif depth == 0:
            outside.append(sign)
    left = _TIME.sub(" ", "".join(outside))
    for text in sorted(data, key=len, reverse=True):
        left = left.replace(text, " ")
    lines = (" ".join(line.split()) for line in left.splitlines())
    return sorted({line for line in lines if _WORD.search(line)})


def texts_of(html: str, *where: str) -> Iterator[str]:
    """Yield every text of a page that a person or a screen reader is told."""
    page = BeautifulSoup(html, "html.parser")
    for each in page.find_all(_SKIPPED):
        each.decompose()
    for part in [found for one in where for found in page.select(one)] or [page]:
        for node in part.descendants:
            if isinstance(node, Comment):
                continue
            if isinstance(node, str):
                yield str(node)
    for part in [found for one in where for found in page.select(one)] or [page]:
        for element in part.find_all(True):
            for name in _ATTRIBUTES:
                yield str(element.get(name) or "")


TOLD: Final = """(where) => {
    const told = [];
    const parts = [...document.querySelectorAll(where)];
    for (const part of parts) {
        const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const parent = walker.currentNode.parentElement;
            if (parent.closest('script, style, template, code, pre, noscript')) continue;
            told.push(walker.currentNode.textContent);
        }
    }
    for (const part of parts) {
        for (const element of [part, ...part.querySelectorAll('*')]) {
            for (const name of ['aria-label', 'title', 'placeholder', 'alt']) {
                told.push(element.getAttribute(name) ?? '');
            }
        }
    }
    return told;
}"""
"""The same in a browser, after the page's script."""
