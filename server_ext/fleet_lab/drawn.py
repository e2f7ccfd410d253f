"""Draws a timeline without a script: as a plain table, and as text.

No style, no class and no script, so that the sanitisers of untrusted notebooks and of
code hosts keep it; every text in it that anybody chose is escaped.
"""

from __future__ import annotations

import html

from fleet_contracts import telling
from fleet_contracts.language import say, translated
from fleet_contracts.sentences import remedy, sentence
from fleet_contracts.steps import Shown, Step, shown
from fleet_contracts.telling import (
    event_with_why,
    glyph,
    headline_words,
    label,
    limit_lines,
    moment,
    note_words,
    progress_words,
    run_words,
    spent,
    status_word,
    time_at,
    took,
)
from fleet_contracts.timeline import Timeline
from fleet_contracts.timeline_phrases import TEXTS


_WIDTH = 10


def as_html(timeline: Timeline, notice: str = "") -> str:
    """Return a table with the five phases, and lists of what came with them."""
    account = shown(timeline)
    rows = "".join(_html_row(step, timeline, account) for step in account.steps)
    lists = [
        (_text("since_then"), _since(account)),
        (_text("limits"), limit_lines(timeline.limits, timeline.as_of)),
        (_text("earlier_starts"), [run_words(run) for run in account.runs]),
    ]
    lines = [headline_words(timeline, account), notice, spent(account)]
    head = "".join(
        f'<th scope="col">{escape(_text(name))}</th>'
        for name in ("step", "status", "took", "why")
    )
    return (
        "".join(f"<p>{escape(line)}</p>" for line in lines if line)
        + f"<table><caption>{escape(title(timeline))}</caption>"
        f"<thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        + "".join(_html_list(name, items) for name, items in lists if items)
    )


def as_text(timeline: Timeline) -> str:
    """Return the same as lines of text."""
    account = shown(timeline)
    lines = [
        title(timeline),
        headline_words(timeline, account),
        spent(account),
        "",
        *(
            line
            for step in account.steps
            for line in _text_lines(step, timeline, account)
        ),
    ]
    for name, items in (
        (_text("since_then"), _since(account)),
        (_text("limits"), limit_lines(timeline.limits, timeline.as_of)),
        (_text("earlier_starts"), [run_words(run) for run in account.runs]),
    ):
        if items:
            lines += ["", name, *(f"  {item}" for item in items)]
    return "\n".join(lines)


def title(timeline: Timeline) -> str:
    """Name the whole, with the moment at which it is frozen."""
    return say(
        "{what}, as of {time}",
        what=telling.title(timeline),
        time=moment(timeline.as_of),
    )


def _text(name: str) -> str:
    return translated(TEXTS[name])


def escape(text: str) -> str:
    """Return *text* for between two tags: it stands in no attribute."""
    return html.escape(text, quote=False)


def _html_row(step: Step, timeline: Timeline, account: Shown) -> str:
    why = "<br>".join(escape(line) for line in _why(step, timeline))
    status = f"{glyph(step.status)} {status_word(step.status)}"
    return (
        f'<tr><th scope="row">{escape(label(step, timeline))}</th>'
        f"<td>{escape(status)}</td><td>{escape(took(step, account))}</td>"
        f"<td>{why}</td></tr>"
    )


def _html_list(name: str, items: list[str]) -> str:
    rows = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<p>{escape(name)}</p><ul>{rows}</ul>"


def _text_lines(step: Step, timeline: Timeline, account: Shown) -> list[str]:
    status = f"{glyph(step.status)} {status_word(step.status)}".ljust(_WIDTH + 4)
    line = f"{status}{label(step, timeline)}  {took(step, account)}".rstrip()
    return [line, *(f"{'':{_WIDTH + 4}}  {why}" for why in _why(step, timeline))]


def _why(step: Step, timeline: Timeline) -> list[str]:
    """Return why the phase took its time, what would help, and what was done."""
    lines = [progress_words(progress) for progress in step.progress]
    if step.explanation is not None:
        told = step.explanation
        lines[:0] = [sentence(told, now=timeline.as_of)]
        if step.is_now:
            lines[1:1] = [remedy(told.reason)]
    return lines + [note_words(event, timeline.as_of) for event in step.notes]


def _since(account: Shown) -> list[str]:
    return [
        f"{time_at(event.at, account.as_of)}  {event_with_why(event, account.as_of)}"
        for event in account.since
    ]
