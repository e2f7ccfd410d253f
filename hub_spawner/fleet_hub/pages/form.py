"""The spawn form: one card per profile, with whether it can start now and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, select_autoescape

from fleet_contracts.amounts import describe_bytes
from fleet_contracts.changes import change_sentence
from fleet_contracts.language import (
    ENGLISH,
    language,
    mark,
    say,
    say_many,
    speaks_as_written,
    translated,
)
from fleet_contracts.reasons import ReasonKind
from fleet_contracts.sentences import say_cores, sentence
from fleet_contracts.telling import clock, ends_after
from fleet_hub.admission import Offer, Offers
from fleet_hub.pages import ASSETS, TEMPLATES, words
from fleet_hub.pages.ways_out import (
    WORD,
    may_begin_elsewhere,
    ways_sentence,
    wishes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLine:
    """One class of a profile as this user sees it now."""

    name: str
    title: str
    holds: str
    ends: str
    """When it ends by itself; empty: it does not."""
    state: str
    """free, busy, away, forbidden or never."""
    word: str
    ahead: str
    """How many wait for it already; empty: nobody does."""
    sentence: str
    selected: bool
    choosable: bool

    @property
    def word_inside(self) -> str:
        """The word for the inside of a line; other languages keep their capitals."""
        return self.word.lower() if language() is ENGLISH else self.word

    @property
    def glyph(self) -> str:
        """The sign that goes with the word, so that colour is never alone."""
        return GLYPHS[self.state]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One profile."""

    slug: str
    title: str
    description: str
    selected: bool
    classes: tuple[ClassLine, ...]

    @property
    def choosable(self) -> bool:
        """Some class of it may be asked for."""
        return any(line.choosable for line in self.classes)

    @property
    def shown(self) -> ClassLine:
        """The class that the card speaks of first."""
        return next((line for line in self.classes if line.selected), self.classes[0])


GLYPHS: Final = {
    "free": "✓",
    "busy": "●",
    "away": "‖",
    "forbidden": "✕",
    "never": "✕",
}
_WORDS: Final = {
    "free": mark("Can start now"),
    "busy": mark("Waits in line"),
    "away": mark("Waits for a machine"),
    "forbidden": mark("Not for you"),
    "never": mark("Cannot run here"),
}
_DEVICES: Final = {
    "cuda": (mark("%1 NVIDIA GPU"), "%1 NVIDIA GPUs"),
    "mps": (mark("%1 Apple GPU"), "%1 Apple GPUs"),
    "rocm": (mark("%1 AMD GPU"), "%1 AMD GPUs"),
}
_STATES: Final = {
    ReasonKind.NEVER: "never",
    ReasonKind.NOT_ALLOWED: "forbidden",
    ReasonKind.NOT_NOW: "away",
    ReasonKind.BUSY: "busy",
}

