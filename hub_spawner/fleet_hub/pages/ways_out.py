"""What the spawn form offers where a choice can never run beside a server's files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fleet_contracts.filling import foreign
from fleet_contracts.language import mark, said, say, translated
from fleet_contracts.sentences import sentence
from fleet_hub.admission import Offer, WayOut


COPY: Final = "copy_files"
FRESH: Final = "fresh_folder"
WORD: Final = mark("Not beside your files")
WISHES: Final = {
    COPY: (
        "copy",
        mark(
            "Copy my files to where my choice can run. They also stay where they are."
        ),
    ),
    FRESH: (
        "fresh",
        mark(
            "Begin with an empty folder where my choice can run. "
            "My files stay where they are."
        ),
    ),
}
"""What may be wished for one's files: the option's value, and what it does."""


def may_begin_elsewhere(offer: Offer) -> bool:
    """Whether *offer* can be chosen away from the files, once that is wished."""
    return any(way.kind in WISHES for way in offer.ways_out)


def wishes(offers: Iterable[Offer]) -> tuple[tuple[str, str], ...]:
    """Return the wishes that some of *offers* can be chosen with."""
    kinds = {way.kind for offer in offers for way in offer.ways_out}
    return tuple(
        (value, translated(label))
        for kind, (value, label) in WISHES.items()
        if kind in kinds
    )


def ways_sentence(offer: Offer, titles: Mapping[str, str]) -> str:
    """Say what may be done instead; *titles* names the classes.  Empty: nothing."""
    told = [_told(way, titles) for way in offer.ways_out]
    if not told:
        return ""
    text = told[0]
    for other in told[1:]:
        text = say("{one}, or {other}", one=text, other=other)
    ways = say("{what}.", what=f"{text[0].upper()}{text[1:]}")
    if offer.no_copy is None:
        return ways
    why = sentence(offer.no_copy)
    hindered = say(
        "Your files cannot be copied: {why}", why=f"{why[0].lower()}{why[1:]}"
    )
    return f"{ways} {hindered}"


def _told(way: WayOut, titles: Mapping[str, str]) -> str:
    machine = foreign(way.machine) or None
    where = {"machine": machine} if machine else {}
    if way.kind == COPY:
        phrase = mark(
            "begin with a copy of your files[ on {machine}] (choose it below)"
        )
        return said(phrase, where)
    if way.kind == FRESH:
        phrase = mark(
            "begin with an empty folder[ on {machine}] (choose it below); "
            "your files stay"
        )
        return said(phrase, where)
    values = {"class": titles.get(way.class_name, way.class_name), **where}
    return said(mark("keep {class}[ on {machine}], beside your files"), values)
