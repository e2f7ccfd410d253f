"""Says what ``steps.py`` found: for pages without a script, and for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from fleet_contracts.allocations import Phase, State
from fleet_contracts.amounts import describe_bytes
from fleet_contracts.filling import foreign
from fleet_contracts.language import (
    said,
    say,
    say_many,
    speaks_as_written,
    translated,
)
from fleet_contracts.sentences import headline, say_cores, sentence
from fleet_contracts.steps import GLYPHS, Run, Shown, Step, StepStatus
from fleet_contracts.time_limits import TimeLimit, TimeLimits
from fleet_contracts.timeline import (
    Limits,
    Progress,
    Timeline,
    TimelineEvent,
    TimelineKind,
)
from fleet_contracts.timeline_phrases import (
    EVENTS,
    HEADLINES,
    PHASES,
    STATES,
    STATUSES,
    TEXTS,
    WORK,
)


_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


def duration(seconds: float | None) -> str:
    """Return a length of time with its two largest units; a dash: it is not known."""
    if seconds is None:
        return "—"
    whole = max(0, int(seconds))
    days, rest = divmod(whole, _DAY)
    hours, rest = divmod(rest, _HOUR)
    minutes, left = divmod(rest, _MINUTE)
    if days:
        return say_many("%1 day %2 h", "%1 days %2 h", days, hours)
    if hours:
        return say("%1 h %2 min", hours, minutes)
    return say("%1 min %2 s", minutes, left) if minutes else say("%1 s", left)


def span(seconds: float) -> str:
    """Return a length of time that somebody chose: ``8 h``, and not ``8 h 0 min``."""
    whole = max(0, int(seconds))
    if whole >= _DAY and whole % _DAY < _HOUR:
        return say_many("%1 day", "%1 days", whole // _DAY)
    if _HOUR <= whole < _DAY and whole % _HOUR < _MINUTE:
        return say("%1 h", whole // _HOUR)
    if _MINUTE <= whole < _HOUR and whole % _MINUTE == 0:
        return say("%1 min", whole // _MINUTE)
    return duration(seconds)


def glyph(status: StepStatus) -> str:
    """Return the sign of a status; it stands beside the word."""
    return GLYPHS[status]


def status_word(status: StepStatus) -> str:
    """Return what the sign says."""
    return translated(STATUSES[status])


def label(step: Step, timeline: Timeline | None) -> str:
    """Name a phase."""
    values = {"machine": translated(TEXTS["a_machine"])}
    if timeline is not None:
        profile = foreign(timeline.profile_title or timeline.profile)
        machine = foreign(step.machine or timeline.machine)
        if profile:
            values["profile"] = profile
        if machine and step.status is not StepStatus.TODO:
            values["machine"] = machine
    return said(PHASES[step.phase], values)


def headline_words(timeline: Timeline, account: Shown) -> str:
    """Return the headline, with how long the admission took once it is over."""
    if timeline.state is not State.READY or account.total_seconds is None:
        return _headline(timeline)
    values = {"took": duration(account.total_seconds)}
    if timeline.machine:
        values["machine"] = timeline.machine
    return said(HEADLINES[State.READY], values)


def _headline(timeline: Timeline) -> str:
    """Return the document's own headline, which is in English, in any language."""
    if speaks_as_written():
        return foreign(timeline.headline)
    return headline(
        timeline.state,
        explanation=timeline.explanation,
        position=timeline.position,
        machine=timeline.machine,
        parked=timeline.parked,
        now=timeline.as_of,
    )


def took(step: Step, account: Shown | None) -> str:
    """Return how long a phase took, or for the last one when it was reached."""
    if step.phase is Phase.READY:
        at = account.ready_at if account else None
        return time_at(at, account.as_of) if account and at else ""
    return "" if step.seconds is None else duration(step.seconds)


def spent(account: Shown) -> str:
    """Say where the time went; empty where the beginning is no longer kept."""
    if account.total_seconds is None:
        return ""
    values = {
        "total": duration(account.total_seconds),
        "waiting": duration(account.waiting_seconds),
    }
    return said(TEXTS["spent"], values)


def event_words(event: TimelineEvent) -> str:
    """Say what happened."""
    if event.progress is not None:
        return progress_words(event.progress)
    if event.kind is TimelineKind.NOTE and event.explanation is not None:
        return sentence(event.explanation, now=event.at)
    values = {"machine": foreign(event.machine) or translated(TEXTS["a_machine"])}
    words = said(EVENTS[event.kind], values)
    return f"{words[0].upper()}{words[1:]}" if not event.machine else words


def event_with_why(event: TimelineEvent, now: datetime) -> str:
    """Say what happened, and why where that is known."""
    words = event_words(event)
    if event.explanation is None:
        return words
    why = sentence(event.explanation, now=now)
    return why if event.kind is TimelineKind.NOTE else f"{words}: {why}"


