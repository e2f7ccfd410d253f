"""Sentences for people, made from codes and numbers, in the language that is spoken.

``sentence`` says why in one sentence, ``remedy`` what would change it, ``headline``
what is going on now.
"""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_DOWN, ROUND_UP

from fleet_contracts.allocations import State
from fleet_contracts.amounts import describe_bytes, format_seconds
from fleet_contracts.causes import because
from fleet_contracts.filling import foreign
from fleet_contracts.language import mark, said, say_many, translated
from fleet_contracts.phrases import PHRASES, REMEDIES
from fleet_contracts.reasons import Explanation, Holder, Reason, ReasonKind
from fleet_contracts.timeline_phrases import HEADLINES, TEXTS


_MOST_HOLDERS = 3
_CODES = frozenset(Reason)
_COUNTED = {
    "devices": (mark("%1 device"), "%1 devices"),
    "workloads": (mark("%1 workload"), "%1 workloads"),
}


def sentence(explanation: Explanation, *, now: datetime | None = None) -> str:
    """Return *explanation* as one sentence, with its numbers and holders.

    With *now*, times of the same day are told without the date.
    """
    text = said(PHRASES[explanation.reason], _values(explanation))
    if explanation.machine is not None:
        text = _text("on_machine", machine=explanation.machine, what=text)
    if explanation.detail:
        text = _text(
            "with_detail",
            what=text,
            detail=foreign(translated(explanation.detail)).rstrip("."),
        )
    if explanation.holders and explanation.reason is not Reason.PROMISE_BROKEN:
        holders = _holders(explanation.holders, now)
        text = _text("with_holders", what=text, holders=holders)
    return _text("sentence", what=f"{text[0].upper()}{text[1:]}")


def remedy(reason: Reason) -> str:
    """Return one sentence on what would change it, and who can do that."""
    return translated(REMEDIES[reason])


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
    values = {}
    if machine or state is State.UNKNOWN:
        values["machine"] = machine or _text("the_machine")
    if explanation is not None:
        values["why"] = _inside(sentence(explanation, now=now)).removesuffix(".")
    return said(HEADLINES[state], values)


def prospect(
    explanation: Explanation | None, *, position: int = 0, now: datetime | None = None
) -> str:
    """Return one sentence on what would happen to something that is not asked for yet.

    Without an explanation nothing stands in its way.
    """
    if explanation is None:
        return _text("would_start")
    why = _inside(sentence(explanation, now=now)).removesuffix(".")
    if explanation.kind in {ReasonKind.NEVER, ReasonKind.NOT_ALLOWED}:
        return said(HEADLINES[State.REFUSED], {"why": why})
    values = {"why": why} | ({"ahead": str(position)} if position else {})
    return said(TEXTS["would_wait"], values)


def _waiting(
    explanation: Explanation | None,
    position: int | None,
    now: datetime | None,
    *,
    parked: bool,
) -> str:
    parts = []
    if position:
        parts.append(_text("ahead", count=str(position)))
    elif position == 0:
        parts.append(_text("you_are_next"))
    if explanation is None:
        parts.append(translated(HEADLINES[State.QUEUED]))
    else:
        parts.append(sentence(explanation, now=now))
    if parked:
        parts.append(_text("place_is_kept"))
    return " ".join(parts)


def _holders(holders: tuple[Holder, ...], now: datetime | None) -> str:
    shown = holders[:_MOST_HOLDERS]
    held = [holder_words(holder, now) for holder in shown if not holder.promised]
    promised = [_named(holder) for holder in shown if holder.promised]
    more = len(holders) - len(shown)
    if more:
        (promised or held).append(_text("more_holders", count=str(more)))
    parts = {"held_by": held, "promised_to": promised}
    return "; ".join(
        _text(key, holders=", ".join(told)) for key, told in parts.items() if told
    )


def _named(holder: Holder) -> str:
    name = foreign(holder.owner) or _text("somebody")
    if holder.own:
        # Somebody else who reads this is told the name.
        name = _text("you", owner=name)
    if holder.title:
        name = _text("with_title", owner=name, title=foreign(holder.title))
    return name


