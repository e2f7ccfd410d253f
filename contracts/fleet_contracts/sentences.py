"""English for people, made from codes and numbers: the fallback of every page.

``sentence`` says why in one sentence, ``remedy`` what would change it, ``headline``
what is going on now.  Codes and numbers travel; a translation only needs another
module like this one.
"""

from __future__ import annotations

import re
from datetime import datetime

from fleet_contracts.allocations import State
from fleet_contracts.amounts import describe_bytes, format_cores, format_seconds
from fleet_contracts.phrases import PHRASES, REMEDIES
from fleet_contracts.reasons import Explanation, Holder, Reason


_MOST_HOLDERS = 3
_OPTIONAL = re.compile(r"\[([^\]]*)\]")
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")


def sentence(explanation: Explanation, *, now: datetime | None = None) -> str:
    """Return *explanation* as one sentence, with its numbers and holders.

    With *now*, times of the same day are told without the date.
    """
    text = _filled(PHRASES[explanation.reason], _values(explanation))
    if explanation.machine is not None:
        text = f"on {explanation.machine}, {text}"
    if explanation.detail:
        text = f"{text} ({explanation.detail})"
    if explanation.holders:
        text = f"{text}; {_holders(explanation.holders, now)}"
    return f"{text[0].upper()}{text[1:]}."


def remedy(reason: Reason) -> str:
    """Return one sentence on what would change it, and who can do that."""
    return REMEDIES[reason]


def headline(
    state: State,
    *,
    explanation: Explanation | None = None,
    position: int | None = None,
    machine: str | None = None,
    parked: bool = False,
    now: datetime | None = None,
) -> str:
    """Return one plain sentence for a workload that is in *state* now."""
    if state is State.QUEUED:
        return _waiting(explanation, position, now, parked=parked)
    reason = None if explanation is None else sentence(explanation, now=now)
    where = f" on {machine}" if machine else ""
    if state in {State.FAILED, State.REFUSED, State.STOPPED}:
        return f"{_ENDS[state]}: {_inside(reason)}" if reason else f"{_ENDS[state]}."
    if state is State.UNKNOWN:
        silent = machine or "The machine"
        return f"{silent} does not answer; what runs there is kept."
    return _GOING[state].format(where=where)


_ENDS = {
    State.FAILED: "The start failed",
    State.REFUSED: "This cannot run as asked",
    State.STOPPED: "Stopped",
}

_GOING = {
    State.REQUESTED: "Asked for; not looked at yet.",
    State.PLACED: "A place was found{where}.",
    State.PREPARING: "Preparing the environment{where}.",
    State.STARTING: "Starting the server{where}.",
    State.READY: "Ready{where}.",
    State.STOPPING: "Stopping{where}.",
}


def _waiting(
    explanation: Explanation | None,
    position: int | None,
    now: datetime | None,
    *,
    parked: bool,
) -> str:
    parts = []
    if position:
        parts.append(f"{position} ahead of you.")
    elif position == 0:
        parts.append("You are next.")
    if explanation is None:
        parts.append("Waiting in line.")
    else:
        parts.append(sentence(explanation, now=now))
    if parked:
        parts.append("Your place is kept.")
    return " ".join(parts)


def _holders(holders: tuple[Holder, ...], now: datetime | None) -> str:
    told = [_holder(holder, now) for holder in holders[:_MOST_HOLDERS]]
    more = len(holders) - len(told)
    if more:
        told.append(f"and {more} more")
    return "held by " + ", ".join(told)


def _holder(holder: Holder, now: datetime | None) -> str:
    name = holder.owner or "somebody else"
    if holder.title:
        name = f"{name} ({holder.title})"
    if holder.ends_by is None:
        return f"{name} with no known end"
    return f"{name} until {_time(holder.ends_by, now)} at the latest"


def _time(moment: datetime, now: datetime | None) -> str:
    if now is not None and moment.date() == now.astimezone(moment.tzinfo).date():
        return f"{moment:%H:%M} {moment.tzname()}"
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname()}"


def _values(explanation: Explanation) -> dict[str, str]:
    """Return the placeholders that have a value."""
    values = {}
    if explanation.subject is not None:
        values["subject"] = explanation.subject
    for name in ("requested", "capacity", "free"):
        number = getattr(explanation, name)
        if number is not None:
            values[name] = _amount(number, explanation.unit)
    return values


def _filled(phrase: str, values: dict[str, str]) -> str:
    """Return *phrase* with its placeholders filled and its empty parts left out."""
    kept = _OPTIONAL.sub(
        lambda part: part[1] if _names(part[1]) <= values.keys() else "", phrase
    )
    return _PLACEHOLDER.sub(lambda name: values.get(name[1], "it"), kept)


def _names(part: str) -> set[str]:
    return set(_PLACEHOLDER.findall(part))


def _amount(number: int, unit: str | None) -> str:
    if unit == "bytes":
        return describe_bytes(number)
    if unit == "milli_cores":
        cores = format_cores(number)
        return f"{cores} core" if cores == "1" else f"{cores} cores"
    if unit == "seconds":
        return format_seconds(number)
    if unit is None:
        return str(number)
    name = unit.replace("_", " ")
    return f"{number} {name.removesuffix('s') if number == 1 else name}"


def _inside(text: str) -> str:
    """Return *text* for the inside of a sentence; a code or a name keeps its case."""
    return text if text[1:2].isupper() else f"{text[0].lower()}{text[1:]}"
