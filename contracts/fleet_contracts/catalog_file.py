"""From the admin's YAML to a catalog, or to all of its faults at once.

Every fault has its file, its line and a remedy.  No message repeats a ref.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from fleet_contracts.base import SLUG_PATTERN
from fleet_contracts.catalog import Catalog, Shares, TrustPolicy
from fleet_contracts.catalog_checks import check
from fleet_contracts.catalog_draft import Draft, Place, Placed
from fleet_contracts.catalog_entries import (
    MOST,
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
    "less_than_equal": ("is too large", f"Write {MOST} or less."),
    "greater_than": ("must be above 0", "Write a larger number."),
    "greater_than_equal": ("must not be negative", "Write 0 or more."),
    "string_pattern_mismatch": ("must look like 8.0", "Write major.minor."),
    "blank_end": ("begins or ends with a blank", "Remove it."),
    "blank_inside": ("has a blank in it", "Write one name, without blanks."),
}
"""What pydantic's codes mean to somebody who edits YAML, and what to do."""


class CatalogError(ValueError):
    """A catalog that cannot be used; ``faults`` has all that is wrong with it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        """Carry *faults*, in the order of files and lines."""
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


def parse_catalog(sources: Sequence[Source], unread: Sequence[Fault] = ()) -> Catalog:
    """Return the catalog that *sources* describe together, in their order.

    *unread*: why other files of it could not be read at all.

    Raises:
        CatalogError: something is wrong with it.
    """
    documents = [read_yaml(source) for source in sources]
    for fault in unread:
        missing = Document(source=Source(fault.file, ""), is_unread=True)
        missing.faults.append(fault)
        documents.append(missing)
    draft = Draft()
    single: dict[str, Placed[Any]] = {}
    for document in documents:
        if _is_mapping(document):
            _read_document(document, draft, single)
    _check_names(draft, documents)
    if not any(document.is_unread for document in documents):
        # What an unread file defines would be missed everywhere.
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
    document.is_unread = True
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
            draft.malformed.setdefault(key, set()).update(_texts(value))


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
    """Yield every text in *value*, and what it was probably meant to be as a name."""
    if isinstance(value, str):
        yield from (value, _slug(value))
    elif isinstance(value, list | dict):
        for item in value:
            yield from _texts(item)
        if isinstance(value, dict):
            yield from _texts(list(value.values()))


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
    told = len(place.document.faults)
    value = _without_nothing(value, place)
    try:
        model = entry.model_validate(value).build()
    except ValidationError as error:
        for problem in _problems(error, place):
            _blame_problem(entry, problem, value, place)
        return None
    return model if len(place.document.faults) == told else None


def _without_nothing(value: Any, place: Place) -> Any:
    """Return *value* without keys that have no value; each of them is a fault.

    A forgotten value must not mean the default: an audience of nobody is not everybody.
    """
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        here = Place(place.document, (*place.path, key))
        if item is not None:
            kept[key] = _without_nothing(item, here)
        elif here.path not in place.document.blamed:
            here.blame(None, f"{key!r} has no value", "Write one, or remove the key.")
    return kept


def _problems(error: ValidationError, place: Place) -> Iterator[Any]:
    """Yield what is wrong and not told yet."""
    found = error.errors(include_input=False, include_url=False)
    blamed = place.document.blamed
    for problem in found:
        kind, path = problem["type"], (*place.path, *problem["loc"])
        if kind == "missing" and {path, (*path[:-1], "?")} & blamed:
            continue
        inside = {one["loc"][: len(problem["loc"])] for one in found if one != problem}
        if kind == "too_short" and problem["loc"] in inside:
            # Nothing is left of what it names, since all of that is wrong.
            continue
        yield problem


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
    name = value.get("name")
    if not isinstance(name, str):
        # YAML takes no, on and the like for truth values.
        place.blame("name", "'name' must be a text", "Put the value in quotes.")
        return
    place.blame(
        "name",
        f"{name[:80]!r} is no name{_odd_character(name)}",
        f"Use lower-case letters, digits and dashes, such as {_slug(name)!r}.",
    )


def _odd_character(name: str) -> str:
    """Return which character only looks like one of a name, or is not seen at all."""
    odd = next((one for one in name if not one.isascii()), None)
    if odd is None:
        return ""
    known = unicodedata.name(odd, "a character without a name").lower()
    return f": it has U+{ord(odd):04X} ({known})"


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
    this = (name, place.document.source.name, line)
    first = seen.setdefault(_slug(name), this)
    if first is this:
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
