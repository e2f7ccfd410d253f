"""The terms on which an owner lends a machine, in words: one line for each."""

from __future__ import annotations

from typing import Final

from fleet_contracts.amounts import describe_bytes, format_cores
from fleet_contracts.capabilities import OwnerTerm
from fleet_contracts.filling import foreign
from fleet_contracts.language import mark, said, say, translated
from fleet_contracts.phrases import PHRASES
from fleet_contracts.reasons import Reason


_NAMES: Final = {
    "cpu": mark("cores"),
    "memory": mark("memory"),
    "drivers": mark("ways of running work"),
    "hours": mark("hours"),
    "presence": mark("use by its owner"),
    "power": mark("power"),
    "drain": mark("draining"),
}


_NOTHING_NEW: Final = "it takes nothing new: "
DRAINED: Final = mark("it is being drained")


def term_line(term: OwnerTerm) -> str:
    """Return *term* with whether it is met now, and until when."""
    known = _NAMES.get(term.name)
    name = translated(known) if known else foreign(term.name)
    wanted = _wanted(term)
    text = say("{name}: {wanted}", name=name, wanted=wanted) if wanted else name
    if term.met is not True:
        text = say("{terms}; takes nothing new now: {why}", terms=text, why=_why(term))
    if term.until is not None:
        until = f"{term.until:%Y-%m-%d %H:%M} {term.until:%Z}".rstrip()
        text = say("{terms}, until {time}", terms=text, time=until)
    return text


def _wanted(term: OwnerTerm) -> str:
    if term.amount is None:
        return foreign(term.text) if term.text else ""
    if term.unit == "bytes":
        return say("at most %1", describe_bytes(term.amount))
    return say("at most %1", format_cores(term.amount))


def _why(term: OwnerTerm) -> str:
    if term.reason not in list(Reason):
        return foreign(term.reason)
    phrase = PHRASES[Reason(term.reason)]
    if phrase.startswith(_NOTHING_NEW):
        phrase = DRAINED
    # Its optional parts have no value here.
    return said(phrase, {})
