"""In which language, and about whom, is something said?

The English stands in the code and is the key of every other language; ``languages.py``
finds those.  Codes and numbers travel and are said where somebody reads them, so the
language is a property of that moment: a page says it once, and everything that is said
until the page is done follows.  Outside of a page all is English.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from fleet_contracts.filling import fill
from fleet_contracts.voices import OF_ANOTHER


_NUMBERED: Final = re.compile(r"%(\d+)")
_FORMULA: Final = re.compile(r"plural=(.*?);?\s*$")
_FORMULA_OF_ENGLISH: Final = "nplurals=2; plural=(n != 1);"
_RIGHT_TO_LEFT: Final = frozenset(
    {"ar", "dv", "fa", "he", "ks", "ps", "ug", "ur", "yi"}
)
_TABLE: Final = 200
"""Plural rules look at the last two digits, and at small numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The words of one language, by the English that they stand for."""

    tag: str
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """For each English text its forms: one, or as many as there are plurals."""
    formula: str = _FORMULA_OF_ENGLISH
    """How a number chooses among them, as gettext writes it."""

    @classmethod
    def read(cls, tag: str, document: Mapping[str, Any]) -> Language:
        """Return the language that a file for JupyterLab holds.

        Raises:
            ValueError: it is no such file.
        """
        head = document.get("")
        if not isinstance(head, Mapping):
            raise ValueError(f"the words of {tag} have no head")  # noqa: TRY004 - a file's fault
        formula = str(head.get("plural_forms") or _FORMULA_OF_ENGLISH)
        texts = {
            text: tuple(map(str, forms))
            for text, forms in document.items()
            if text and forms and all(forms)
        }
        language = cls(tag=tag.replace("_", "-"), texts=texts, formula=formula)
        language.plurals()
        return language

    @property
    def direction(self) -> str:
        """How it is written: ``ltr`` or ``rtl``."""
        return "rtl" if self.tag.split("-")[0] in _RIGHT_TO_LEFT else "ltr"

    def plurals(self) -> tuple[int, ...]:
        """Return which form each of the first numbers takes.

        Raises:
            ValueError: the formula is none.
        """
        found = _FORMULA.search(self.formula)
        if found is None:
            raise ValueError(f"no plural formula: {self.formula}")
        # The library's own reader of such formulas; it evaluates nothing else.
        choose = gettext.c2py(found[1])
        return tuple(int(choose(number)) for number in range(_TABLE))

    def document(self) -> dict[str, Any]:
        """Return it for a page's script, which may evaluate no formula."""
        return {"tag": self.tag, "plurals": self.plurals(), "texts": self.texts}


ENGLISH: Final = Language(tag="en")

_language: ContextVar[Language] = ContextVar("language", default=ENGLISH)
_of_another: ContextVar[bool] = ContextVar("of_another", default=False)


def language() -> Language:
    """Return the language in which is spoken now."""
    return _language.get()


def speak(spoken: Language) -> None:
    """Speak *spoken* until the end of this task: for pages, each of which is one."""
    _language.set(spoken)


def speak_of_another(*, is_another: bool) -> None:
    """Speak about somebody else from here on, or again to whom it concerns."""
    _of_another.set(is_another)


def speaks_of_another() -> bool:
    """Whether what is said concerns somebody else than whoever reads it."""
    return _of_another.get()


def speaks_as_written() -> bool:
    """Whether what was written in English, to whom it concerns, can be said as it is."""
    return language() is ENGLISH and not speaks_of_another()


@contextmanager
def speaking(
    spoken: Language | None = None, *, of_another: bool | None = None
) -> Iterator[None]:
    """Speak *spoken*, and perhaps *of_another*, for a while; None: as before."""
    before = _language.set(spoken or language())
    is_another = speaks_of_another() if of_another is None else of_another
    voice = _of_another.set(is_another)
    try:
        yield
    finally:
        _of_another.reset(voice)
        _language.reset(before)


def mark(text: str) -> str:
    """Return *text* as it is: it is said later, and collected for translators here."""
    return text


def translated(text: str) -> str:
    """Return *text* in the language that is spoken, its placeholders still in it."""
    voiced = OF_ANOTHER.get(text, text) if speaks_of_another() else text
    forms = _language.get().texts.get(voiced)
    return forms[0] if forms else voiced


def said(phrase: str, values: Mapping[str, str]) -> str:
    """Return *phrase* in the language that is spoken, filled; see ``filling.py``."""
    return fill(translated(phrase), values)


def say(text: str, *values: object, **names: object) -> str:
    """Return *text* in the language that is spoken.

    *values* fill ``%1``, ``%2``, …, and *names* fill ``{name}``; None is no value.
    """
    given = {name: str(value) for name, value in names.items() if value is not None}
    return _numbered(said(text, given) if given else translated(text), values)


def say_many(one: str, many: str, count: float, *values: object) -> str:
    """Return *one* or *many* for a *count*, which is ``%1``; *values* begin at ``%2``."""
    # A page says "1 core" and "1.5 cores".
    shown = str(int(count)) if count == int(count) else f"{count:g}"
    forms = _language.get().texts.get(one)
    if not forms:
        return _numbered(one if count == 1 else many, (shown, *values))
    table = _language.get().plurals()
    whole = int(count) if count == int(count) else 2
    form = table[whole if whole < _TABLE else 100 + whole % 100]
    return _numbered(forms[min(form, len(forms) - 1)], (shown, *values))


def _numbered(text: str, values: Sequence[object]) -> str:
    return _NUMBERED.sub(
        lambda found: (
            str(values[int(found[1]) - 1])
            if 0 < int(found[1]) <= len(values)
            else found[0]
        ),
        text,
    )
