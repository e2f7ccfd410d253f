"""From the admin's YAML to a catalog, or to all of its faults at once.

Every fault has its file, its line and a remedy.  No message repeats a ref.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from fleet_contracts.base import SLUG_PATTERN
from fleet_contracts.catalog import Catalog, Shares, TrustPolicy
from fleet_contracts.catalog_checks import Draft, Place, Placed, check
from fleet_contracts.catalog_entries import (
    ClassEntry,
    ProfileEntry,
    QuotaEntry,
    RuntimeEntry,
    SharesEntry,
    TrustEntry,
)
from fleet_contracts.catalog_yaml import Document, Fault, Path, Source, read_yaml


_LISTS: Final = ("classes", "runtimes", "profiles", "quotas")
_SINGLE: Final = ("shares", "trust")
_KEYS: Final = (*_LISTS, *_SINGLE)
_NAMED: Final = ("classes", "runtimes", "profiles")

_LIST: Final = ("must be a list", "Write it as [one, two].")
_MAPPING: Final = ("must have keys and values", "Write them below it, indented.")
_SHAPES: Final = {
    "string_type": ("must be a text", "Put the value in quotes."),
    "string_too_short": ("is empty", "Write something, or remove the key."),
    "string_too_long": ("is too long", "Keep it below 1000 characters."),
    "tuple_type": _LIST,
    "too_short": ("is empty", "Name at least one."),
    "model_type": _MAPPING,
    "dict_type": _MAPPING,
    "int_parsing": ("must be a whole number", "Write digits only."),
    "int_type": ("must be a whole number", "Write digits only."),
    "float_parsing": ("must be a number", "Write digits only."),
    "greater_than": ("must be above 0", "Write a larger number."),
    "greater_than_equal": ("must not be negative", "Write 0 or more."),
    "string_pattern_mismatch": ("must look like 8.0", "Write major.minor."),
}
"""What pydantic's codes mean to somebody who edits YAML, and what to do."""


