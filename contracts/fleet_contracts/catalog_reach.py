"""Which entries nobody could ever use, or tell from others, though each is well-formed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Final

from fleet_contracts.catalog import Audience, OperatingSystem, Profile, ResourceClass
from fleet_contracts.catalog_draft import Draft, Place, Placed
from fleet_contracts.support import is_scheduled
from fleet_contracts.workloads import Accelerator, DriverName


_SYSTEMS: Final = {
    Accelerator.MPS: OperatingSystem.MACOS,
    Accelerator.CUDA: OperatingSystem.LINUX,
    Accelerator.ROCM: OperatingSystem.LINUX,
}
"""Where devices of this kind are."""
_TORCH: Final = {Accelerator.MPS: "torch.cuda", Accelerator.CUDA: "torch.mps"}
"""What no machine with such a device ever has."""


def classes_can_be_scheduled(draft: Draft) -> None:
    """Blame classes of an accelerator on which no driver places anything."""
    for item in draft.classes:
        accelerator = item.model.accelerator
        if any(is_scheduled(accelerator, driver) for driver in DriverName):
            continue
        item.place.blame(
            "accelerator",
            f"class {item.model.name!r} can never be scheduled: {accelerator.value} is "
            "only detected so far",
            "Use another accelerator, or remove the class.",
        )


def requirements_agree(draft: Draft) -> None:
    """Blame choices of a profile that no machine could have together."""
    classes = draft.class_models()
    for item in draft.profiles:
        chosen_ones = [
            (number, classes[name])
            for number, name in enumerate(item.model.classes)
            if name in classes
        ]
        for number, chosen in chosen_ones:
            why = _contradiction(draft, item.model, chosen)
            if why is not None:
                here = Place(item.place.document, (*item.place.path, "classes"))
                here.blame(
                    number,
                    f"profile {item.model.name!r} can never run with class "
                    f"{chosen.name!r}: {why}",
                    "Correct the requirements, or remove the class here.",
                )


def _contradiction(draft: Draft, profile: Profile, chosen: ResourceClass) -> str | None:
    needs, device = profile.requirements, chosen.accelerator
    system = _SYSTEMS.get(device)
    if system is not None and needs.os and system not in needs.os:
        return f"{device.value} is on {system.value} only, which os leaves out"
    foreign = _TORCH.get(device)
    serving = [
        runtime
        for runtime in draft.runtimes_of(profile)
        if device in runtime.accelerators
    ]
    everywhere = bool(serving) and all(foreign in one.requires for one in serving)
    if foreign is not None and (foreign in needs.capabilities or everywhere):
        return f"no machine has {device.value} and {foreign}"
    return None


def titles_tell_apart(draft: Draft) -> None:
    """Blame titles that read alike where somebody chooses between them."""
    _judge_titles(draft.classes, "class", lambda *_: True)
    _judge_titles(
        draft.profiles,
        "profile",
        lambda one, other: _may_meet(one.audience, other.audience),
    )


def _judge_titles(
    placed: Sequence[Placed[Any]], what: str, meet: Callable[[Any, Any], bool]
) -> None:
    alike: dict[str, list[Placed[Any]]] = {}
    for item in placed:
        others = alike.setdefault(_seen(item.model.title), [])
        first = next((one for one in others if meet(one.model, item.model)), None)
        if first is None:
            others.append(item)
        elif first.model.name != item.model.name:
            document, path = first.place
            where = f"{document.source.name}:{document.line_of((*path, 'title'))}"
            item.place.blame(
                "title",
                f"{what} {item.model.name!r} has the title of {what} "
                f"{first.model.name!r} at {where}",
                "Give it a title of its own: people choose by it.",
            )


def _seen(title: str) -> str:
    """Return what people read: case, width, spaces and what is not seen aside."""
    seen = [one for one in title if unicodedata.category(one) != "Cf"]
    return " ".join(unicodedata.normalize("NFKC", "".join(seen)).casefold().split())


def _may_meet(one: Audience, other: Audience) -> bool:
    """Return whether somebody surely sees both; groups may have members in common."""
    return (
        one.everyone
        or other.everyone
        or not set(one.users).isdisjoint(other.users)
        or not set(one.groups).isdisjoint(other.groups)
    )