def note_words(event: TimelineEvent, now: datetime) -> str:
    """Say what happened beside the steps, and when."""
    why = sentence(event.explanation, now=now) if event.explanation else ""
    return f"{time_at(event.at, now)} {why}"


def progress_words(progress: Progress) -> str:
    """Say how far a step is; never a percentage, which would be a guess."""
    spelled = foreign(progress.step.replace("_", " "))
    known = WORK.get(progress.step)
    work = translated(known) if known else f"{spelled[:1].upper()}{spelled[1:]}"
    if not progress.total:
        return work
    is_bytes = progress.unit == "bytes"
    done, total = (
        describe_bytes(amount) if is_bytes else str(amount)
        for amount in (progress.done, progress.total)
    )
    return said(TEXTS["counted"], {"work": work, "done": done, "total": total})


def limit_lines(limits: Limits, now: datetime) -> list[str]:
    """Say which limits are in force."""
    lines = []
    if limits.starts_by is not None:
        lines.append(said(TEXTS["starts_by"], {"time": time_at(limits.starts_by, now)}))
    likely = limits.likely
    is_past = likely is not None and now > likely.late
    if likely is not None and not is_past:
        values = {
            "early": time_at(likely.early, now),
            "late": time_at(likely.late, now),
            "count": str(likely.samples),
        }
        lines.append(said(TEXTS["likely_start"], values))
    if limits.longer_than_usual or is_past:
        lines.append(translated(TEXTS["longer_than_usual"]))
    lines += _end_lines(limits, now)
    if limits.metal_reserved:
        lines.append(translated(TEXTS["metal"]))
    if limits.devices:
        lines.append(say_many("%1 GPU", "%1 GPUs", limits.devices))
    if limits.cpu_milli:
        lines.append(say_cores(limits.cpu_milli))
    if limits.memory_bytes:
        amount = describe_bytes(limits.memory_bytes)
        lines.append(said(TEXTS["memory"], {"amount": amount}))
    return lines


def _end_lines(limits: Limits, now: datetime) -> Iterator[str]:
    if limits.ends_at is not None:
        left = (limits.ends_at - now).total_seconds()
        phrase = TEXTS["ends" if left > 0 else "ended"]
        values = {"time": time_at(limits.ends_at, now), "left": duration(left)}
        yield said(phrase, values)
    if limits.idle_ends is not None:
        yield said(TEXTS["idle_ends"], {"time": time_at(limits.idle_ends, now)})
    ends = ends_after(limits.time_limits)
    if ends:
        yield ends


def ends_after(limits: TimeLimits) -> str:
    """Say when a server ends by itself, and what set that; empty: it does not.

    An entry that set both is named once, at the end.
    """
    limit, idle = limits.limit, limits.idle_limit
    by, whose = _set_by(limit), _set_by(idle)
    values = {
        "limit": _span_of(limit),
        "idle": _span_of(idle),
        "by": "" if by == whose else by,
        # Behind one of which nobody knows it would speak of both.
        "whose": "" if limit is not None and not by else whose,
    }
    if limit is None and idle is None:
        return ""
    phrase = TEXTS["ends_idle" if limit is None else "ends_after"]
    return said(phrase, {name: text for name, text in values.items() if text})


def _span_of(limit: TimeLimit | None) -> str:
    return "" if limit is None else span(limit.seconds)


def _set_by(limit: TimeLimit | None) -> str:
    """Say which entry set *limit*; empty: it is not known."""
    if limit is None or limit.set_by is None:
        return ""
    return translated(TEXTS[f"set_by_{limit.set_by.value}"])


def time_at(at: datetime, now: datetime) -> str:
    """Return the time of day, and the day too where it is another one."""
    return clock(at) if at.date() == now.date() else f"{at:%Y-%m-%d} {clock(at)}"


def run_words(run: Run) -> str:
    """Say how an earlier start went."""
    admitted = (
        translated(TEXTS["never_ready"])
        if run.admitted_seconds is None
        else said(TEXTS["ready_in"], {"took": duration(run.admitted_seconds)})
    )
    end = (
        sentence(run.explanation)
        if run.explanation
        else translated(STATES[run.outcome])
    )
    return " · ".join([moment(run.began), admitted, end])


def title(timeline: Timeline | None) -> str:
    """Name the whole."""
    server = foreign(timeline.server) if timeline else ""
    return said(TEXTS["title"], {"server": server} if server else {})


def clock(at: datetime) -> str:
    """Return a time of day with its zone."""
    return f"{at:%H:%M:%S} {at.tzname()}"


def moment(at: datetime) -> str:
    """Return a day and a time with its zone."""
    return f"{at:%Y-%m-%d %H:%M:%S} {at.tzname()}"
