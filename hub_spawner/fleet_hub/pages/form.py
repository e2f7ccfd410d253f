"""The spawn form: one card per profile, with whether it can start now and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, select_autoescape

from fleet_contracts.amounts import describe_bytes
from fleet_contracts.reasons import ReasonKind
from fleet_hub.admission import Offer, Offers
from fleet_hub.pages import ASSETS, TEMPLATES
from fleet_hub.pages.rows import in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLine:
    """One class of a profile as this user sees it now."""

    name: str
    title: str
    holds: str
    state: str
    """free, busy, away, forbidden or never."""
    word: str
    sentence: str
    selected: bool
    choosable: bool

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
    "free": "Can start now",
    "busy": "Waits in line",
    "away": "Waits for a machine",
    "forbidden": "Not for you",
    "never": "Cannot run here",
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


def render_form(
    offers: Offers | None,
    *,
    wanted: tuple[str, str | None] | None = None,
    last: Mapping[str, Any] | None = None,
) -> str:
    """Return the form's inside; *offers* None says that the controller is away.

    The card that *wanted* names is preselected, else the *last* choice, else the first
    that may be asked for.
    """
    cards = cards_of(offers, wanted=wanted, last=last) if offers else ()
    return _TEMPLATES.get_template("fleet/form.html").render(
        reachable=offers is not None,
        as_of=offers.as_of.isoformat() if offers else None,
        cards=cards,
        any_choosable=any(card.choosable for card in cards),
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
    return tuple(
        Card(
            slug=slug,
            title=group[0].title,
            description=group[0].description,
            selected=slug == profile,
            classes=_class_lines(group, class_name if slug == profile else None),
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


def _class_lines(group: list[Offer], class_name: str | None) -> tuple[ClassLine, ...]:
    names = [offer.class_name for offer in group]
    if class_name not in names:
        class_name = next((o.class_name for o in group if o.choosable), names[0])
    return tuple(_class_line(offer, offer.class_name == class_name) for offer in group)


def _class_line(offer: Offer, selected: bool) -> ClassLine:  # noqa: FBT001 - positional in a comprehension
    state = state_of(offer)
    return ClassLine(
        name=offer.class_name,
        title=offer.class_title,
        holds=holdings(offer),
        state=state,
        word=_WORDS[state],
        # "Can start now" says it all
        sentence="" if state == "free" else offer.headline,
        selected=selected,
        choosable=offer.choosable,
    )


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
    cores = offer.cpu_milli / 1000
    parts = [f"{cores:g} {'core' if cores == 1 else 'cores'}"]
    parts.append(f"{describe_bytes(offer.memory_bytes)} memory")
    if offer.devices:
        kind = {"cuda": "NVIDIA GPU", "mps": "Apple GPU", "rocm": "AMD GPU"}.get(
            offer.accelerator, offer.accelerator
        )
        parts.append(f"{offer.devices} {kind}{'s' if offer.devices > 1 else ''}")
    elif offer.accelerator == "mps":
        parts.append("the Apple GPU")
    if offer.limit_seconds:
        parts.append(f"for at most {in_words(round(offer.limit_seconds))}")
    return ", ".join(parts)
