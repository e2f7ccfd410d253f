"""An explanation as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from fleet_contracts.language import mark, speaking
from fleet_contracts.reasons import ReasonKind
from fleet_contracts.sentences import sentence
from fleet_hub.explaining.document import Answer, InLine, LineDocument, OnMachine
from fleet_hub.machine_words import plain
from fleet_hub.scheduling.nearness import nearness
from fleet_hub.terminal import Column, Style, cells, table, width, wrapped


GLYPHS: Final = {
    ReasonKind.NEVER: "✕",
    ReasonKind.NOT_ALLOWED: "✕",
    ReasonKind.FAILED: "✕",
    ReasonKind.NOT_NOW: "○",
    ReasonKind.BUSY: "●",
    ReasonKind.INFO: "‖",
}
_YES: Final = "✓"
_INDENT: Final = "  "
_MOST_PROFILES: Final = 40
KINDS: Final = {
    ReasonKind.NEVER: mark("never"),
    ReasonKind.NOT_ALLOWED: mark("not allowed"),
    ReasonKind.NOT_NOW: mark("not now"),
    ReasonKind.BUSY: mark("busy"),
    ReasonKind.FAILED: mark("failed"),
    ReasonKind.INFO: "",
}


def describe(answer: Answer, style: Style) -> str:
    """Return *answer* in words: the headline, what helps, and every machine."""
    with speaking(of_another=answer.of_another):
        blocks = [
            "\n".join(_top(answer, style)),
            "\n".join(_changes(answer, style)),
            "\n".join(_instead(answer, style)),
            "\n".join(_machines(answer, style)),
        ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def describe_line(document: LineDocument, style: Style) -> str:
    """Return everybody who waits as a table."""
    if not document.waiting:
        return "Nobody waits.\n"
    rows = [
        (
            str(place),
            one.user + (f"/{one.server}" if one.server else ""),
            one.profile
            + (
                f" · {one.class_name}"
                if one.class_name not in {None, one.profile}
                else ""
            ),
            _span(one.asked_at, document.as_of) + (" ‖" if one.parked else ""),
            _start(one, document.as_of),
            one.why.sentence,
            one.workload,
        )
        for place, one in enumerate(document.waiting, 1)
    ]
    columns = (
        Column(title="#", is_number=True),
        Column(title="User", is_prose=True),
        Column(title="Profile", is_prose=True),
        Column(title="Waited", is_number=True),
        Column(title="Not later than"),
        Column(title="Why", is_prose=True),
        Column(title="Workload"),
    )
    shown = table(columns, rows, style)
    parked = any(one.parked for one in document.waiting)
    note = "\n‖ JupyterHub let go of it; its place is kept." if parked else ""
    return f"{shown}{style.faint(note)}\n"


def _top(answer: Answer, style: Style) -> Iterator[str]:
    asked = answer.asked
    parts = [asked.user + (f"/{asked.server}" if asked.server else "")]
    version = f" {asked.profile_version}" if asked.profile_version else ""
    parts.append(f"profile {asked.profile}{version}")
    if asked.class_name:
        parts.append(f"class {asked.class_name}")
    if asked.workload:
        parts.append(asked.workload)
    yield style.faint(wrapped(" · ".join(parts), width()))
    glyph = _YES if answer.starts_now else "●"
    if answer.why is not None:
        glyph = GLYPHS[answer.why.kind]
    yield style.bold(
        wrapped(answer.headline, width(), indent=f"{glyph} ", hanging=_INDENT)
    )
    for text in _details(answer):
        yield wrapped(text, width(), indent=_INDENT)
    moment = f"as of {answer.as_of:%Y-%m-%d %H:%M:%S} UTC"
    yield style.faint(wrapped(moment, width(), indent=_INDENT))


def _details(answer: Answer) -> Iterator[str]:
    if answer.machine is not None:
        where = "It would start on" if answer.starts_now else "It is on"
        yield f"{where} {answer.machine}."
    if answer.no_later_than is not None:
        starts = "would start" if answer.asked.workload is None else "starts"
        moment = _moment(answer.no_later_than, answer.as_of)
        yield f"It {starts} no later than {moment}."
    if answer.likely is not None:
        likely = answer.likely
        yield (
            f"It likely starts by {_moment(likely.early, answer.as_of)}, or by "
            f"{_moment(likely.late, answer.as_of)}: half and nine in ten of "
            f"{likely.samples} similar starts came as early."
        )
    if answer.ends is not None:
        yield answer.ends.sentence
    if answer.profiles is not None:
        named = ", ".join(answer.profiles[:_MOST_PROFILES]) or "none"
        more = len(answer.profiles) - _MOST_PROFILES
        left = f" and {more} more" if more > 0 else ""
        yield f"Profiles of {answer.asked.user}: {named}{left}."
    elif answer.why is not None:
        yield answer.why.remedy
    if not answer.asked.groups_known:
        yield (
            f"{answer.asked.user} has not asked for anything yet, so no groups are "
            "known: name them with --group."
        )


def _changes(answer: Answer, style: Style) -> Iterator[str]:
    if answer.changes:
        yield style.bold("It would fit")
        for help_ in answer.changes:
            text = f"{help_.sentence[0].lower()}{help_.sentence[1:]}"
            yield wrapped(text, width(), indent=_INDENT, hanging=_INDENT * 2)


def _instead(answer: Answer, style: Style) -> Iterator[str]:
    told = [one.told for one in answer.ways_out]
    if not told:
        return
    whose = "It" if answer.asked.server is not None else "The user's default server"
    there = f"{whose} has its files on {answer.asked.files_on}.  Instead"
    yield style.bold(wrapped(there, width()))
    if answer.no_copy is not None:
        told.append(answer.no_copy)
    for one in told:
        code = one.explanation.reason.value
        text = f"{code}: {plain(one.sentence, 2000)} {one.remedy}"
        yield wrapped(text, width(), indent=_INDENT, hanging=_INDENT * 2)


def _machines(answer: Answer, style: Style) -> Iterator[str]:
    """Yield the machines, those that say the same in the same breath."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for one in sorted(answer.machines, key=_nearest_first):
        alike.setdefault(_says(one, answer.as_of), []).append(one.machine)
    if not alike:
        return
    total = sum(len(said.machines) for said in answer.alike)
    yield style.bold(f"Machines ({total})")
    yield from _counts(answer, total)
    for (glyph, code, text), names in alike.items():
        lead = f"{_INDENT}{glyph} "
        hanging = " " * cells(lead)
        yield wrapped(", ".join(names), width(), indent=lead, hanging=hanging)
        told = f"{code}: {text}" if code else text
        yield wrapped(told, width(), indent=hanging)
    if answer.page < answer.pages:
        yield wrapped(f"The next: --page {answer.page + 1}", width(), indent=_INDENT)