class CatalogError(ValueError):
    """A catalog that cannot be used; ``faults`` has all that is wrong with it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        """Carry *faults*, in the order of files and lines."""
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


def parse_catalog(sources: Sequence[Source]) -> Catalog:
    """Return the catalog that *sources* describe together, in their order.

    Raises:
        CatalogError: something is wrong with it.
    """
    documents = [read_yaml(source) for source in sources]
    draft = Draft()
    single: dict[str, Placed[Any]] = {}
    for document in documents:
        if _is_mapping(document):
            _read_document(document, draft, single)
    _check_names(draft, documents)
    check(draft)
    if not draft.profiles and not any(document.faults for document in documents):
        nothing = documents[0] if documents else Document(source=Source("catalog", ""))
        nothing.blame((), "the catalog offers nothing", "Add at least one profile.")
        documents = documents or [nothing]
    faults = [
        fault
        for document in documents
        for fault in sorted(document.faults, key=lambda item: item.line)
    ]
    if faults:
        raise CatalogError(faults)
    return _catalog(draft, single)


def _catalog(draft: Draft, single: dict[str, Placed[Any]]) -> Catalog:
    return Catalog(
        classes=tuple(item.model for item in draft.classes),
        runtimes=tuple(item.model for item in draft.runtimes),
        profiles=tuple(item.model for item in draft.profiles),
        quotas=tuple(item.model for item in draft.quotas),
        shares=single["shares"].model if "shares" in single else Shares(),
        trust=single["trust"].model if "trust" in single else TrustPolicy(),
    )


def _is_mapping(document: Document) -> bool:
    if document.data is None:
        return False
    if isinstance(document.data, dict):
        return True
    document.blame(
        (), "the file must be a mapping", f"Begin it with one of {', '.join(_KEYS)}."
    )
    return False


def _read_document(
    document: Document, draft: Draft, single: dict[str, Placed[Any]]
) -> None:
    for key, value in document.data.items():
        if key not in _KEYS:
            document.blame((key,), f"the key {key!r} is unknown", _guess(key, _KEYS))
        elif value is None:
            continue
        elif key in _SINGLE:
            _read_single(document, key, value, single)
        elif isinstance(value, list):
            _read_list(document, key, value, draft)
        else:
            document.blame(
                (key,), f"{key} must be a list", "Begin each entry with a dash."
            )


def _read_list(
    document: Document, section: str, values: list[Any], draft: Draft
) -> None:
    entry: Any = {
        "classes": ClassEntry,
        "runtimes": RuntimeEntry,
        "profiles": ProfileEntry,
        "quotas": QuotaEntry,
    }[section]
    placed: list[Placed[Any]] = getattr(draft, section)
    for number, value in enumerate(values):
        place = Place(document, (section, number))
        model = _read_entry(entry, value, place)
        if model is not None:
            placed.append(Placed(model=model, place=place))
        else:
            # What it would have been called or would have named is not reported too.
            draft.malformed.setdefault(section, set()).update(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in *value*."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _read_single(
    document: Document, section: str, value: Any, single: dict[str, Placed[Any]]
) -> None:
    if section in single:
        first = single[section].place.document.source.name
        document.blame(
            (section,),
            f"{section} stands twice, first in {first}",
            "Keep it in one file.",
        )
        return
    if section == "trust" and isinstance(value, dict) and "weak" in value:
        document.blame(
            (section, "weak"),
            "weak isolation serves the machine's owner only",
            "Remove the key: no setting widens it.",
        )
        value = {key: item for key, item in value.items() if key != "weak"}
    place = Place(document, (section,))
    entry: Any = SharesEntry if section == "shares" else TrustEntry
    model = _read_entry(entry, value, place)
    if model is not None:
        single[section] = Placed(model=model, place=place)


def _read_entry(entry: type[Any], value: Any, place: Place) -> Any:
    """Return the model of one entry; None, with its faults noted, if it has any."""
    try:
        return entry.model_validate(value).build()
    except ValidationError as error:
        for problem in error.errors(include_input=False, include_url=False):
            _blame_problem(entry, problem, value, place)
    return None


def _blame_problem(
    entry: type[BaseModel], problem: Any, value: Any, place: Place
) -> None:
    location: Path = tuple(part for part in problem["loc"] if part != "[key]")
    key = _key_of(location)
    kind, context = problem["type"], problem.get("ctx", {})
    path = (*place.path, *location)
    if kind == "extra_forbidden":
        fields = entry.model_fields if len(location) == 1 else ()
        place.document.blame(path, f"the key {key!r} is unknown", _guess(key, fields))
    elif kind == "missing":
        place.document.blame(place.path, f"{key!r} is missing", f"Add {key}.")
    elif kind == "enum":
        place.document.blame(
            path, f"{key!r} has an unknown value", f"Write {context['expected']}."
        )
    elif kind == "value_error":
        place.document.blame(path, str(context["error"]), f"Correct {key}.")
    elif location == ("name",):
        _blame_name(value, place)
    else:
        must, remedy = _SHAPES.get(
            kind, ("has a value that is not allowed", "Correct it.")
        )
        place.document.blame(path, f"{key!r} {must}", remedy)


def _blame_name(value: dict[str, Any], place: Place) -> None:
    name = str(value.get("name"))
    place.blame(
        "name",
        f"{name[:80]!r} is no name",
        f"Use lower-case letters, digits and dashes, such as {_slug(name)!r}.",
    )


def _key_of(location: Path) -> str:
    """Return what a person calls this place: ``cpu``, or ``accelerators[1]``."""
    if not location:
        return "the entry"
    last = location[-1]
    return f"{_key_of(location[:-1])}[{last}]" if isinstance(last, int) else last


def _check_names(draft: Draft, documents: Sequence[Document]) -> None:
    """Blame names that occur twice, and names that differ only in how they look."""
    for section in _NAMED:
        seen: dict[str, tuple[str, str, int]] = {}
        for document in documents:
            data = document.data if isinstance(document.data, dict) else {}
            entries = data.get(section)
            for number, value in enumerate(
                entries if isinstance(entries, list) else ()
            ):
                if isinstance(value, dict) and isinstance(value.get("name"), str):
                    place = Place(document, (section, number))
                    _check_name(value["name"], place, seen)


def _check_name(name: str, place: Place, seen: dict[str, tuple[str, str, int]]) -> None:
    line = place.document.line_of((*place.path, "name"))
    first = seen.setdefault(_slug(name), (name, place.document.source.name, line))
    if first[1:] == (place.document.source.name, line):
        return
    where = f"{first[1]}:{first[2]}"
    if first[0] == name:
        place.blame(
            "name", f"{name!r} is defined twice, first at {where}", "Rename one."
        )
    else:
        place.blame(
            "name", f"{name!r} collides with {first[0]!r} at {where}", "Rename one."
        )


def _slug(name: str) -> str:
    """Return the name that *name* was probably meant to be."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:63].rstrip("-")
    return slug if re.fullmatch(SLUG_PATTERN, slug) else "name"


def _guess(key: str, known: Any) -> str:
    close = get_close_matches(key, list(known), n=1)
    return f"Did you mean {close[0]!r}?" if close else "Remove it."
