"""What no machine has at all, however else it may be: said with what there is instead.

A "no machine" is only said of what each machine was looked at for.  Two requirements
that are met by different machines are told as that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain, combinations
from typing import Final

from fleet_contracts.catalog import ResourceClass
from fleet_contracts.language import mark
from fleet_contracts.placement_facts import PlacementFacts
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.device_filters import (
    computes,
    cuda_floor,
    devices_of_kind,
    is_large,
    is_named,
    serving,
)
from fleet_hub.scheduling.filters import NEVER_LOOKED_FOR, as_lent, runs_on
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.versions import is_older, version_key


_Row = tuple[int, int, int, int]
_SIZES: Final = (
    ("devices", "devices"),
    ("cpu", "milli_cores"),
    ("memory", "bytes"),
    ("disk", "bytes"),
)
_FIRST: Final = {
    Reason.GPU_COUNT_TOO_SMALL: 0,
    Reason.DEVICE_MODEL_MISMATCH: 0,
    Reason.COMPUTE_CAPABILITY_TOO_LOW: 0,
    Reason.VRAM_TOO_SMALL: 0,
    Reason.CPU_TOO_SMALL: 1,
    Reason.MEMORY_TOO_SMALL: 2,
    Reason.DISK_TOO_SMALL: 3,
}
"""The amount that a machine's reason is about."""
_LENT: Final = {
    Reason.CPU_TOO_SMALL: ("whole_cores_milli", "cores_milli"),
    Reason.MEMORY_TOO_SMALL: ("whole_memory_bytes", "memory_bytes"),
}
"""What a machine has, where its owner lends less of it, and what they lend."""
_MOST_NAMED: Final = 10
_ON_DIFFERENT_ONES: Final = mark(
    "what is asked of a device is found only on different ones"
)
_Word = Callable[[Fleet, Request, Explanation], Explanation | None]


def true_of_all(
    fleet: Fleet, request: Request, headline: Explanation
) -> tuple[Explanation | None, bool]:
    """Return what is so of every machine, about what *headline* says of one.

    With it comes, where there is no answer, whether others have what that one lacks.
    """
    word = _WORDS.get(headline.reason)
    found = None if word is None else word(fleet, request, headline)
    return found, found is None and headline.reason in _HAD_BY_OTHERS


def _sizes(fleet: Fleet, request: Request, headline: Explanation) -> Explanation | None:
    """Return in which amounts, alone or together, no machine is large enough."""
    chosen = request.chosen
    lacking = _devices(fleet, chosen) if chosen.devices else None
    if lacking is not None:
        return lacking
    wanted = (
        chosen.devices,
        chosen.cpu_milli,
        chosen.memory_bytes,
        chosen.disk_bytes,
    )
    rows = _rows(fleet, chosen)
    first = _FIRST[headline.reason]
    order = sorted(range(len(_SIZES)), key=lambda position: position != first)
    for count in range(1, len(_SIZES) + 1):
        for some in combinations(order, count):
            if not any(all(row[at] >= wanted[at] for at in some) for row in rows):
                lent = _lent_in_part(fleet, headline) if some == (first,) else None
                return lent or _exceeds(chosen, sorted(some), wanted, rows)
    return None


def _lent_in_part(fleet: Fleet, headline: Explanation) -> Explanation | None:
    """Return the machine that would be large enough, and is not lent as a whole."""
    if headline.reason not in _LENT:
        return None
    whole, lent = _LENT[headline.reason]
    for group in fleet.groups.values():
        facts = group.signature.facts
        if (getattr(facts, whole) or 0) >= (headline.requested or 0):
            name = min(chain.from_iterable(group.owners.values()))
            here = {"machine": name, "capacity": getattr(facts, lent)}
            found = headline.model_copy(update=here)
            return as_lent(found, getattr(facts, whole))
    return None


def _rows(fleet: Fleet, chosen: ResourceClass) -> set[_Row]:
    """Return the amounts that machines have, of those that *chosen* asks for."""
    rows = set()
    for group in fleet.groups.values():
        facts = group.signature.facts
        found = len(serving(facts, chosen))
        size = found, facts.cores_milli or 0, facts.memory_bytes or 0
        # The disk differs from machine to machine, so no signature answers for it.
        disks = {0}
        if chosen.disk_bytes:
            names = chain.from_iterable(group.owners.values())
            known = (fleet.entries[name].machine.facts for name in names)
            disks = {each.disk_free_bytes or 0 for each in known}
        rows |= {(*size, disk) for disk in disks}
    return rows


def _exceeds(
    chosen: ResourceClass, some: Sequence[int], wanted: _Row, rows: Iterable[_Row]
) -> Explanation:
    names = [_SIZES[position][0] for position in some]
    if some[0] == 0 and _narrows(chosen):
        names[0] = "suitable devices"
    if len(some) > 1:
        together = f"{', '.join(names[:-1])} and {names[-1]} together"
        return Explanation(reason=Reason.EXCEEDS_ANY_MACHINE, subject=together)
    largest = max(row[some[0]] for row in rows)
    return Explanation(
        reason=Reason.EXCEEDS_ANY_MACHINE,
        subject=names[0],
        requested=wanted[some[0]],
        capacity=largest,
        unit=_SIZES[some[0]][1],
        detail=None if largest else _ON_DIFFERENT_ONES,
    )


def _narrows(chosen: ResourceClass) -> bool:
    asked = (
        chosen.device_models,
        chosen.compute_capability,
        chosen.device_memory_bytes,
    )
    return any(asked)