def holder_words(holder: Holder, now: datetime | None) -> str:
    """Return who holds something, until when, and how it rests or is likely to end."""
    name = _named(holder)
    if holder.ends_by is None:
        text = _text("no_known_end", name=name)
    else:
        text = _text("until", name=name, time=_time(holder.ends_by, now))
    if holder.idle_since is not None:
        since = _time(holder.idle_since, now)
        if holder.idle_ends is None:
            text = _text("at_rest", holder=text, time=since)
        else:
            ends = _time(holder.idle_ends, now)
            text = _text("idle", holder=text, since=since, time=ends)
    if holder.likely_end is not None:
        late, count = holder.likely_end.late, str(holder.likely_end.samples)
        text = _text("likely_done", holder=text, time=_time(late, now), count=count)
    if holder.asked_at is None:
        return text
    return _text("asked", holder=text, time=_time(holder.asked_at, now))


def _time(moment: datetime, now: datetime | None) -> str:
    clock = f"{moment.hour:02}:{moment.minute:02} {moment.tzname()}"
    day = moment.date()
    if now is not None and day == now.astimezone(moment.tzinfo).date():
        return clock
    return f"{day.isoformat()} {clock}"


def _values(explanation: Explanation) -> dict[str, str]:
    """Return the placeholders that have a value."""
    values: dict[str, str] = {}
    if explanation.reason is Reason.PROMISE_BROKEN:
        why = because(explanation)
        values |= {} if why is None else {"subject": why}
    elif explanation.reason is Reason.AGENT_REJECTED and explanation.subject in _CODES:
        # Its own word is the cause, and "rejected" only says who found it.
        values["subject"] = said(PHRASES[Reason(explanation.subject)], {})
    elif explanation.subject is not None:
        values["subject"] = foreign(explanation.subject)
    for name in ("requested", "capacity", "free"):
        number = getattr(explanation, name)
        if number is not None:
            # What is asked for is never said to be less, nor what there is more: the
            # one that is too large for the other must not read as its equal.
            rounding = ROUND_UP if name == "requested" else ROUND_DOWN
            values[name] = _amount(number, explanation.unit, rounding)
    if explanation.free is not None:
        values["left"] = _left(explanation.free, explanation.capacity, explanation.unit)
    return values


def _left(free: int, capacity: int | None, unit: str | None) -> str:
    """Return what is free of how much; the unit was just named, if it is a word."""
    if capacity is None:
        return _amount(free, unit, ROUND_DOWN)
    if unit == "milli_cores":
        free_text, all_text = f"{free / 1000:g}", f"{capacity / 1000:g}"
    elif unit in _COUNTED:
        free_text, all_text = str(free), str(capacity)
    else:
        free_text = _amount(free, unit, ROUND_DOWN)
        all_text = _amount(capacity, unit, ROUND_DOWN)
    return _text("part", free=free_text, capacity=all_text)


def _amount(number: int, unit: str | None, rounding: str) -> str:
    if unit == "bytes":
        return describe_bytes(number, rounding)
    if unit == "milli_cores":
        return say_cores(number)
    if unit == "seconds":
        return format_seconds(number)
    if unit is None:
        return str(number)
    if unit in _COUNTED:
        return say_many(*_COUNTED[unit], number)
    name = unit.replace("_", " ")
    return f"{number} {name.removesuffix('s') if number == 1 else name}"


def say_cores(milli: int) -> str:
    """Return thousandths of a core as people say them: ``1 core``, ``2.5 cores``."""
    count = milli / 1000
    return say_many("%1 core", "%1 cores", int(count) if count % 1 == 0 else count)


def _text(key: str, /, **values: str) -> str:
    return said(TEXTS[key], values)


def _inside(text: str) -> str:
    """Return *text* for the inside of a sentence; a code or a name keeps its case."""
    return text if text[1:2].isupper() else f"{text[0].lower()}{text[1:]}"