def _counts(answer: Answer, total: int) -> Iterator[str]:
    """Yield how many machines say what, where not all of them are told."""
    if answer.pages == 1:
        return
    takers = total - sum(answer.counts.values())
    counted = [f"{takers} take it now"] if takers else []
    counted += [f"{count} {reason.value}" for reason, count in answer.counts.items()]
    yield wrapped("; ".join(counted), width(), indent=_INDENT)
    page = f"Page {answer.page} of {answer.pages}, the nearest machines first:"
    yield wrapped(page, width(), indent=_INDENT)


def _says(one: OnMachine, now: datetime) -> tuple[str, str, str]:
    if one.why_not is None:
        return _YES, "", "takes it now"
    why = one.why_not
    kind = KINDS[why.kind]
    reason = why.explanation.reason.value
    alone = why.explanation.model_copy(update={"machine": None})
    return (
        GLYPHS[why.kind],
        f"{reason} ({kind})" if kind else reason,
        plain(sentence(alone, now=now), 2000),
    )


def _nearest_first(one: OnMachine) -> tuple[bool, tuple[bool, int], str]:
    """Return what sorts the machines: those that take it, then the nearest misses."""
    if one.why_not is None:
        return False, (False, 0), one.machine
    may_clear, distance = nearness(one.why_not.explanation.reason)
    return True, (not may_clear, -distance), one.machine


def _span(since: datetime, now: datetime) -> str:
    """Return how long ago, in the largest unit that says enough."""
    seconds = max(0, int((now - since).total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _start(one: InLine, now: datetime) -> str:
    """Return the promise, and by when nine in ten similar starts came."""
    if one.no_later_than is None:
        return "—"
    bound = _moment(one.no_later_than, now)
    if one.likely is None:
        return bound
    return f"{bound} (likely {_moment(one.likely.late, now)})"


def _moment(moment: datetime, now: datetime) -> str:
    if moment.date() == now.date():
        return f"{moment:%H:%M} UTC"
    return f"{moment:%Y-%m-%d %H:%M} UTC"