_TEMPLATES: Final = Environment(
    loader=FileSystemLoader([TEMPLATES, ASSETS]),
    autoescape=select_autoescape(["html"]),
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals["_"] = words.say


def render_form(
    offers: Offers | None,
    *,
    wanted: tuple[str, str | None] | None = None,
    last: Mapping[str, Any] | None = None,
    why_url: str = "",
    server: str | None = None,
) -> str:
    """Return the form's inside; *offers* None says that the controller is away.

    *why_url* is where each machine's reason is, for a profile and a server in the query.

    The card that *wanted* names is preselected, else the *last* choice, else the first
    that may be asked for.
    """
    cards = cards_of(offers, wanted=wanted, last=last) if offers else ()
    return _TEMPLATES.get_template("fleet/form.html").render(
        reachable=offers is not None,
        as_of=offers.as_of.isoformat() if offers else None,
        as_of_words=clock(offers.as_of) if offers else "",
        cards=cards,
        any_choosable=any(card.choosable for card in cards),
        wishes=wishes(offers.offers) if offers is not None else (),
        why_url=why_url,
        server=server,
    )


def cards_of(
    offers: Offers,
    *,
    wanted: tuple[str, str | None] | None = None,
    last: Mapping[str, Any] | None = None,
) -> tuple[Card, ...]:
    """Return the cards in the catalog's order."""
    by_profile: dict[str, list[Offer]] = {}
    for offer in offers.offers:
        by_profile.setdefault(offer.profile, []).append(offer)
    profile, class_name = _selection(by_profile, wanted, last)
    titles = {offer.class_name: offer.class_title for offer in offers.offers}
    return tuple(
        Card(
            slug=slug,
            title=group[0].title,
            description=group[0].description,
            selected=slug == profile,
            classes=_class_lines(
                group, class_name if slug == profile else None, titles, offers.as_of
            ),
        )
        for slug, group in by_profile.items()
    )


def _selection(
    by_profile: Mapping[str, list[Offer]],
    wanted: tuple[str, str | None] | None,
    last: Mapping[str, Any] | None,
) -> tuple[str | None, str | None]:
    candidates = [wanted] if wanted else []
    if last:
        candidates.append((str(last.get("profile")), last.get("class")))
    for profile, class_name in candidates:
        if any(offer.choosable for offer in by_profile.get(profile, [])):
            return profile, class_name
    for profile, group in by_profile.items():
        if any(offer.choosable for offer in group):
            return profile, None
    return None, None


def _class_lines(
    group: list[Offer],
    class_name: str | None,
    titles: Mapping[str, str],
    now: datetime,
) -> tuple[ClassLine, ...]:
    names = [offer.class_name for offer in group]
    if class_name not in names:
        class_name = next((o.class_name for o in group if o.choosable), names[0])
    return tuple(
        _class_line(offer, titles, now, selected=offer.class_name == class_name)
        for offer in group
    )


def _class_line(
    offer: Offer, titles: Mapping[str, str], now: datetime, *, selected: bool
) -> ClassLine:
    state, elsewhere = state_of(offer), may_begin_elsewhere(offer)
    return ClassLine(
        name=offer.class_name,
        title=offer.class_title,
        holds=holdings(offer),
        # What never runs does not end.
        ends=ends_after(offer.time_limits) if offer.choosable or elsewhere else "",
        state=state,
        word=translated(WORD if offer.ways_out else _WORDS[state]),
        ahead=say("%1 waiting", offer.waiting)
        if offer.waiting and offer.choosable
        else "",
        # "Can start now" says it all
        sentence="" if state == "free" else _told(offer, titles, now),
        selected=selected,
        # Without the wish it is refused, with its reason: never silently.
        choosable=offer.choosable or elsewhere,
    )


def _told(offer: Offer, titles: Mapping[str, str], now: datetime) -> str:
    """Return why it does not start now, and what would help."""
    change = change_sentence(offer.change) if offer.change is not None else ""
    why = offer.headline
    if offer.explanation is not None and not speaks_as_written():
        why = sentence(offer.explanation, now=now)
    parts = [why, change, ways_sentence(offer, titles)]
    return " ".join(part for part in parts if part)


def state_of(offer: Offer) -> str:
    """Return which of the five states an offer is in."""
    if offer.startable:
        return "free"
    kind = offer.explanation.kind if offer.explanation else None
    state = _STATES.get(kind, "busy") if kind else "busy"
    if not offer.choosable and state in {"busy", "away"}:
        return "never"
    return state


def holdings(offer: Offer) -> str:
    """Return what the offer holds of a machine, such as ``2 cores, 8 GiB memory``."""
    parts = [say_cores(offer.cpu_milli)]
    parts.append(say("%1 memory", describe_bytes(offer.memory_bytes)))
    if offer.devices:
        kinds = _DEVICES.get(offer.accelerator)
        parts.append(
            say_many(*kinds, offer.devices)
            if kinds
            else f"{offer.devices} {offer.accelerator}"
        )
    elif offer.accelerator == "mps":
        parts.append(say("the Apple GPU"))
    return ", ".join(parts)
