"""How a start ends with a sentence for the user, and a code for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from jupyterhub.spawner import SpawnException
from markupsafe import Markup, escape

from fleet_contracts.filling import fill
from fleet_contracts.language import mark, said, speaks_as_written, translated
from fleet_contracts.reasons import FACTS, Reason, ReasonKind
from fleet_contracts.sentences import sentence as told


if TYPE_CHECKING:
    from fleet_contracts.reasons import Explanation


_STATUS: Final[dict[ReasonKind, int]] = {
    ReasonKind.NEVER: 400,
    ReasonKind.NOT_ALLOWED: 403,
    ReasonKind.BUSY: 503,
    ReasonKind.NOT_NOW: 503,
    ReasonKind.FAILED: 500,
    ReasonKind.INFO: 503,
}
_STATUS_OF_REASON: Final = {Reason.FOREIGN_LINK: 403}


def status_of(reason: Reason) -> int:
    """Return the HTTP status that goes with *reason*."""
    return _STATUS_OF_REASON.get(reason, _STATUS[FACTS[reason].kind])


class ToldHtml(str):
    """What JupyterHub hands to its pages: English, and ``said()`` as the page speaks."""

    __slots__ = ("retell",)
    retell: Callable[[], Markup]

    def said(self) -> Markup:
        """Return it in the language that is spoken now."""
        if speaks_as_written():
            return Markup(self)  # noqa: S704 - every part of it was escaped
        return self.retell()


class SpawnRefused(SpawnException):
    """A start that ends here, with one sentence for the user.

    The sentence is shown in the form, on the pages, in the event stream and in the
    REST answer alike.  The REST answer also names the reason's code, in brackets.
    """

    def __init__(
        self,
        sentence: str,
        *,
        reason: Reason,
        values: Mapping[str, str] | None = None,
        retell: Callable[[], str] | None = None,
        link: str | None = None,
        link_text: str = "",
        retry_after_seconds: int | None = None,
    ) -> None:
        """End a start with *sentence*, and lead on to *link* where there is one.

        *values* fill its placeholders.  *retell* says the same in the language of
        whoever reads it on a page, where the sentence was made from codes.
        """
        given = dict(values or {})
        phrase, sentence = sentence, fill(sentence, given) if given else sentence
        message = f"{sentence} ({reason.value})"
        html = ToldHtml(_linked(sentence, link, link_text))
        html.retell = lambda: _linked(
            retell() if retell is not None else said(phrase, given),
            link,
            translated(link_text),
        )
        super().__init__(
            message,
            reason=reason.value,
            message_html=html,
            status_code=status_of(reason),
        )
        # JupyterHub's form, pending page and event stream read these two, and would
        # otherwise show the exception's repr.
        self.jupyterhub_message = message
        self.jupyterhub_html_message = html
        self.sentence = sentence
        self.headers = {"X-Fleet-Reason": reason.value}
        if retry_after_seconds is not None:
            self.headers["Retry-After"] = str(retry_after_seconds)


def _linked(sentence: str, link: str | None, words: str) -> Markup:
    html = escape(sentence)
    if link is not None:
        html += Markup(' <a href="{}">{}</a>').format(link, words)
    return html


def refused(explanation: Explanation | None, sentence: str) -> SpawnRefused:
    """Return the refusal that the controller explained with *explanation*."""
    if explanation is None or not sentence:
        reason = explanation.reason if explanation else Reason.INVALID_REQUEST
        return SpawnRefused(sentence or mark("This cannot be started."), reason=reason)
    return SpawnRefused(
        sentence, reason=explanation.reason, retell=lambda: told(explanation)
    )
