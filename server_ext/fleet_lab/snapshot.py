"""A timeline as the output of a cell: as it was at one moment, and true when saved.

Three forms in one output: JupyterLab draws the document with the panel's own rows,
nbviewer, GitHub and VS Code show a plain table, and a terminal shows text.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

from pydantic import ValidationError
from typing_extensions import override

from fleet_contracts.language import ENGLISH, Language, say, speaking, translated
from fleet_contracts.languages import language_named
from fleet_contracts.timeline import Timeline
from fleet_lab.answers import Answer
from fleet_lab.drawn import as_html, as_text
from fleet_lab.support import support_text


MIME_TYPE: Final = "application/vnd.jupyterhub-fleet.timeline.v1+json"


class Admission:
    """This server's admission as it was when it was asked for."""

    def __init__(self, answer: Answer, language: str | None = None) -> None:
        """Hold what the controller answered, to be told in *language*.

        None: the one of this process, as its environment names it.
        """
        self._language = spoken_here() if language is None else language_named(language)
        self._answer = answer
        self._timeline = _timeline(answer.timeline)

    @property
    def document(self) -> dict[str, Any] | None:
        """The controller's document; None: there is none, and ``notice`` says why."""
        return self._answer.timeline

    @property
    def notice(self) -> str:
        """What stands in the way, as one sentence; empty: nothing does."""
        message = self._answer.message
        with speaking(self._language):
            if self._timeline is None and not message:
                return say(
                    "What the fleet's controller answers is not understood here."
                )
            return translated(message)

    def as_json(self) -> str:
        """Return the document as JSON."""
        return json.dumps(self.document, indent=2, ensure_ascii=False)

    def as_support_text(self) -> str:
        """Return it in English, without other people, for whoever helps."""
        with speaking(ENGLISH):
            told = support_text(self._timeline) if self._timeline else ""
        message = self._answer.message
        return "\n".join(part for part in (told, message) if part) or self.notice

    @override
    def __repr__(self) -> str:
        """Return it as text."""
        with speaking(self._language):
            parts = [as_text(self._timeline)] if self._timeline else []
            return "\n".join([*parts, *([self.notice] if self.notice else [])])

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, Any]:
        """Return every form of it for Jupyter, which picks one."""
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if self._timeline is not None:
            with speaking(self._language):
                bundle["text/html"] = as_html(self._timeline, self.notice)
            bundle[MIME_TYPE] = self.document
        return bundle


def spoken_here() -> Language:
    """Return the language that the environment names, as gettext looks for it."""
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        for tag in os.environ.get(name, "").split(":"):
            found = language_named(tag)
            if found is not ENGLISH:
                return found
    return ENGLISH


def _timeline(document: dict[str, Any] | None) -> Timeline | None:
    if document is None:
        return None
    try:
        return Timeline.model_validate(_known(document))
    except ValidationError:
        # A newer controller has codes that this notebook's environment does not know.
        return None


def _known(value: Any) -> Any:
    """Leave out the nulls: they stand for fields that were not sent."""
    if isinstance(value, dict):
        return {k: _known(v) for k, v in value.items() if v is not None}
    return [_known(item) for item in value] if isinstance(value, list) else value