def _devices(fleet: Fleet, chosen: ResourceClass) -> Explanation | None:
    """Return what no device of the fleet is; None: each alone is found somewhere."""
    facts = list(_facts(fleet))
    devices = [
        device for one in facts for device in devices_of_kind(one, chosen.accelerator)
    ]
    if not any(is_named(device, chosen) for device in devices):
        there = _some(device.name or "" for device in devices)
        return Explanation(
            reason=Reason.DEVICE_MODEL_MISMATCH,
            subject=", ".join(chosen.device_models),
            requested=chosen.devices,
            detail=f"no machine has such a device; there is {there}",
        )
    if not any(computes(device, chosen) for device in devices):
        newest = max(
            (device.compute_capability or "" for device in devices),
            key=lambda text: version_key(text) or (0,),
        )
        return Explanation(
            reason=Reason.COMPUTE_CAPABILITY_TOO_LOW,
            subject=chosen.compute_capability,
            requested=chosen.devices,
            detail=f"the newest device has {newest}",
        )
    if not any(is_large(device, chosen) for device in devices):
        return Explanation(
            reason=Reason.EXCEEDS_ANY_MACHINE,
            subject="device memory",
            requested=chosen.device_memory_bytes,
            capacity=max(device.memory_bytes or 0 for device in devices),
            unit="bytes",
        )
    return None


def _systems(
    fleet: Fleet, request: Request, headline: Explanation
) -> Explanation | None:
    systems = _some(facts.os or "" for facts in _facts(fleet))
    if any(runs_on(request, facts) for facts in _facts(fleet)):
        return None
    return headline.model_copy(
        update={"detail": f"no machine runs that; there is {systems}"}
    )


def _gpu_drivers(
    fleet: Fleet, request: Request, headline: Explanation
) -> Explanation | None:
    versions = [
        device.driver_version or ""
        for facts in _facts(fleet)
        for device in devices_of_kind(facts, request.chosen.accelerator)
    ]
    newest = max(versions, key=lambda text: version_key(text) or (0,))
    floor = cuda_floor(request) or ""
    if not is_older(newest, floor):
        return None
    return headline.model_copy(
        update={
            "detail": f"{headline.subject} needs GPU driver {floor}; "
            f"the newest there is {newest}"
        }
    )


def _capabilities(
    fleet: Fleet, request: Request, headline: Explanation
) -> Explanation | None:
    """Return that the name is one of which no machine has ever told."""
    name = headline.subject or ""
    names: set[str] = set()
    for facts in _facts(fleet):
        names.update(facts.capabilities, *facts.environments.values())
    if name in names or headline.detail != NEVER_LOOKED_FOR:
        return None
    return headline.model_copy(
        update={"detail": f"no machine tells of {name}{_instead(name, names)}"}
    )


def _labels(
    fleet: Fleet, request: Request, headline: Explanation
) -> Explanation | None:
    """Return whether the names are such as nobody has, or the values, or all at once."""
    wanted = request.chosen.labels
    known = [group.signature.labels for group in fleet.groups.values()]
    names = {name for labels in known for name in labels}
    strange = [name for name in wanted if name not in names]
    if strange:
        called = " or ".join(strange)
        instead = "".join(_instead(name, names) for name in strange)
        return _label(
            wanted, strange, f"no machine has a label called {called}{instead}"
        )
    odd = [
        name
        for name, value in wanted.items()
        if all(labels.get(name) != value for labels in known)
    ]
    if odd:
        there = "; ".join(
            f"{name} is {_some(labels.get(name, '') for labels in known)}"
            for name in odd
        )
        return _label(wanted, odd, f"no machine has this label and value; {there}")
    if any(wanted.items() <= labels.items() for labels in known):
        return None
    return _label(
        wanted, wanted, "each is on some machine, and no machine has all of them"
    )


def _label(wanted: Mapping[str, str], names: Iterable[str], detail: str) -> Explanation:
    return Explanation(
        reason=Reason.LABEL_MISMATCH,
        subject=", ".join(f"{name}={wanted[name]}" for name in names),
        detail=detail,
    )


def _instead(name: str, names: Iterable[str]) -> str:
    """Return the known name that is written nearly so, as the end of a sentence."""
    close = get_close_matches(name, sorted(names), n=1, cutoff=0.75)
    return f"; one is called {close[0]}" if close else ""


def _some(texts: Iterable[str]) -> str:
    """Return the different *texts* as a list, of which the first few are enough."""
    known = sorted({text for text in texts if text})
    more = len(known) - _MOST_NAMED
    left = [f"{more} more"] if more > 0 else []
    return ", ".join(known[:_MOST_NAMED] + left)


def _facts(fleet: Fleet) -> Iterable[PlacementFacts]:
    return (
        group.signature.facts
        for group in fleet.groups.values()
        if group.signature.facts.known
    )


_HAD_BY_OTHERS: Final = frozenset({*_FIRST, Reason.OS_MISMATCH, Reason.LABEL_MISMATCH})
"""What some machine has, if it is not so that none does."""
_WORDS: Final[Mapping[Reason, _Word]] = {
    **dict.fromkeys(_FIRST, _sizes),
    Reason.OS_MISMATCH: _systems,
    Reason.DRIVER_TOO_OLD: _gpu_drivers,
    Reason.CAPABILITY_MISSING: _capabilities,
    Reason.LABEL_MISMATCH: _labels,
}
