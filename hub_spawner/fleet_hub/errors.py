"""What can go wrong on the Hub's side, and whose move it is.

::

    HubSideError
    ├── ConfigurationError          the admin's: a file, a setting, a missing program
    └── ControllerError             the wire to the controller
        ├── ControllerUnreachableError    it does not answer; try again
        └── ControllerRefusedError        it answered no; trying again is useless

    SpawnRefused                    a start that ends with a sentence for the user
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jupyterhub.spawner import SpawnException
from markupsafe import Markup, escape

from fleet_contracts.reasons import FACTS, Reason, ReasonKind


if TYPE_CHECKING:
    from fleet_contracts.reasons import Explanation


class HubSideError(Exception):
    """The base of this package's errors."""


class ConfigurationError(HubSideError):
    """Something that the admin must change; the message says what and how."""


class ControllerError(HubSideError):
    """The wire to the controller failed."""


class ControllerUnreachableError(ControllerError):
    """The controller did not answer, or broke off; it may answer a moment later."""


class ControllerRefusedError(ControllerError):
    """The controller answered that it will not; repeating the request changes nothing."""


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
        link: str | None = None,
        link_text: str = "",
        retry_after_seconds: int | None = None,
    ) -> None:
        """End a start with *sentence*, and lead on to *link* where there is one."""
        message = f"{sentence} ({reason.value})"
        html = escape(sentence)
        if link is not None:
            html += Markup(' <a href="{}">{}</a>').format(link, link_text)
        super().__init__(
            message,
            reason=reason.value,
            message_html=str(html),
            status_code=status_of(reason),
        )
        # JupyterHub's form, pending page and event stream read these two, and would
        # otherwise show the exception's repr.
        self.jupyterhub_message = message
        self.jupyterhub_html_message = str(html)
        self.sentence = sentence
        self.headers = {"X-Fleet-Reason": reason.value}
        if retry_after_seconds is not None:
            self.headers["Retry-After"] = str(retry_after_seconds)


def refused(explanation: Explanation | None, sentence: str) -> SpawnRefused:
    """Return the refusal that the controller explained with *explanation*."""
    reason = explanation.reason if explanation else Reason.INVALID_REQUEST
    return SpawnRefused(sentence or "This cannot be started.", reason=reason)
