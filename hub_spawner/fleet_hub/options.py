"""What a user chose, from each of the three ways in: form, query and REST.

The first two only bring what was sent into the shape of REST's ``user_options``:
``{"profile": slug}`` with an optional ``"class"``.  All three are judged in one place,
``structural_fault`` here and the catalog at the controller, from
``apply_user_options``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from tornado.httputil import HTTPServerRequest
from typing_extensions import override

from fleet_contracts.filling import foreign
from fleet_contracts.language import say
from fleet_contracts.reasons import Explanation, Reason


PROFILE: Final = "profile"
CLASS: Final = "class"
FILES: Final = "files"
"""Where the files' machine can never run it: ``fresh`` begins with an empty folder
elsewhere, ``copy`` with a copy of them."""
WAYS_WITH_FILES: Final = ("copy", "fresh")
CHOICE: Final = "choice"
"""The query key of our own links: it preselects and starts nothing."""
CLASS_FIELD: Final = "class-"
"""The form has one class field per profile, named ``class-<profile>``."""
_NAMES: Final = (PROFILE, CLASS, FILES)
IGNORED_FIELDS: Final = frozenset({"_xsrf"})


class PreselectionOnly(Exception):  # noqa: N818 - it is no error: a page is asked for
    """A link with ``choice=`` was opened: show the form, start nothing.

    JupyterHub takes any query key for an option and starts a server; raising makes it
    show the form, and the empty message keeps it from showing an error.
    """

    jupyterhub_message = ""
    jupyterhub_html_message = ""


class _PreselectionIsNoError(logging.Filter):
    """Keeps JupyterHub from logging a traceback for each preselecting link."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.exc_info[0] if record.exc_info else None
        return not (kind is not None and issubclass(kind, PreselectionOnly))


_NO_ERROR: Final = _PreselectionIsNoError()


def from_form(fields: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the options of a submitted form; nothing is judged here.

    Only the class field that belongs to the chosen profile counts: without
    JavaScript a browser sends those of the other profiles too.
    """
    options: dict[str, Any] = {}
    for name, values in fields.items():
        if name in IGNORED_FIELDS or name.startswith(CLASS_FIELD):
            continue
        options[name] = _only(values)
    chosen = fields.get(f"{CLASS_FIELD}{options.get(PROFILE)}")
    if chosen and CLASS not in options:
        options[CLASS] = _only(chosen)
    return {name: value for name, value in options.items() if value != ""}


def from_query(fields: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the options of a link that starts a server.

    Raises:
        PreselectionOnly: the link only preselects.
    """
    if set(fields) == {CHOICE}:
        raise PreselectionOnly
    return from_form({name: fields[name] for name in fields if name != CHOICE})


def preselected(query: Mapping[str, Sequence[bytes]]) -> tuple[str, str | None] | None:
    """Return the profile and class that a ``choice=profile[/class]`` link names."""
    values = query.get(CHOICE)
    if not values:
        return None
    profile, _, class_name = values[-1].decode("utf-8", "replace").partition("/")
    return profile, class_name or None


def quieten(logger: logging.Logger) -> None:
    """Keep preselecting links out of *logger*'s errors; may be called repeatedly."""
    if _NO_ERROR not in logger.filters:
        logger.addFilter(_NO_ERROR)


def comes_from_here(request: HTTPServerRequest) -> bool:
    """Whether the person behind *request* asked for it on our own pages.

    Browsers say so themselves (``Sec-Fetch-Site``) where the connection is trustworthy
    and elsewhere by ``Referer``.  What says neither may come from anywhere.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in {"same-origin", "none"}
    referer = request.headers.get("Referer", "")
    return bool(referer) and urlsplit(referer).netloc == request.host


def structural_fault(options: object) -> Explanation | None:
    """Return what is wrong with *options* before any catalog is asked."""
    if not isinstance(options, Mapping):
        return Explanation(reason=Reason.INVALID_REQUEST)
    unknown = sorted(str(name) for name in options if name not in _NAMES)
    if unknown:
        return Explanation(reason=Reason.OPTION_UNKNOWN, subject=unknown[0][:64])
    if options.get(PROFILE) in (None, ""):
        return Explanation(reason=Reason.PROFILE_REQUIRED)
    for name in _NAMES:
        value = options.get(name)
        if value is not None and not _is_text(value):
            return Explanation(reason=Reason.INVALID_REQUEST, subject=name)
    if options.get(FILES) not in (None, *WAYS_WITH_FILES):
        return Explanation(reason=Reason.INVALID_REQUEST, subject=FILES)
    return None


def fault_sentence(fault: Explanation) -> str:
    """Return *fault* as a person reads it, in the language that is spoken."""
    subject = foreign(fault.subject)
    if fault.reason is Reason.PROFILE_REQUIRED:
        return say("Choose a profile: the request names none.")
    if fault.reason is Reason.OPTION_UNKNOWN:
        return say(
            "There is no option called “{subject}”: "
            "a server is chosen by profile, class and files alone.",
            subject=subject,
        )
    if subject == FILES:
        ways = ", ".join(WAYS_WITH_FILES)
        return say("The option “files” must be one of: {ways}.", ways=ways)
    if subject:
        return say("The option “{subject}” must be one name.", subject=subject)
    return say("The options must be an object with a profile and, if wanted, a class.")


def _is_text(value: object) -> bool:
    """Return whether *value* is a text, and one that can be sent and written down.

    JSON can name halves of characters, which no encoding has.
    """
    return isinstance(value, str) and not any(
        "\ud800" <= character <= "\udfff" for character in value
    )


def _only(values: Sequence[Any]) -> Any:
    """Return the one value, or the list, which is judged later."""
    if isinstance(values, str):
        return values
    return values[0] if len(values) == 1 else list(values)
