"""The words of a page: in its reader's language, and fit to stand in a template."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup, escape

from fleet_contracts.filling import fill
from fleet_contracts.language import (
    ENGLISH,
    Language,
    language,
    say_many,
    speak,
    speak_of_another,
    speaks_of_another,
    translated,
)
from fleet_contracts.languages import language_of


def say(text: str, *values: object, **names: object) -> Markup:
    """Return *text* in the page's language; what fills it is escaped unless it is HTML.

    *values* fill ``%1``, ``%2``, …, and *names* fill ``{name}``; None is no value.
    """
    given = {
        name: str(escape(each)) for name, each in names.items() if each is not None
    }
    filled = str(escape(translated(text)))
    if given:
        filled = fill(filled, given)
    for number, value in enumerate(values, 1):
        filled = filled.replace(f"%{number}", str(escape(value)))
    return Markup(filled)  # noqa: S704 - every part of it was escaped above


def many(one: str, several: str, count: float, *values: object) -> Markup:
    """Return the form for a *count*, which is ``%1``."""
    return escape(say_many(one, several, count, *values))


class PageWords:
    """What a template of the Hub calls to say something."""

    def __init__(self, spoken: Language) -> None:
        """Speak one language."""
        self._spoken = spoken

    def __call__(self, text: str, *values: object, **names: object) -> Markup:
        """Say a text."""
        return say(text, *values, **names)

    def many(self, one: str, several: str, count: float, *values: object) -> Markup:
        """Say a text with a number in it."""
        return many(one, several, count, *values)

    @property
    def tag(self) -> str:
        """The language, as HTML names it."""
        return self._spoken.tag

    @property
    def direction(self) -> str:
        """How it is written."""
        return self._spoken.direction

    @property
    def is_of_another(self) -> bool:
        """Whether the page shows somebody else's server."""
        return speaks_of_another()

    @property
    def catalogue(self) -> dict[str, Any] | None:
        """The words for the page's script; None: it has them already."""
        return catalogue(self._spoken)


def catalogue(spoken: Language) -> dict[str, Any] | None:
    """Return the words of *spoken* for a script; None for English."""
    return None if spoken is ENGLISH else spoken.document()


def _begin(static_url: Any, owner: Any = None) -> PageWords:
    """Return the words for the page that is being made, and speak them from here on.

    JupyterHub hands no request to its templates; ``static_url`` is a method of the
    handler that has it.  *owner* is whose server the page shows.
    """
    handler = getattr(static_url, "__self__", None)
    if handler is not None:
        speak(language_of(handler.request.headers.get("Accept-Language", "")))
        viewer = handler.current_user
        is_another = owner is not None and viewer is not None
        speak_of_another(is_another=is_another and viewer.name != owner.name)
    return PageWords(language())


TEMPLATE_VARIABLES: Final[dict[str, Any]] = {
    # JupyterHub calls what it finds here with the viewer, before it makes the page.
    "fleet_words": lambda _viewer: _begin,
}
"""What JupyterHub's own templates need beside their folder."""
