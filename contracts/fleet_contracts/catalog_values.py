"""Which values of an entry make no sense, though each is well-formed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from fleet_contracts.catalog import UNSEEN, Profile, ResourceClass
from fleet_contracts.catalog_draft import Draft, Place
from fleet_contracts.support import CUDA_DRIVERS
from fleet_contracts.workloads import Accelerator


SHORTEST_LEASE: Final = 60
"""Seconds: any shorter, and a restart of the Hub would end notebooks."""
SHORTEST_IDLE_LIMIT: Final = 60
"""Seconds: a load is an average of the last minute."""
_VERSION: Final = re.compile(r"[0-9]+(\.[0-9]+)*([a-z+-][0-9A-Za-z.+-]*)?")
_CAPABILITIES: Final = frozenset({"torch.cuda", "torch.mps"})
_FAMILIES: Final = ("sandbox.", "container.", "launcher.", "distributed.")
"""What machines say of themselves: anything else would be unknown for ever."""


def classes_make_sense(draft: Draft) -> None:
    """Blame amounts of nothing, and devices that do not suit the accelerator."""
    for item in draft.classes:
        chosen, place = item.model, item.place
        _hold_something(chosen, place)
        _leave_time_to_rest(chosen, place)
        _can_be_seen_to_rest(chosen, place)
        if chosen.accelerator is Accelerator.CPU:
            for key, value in (
                ("devices", chosen.devices),
                ("device_memory", chosen.device_memory_bytes),
                ("compute_capability", chosen.compute_capability),
                ("device_models", chosen.device_models),
            ):
                if value:
                    place.blame(
                        key,
                        f"class {chosen.name!r} is a CPU class and asks for devices",
                        "Remove the key, or name an accelerator.",
                    )
        elif not chosen.devices:
            place.blame(
                "devices",
                f"class {chosen.name!r} has an accelerator and asks for 0 devices",
                "Ask for at least 1, or make it a CPU class.",
            )
        elif chosen.accelerator is Accelerator.MPS:
            _suit_a_mac(chosen, place)


def _suit_a_mac(chosen: ResourceClass, place: Place) -> None:
    if chosen.devices != 1:
        place.blame("devices", "a Mac has one GPU", "Write 1, or leave the key out.")
    if chosen.compute_capability is not None:
        place.blame(
            "compute_capability",
            f"class {chosen.name!r} asks for what only an NVIDIA GPU has",
            "Remove the key, or write accelerator: cuda.",
        )


def _hold_something(chosen: ResourceClass, place: Place) -> None:
    for key, amount in (("cpu", chosen.cpu_milli), ("memory", chosen.memory_bytes)):
        if not amount:
            place.blame(
                key,
                f"class {chosen.name!r} asks for no {key}, so any number would fit",
                "Write what a workload needs.",
            )
    if chosen.lease_seconds is not None and chosen.lease_seconds < SHORTEST_LEASE:
        place.blame(
            "lease",
            f"the lease of class {chosen.name!r} is shorter than a fault of the network",
            f"Write at least {SHORTEST_LEASE} seconds, or remove the key for none.",
        )
    if chosen.limit_seconds == 0:
        place.blame(
            "limit",
            f"class {chosen.name!r} ends what has just become ready",
            "Write a longer limit, or remove the key for none.",
        )


def _leave_time_to_rest(model: ResourceClass | Profile, place: Place) -> None:
    seconds = model.idle_limit_seconds
    if seconds is not None and seconds < SHORTEST_IDLE_LIMIT:
        place.blame(
            "idle_limit",
            f"{model.name!r} ends who only reads what was computed",
            f"Write at least {SHORTEST_IDLE_LIMIT} seconds, or remove the key for none.",
        )


def _can_be_seen_to_rest(chosen: ResourceClass, place: Place) -> None:
    if chosen.idle_limit_seconds is not None and chosen.accelerator in UNSEEN:
        place.blame(
            "idle_limit",
            f"nobody can see whether the {chosen.accelerator.value} devices of class "
            f"{chosen.name!r} compute, so it would end nothing",
            "Write limit instead.",
        )


def quotas_make_sense(draft: Draft) -> None:
    """Blame quotas of nobody, of two, without a limit, and a second one of anybody."""
    seen: dict[tuple[str | None, str | None], str] = {}
    for item in draft.quotas:
        quota, place = item.model, item.place
        where = f"{place.document.source.name}:{place.document.line_of(place.path)}"
        first = seen.setdefault((quota.user, quota.group), where)
        if first is not where:
            whom = f"user {quota.user!r}" if quota.user else f"group {quota.group!r}"
            place.blame(
                None,
                f"{whom} has a second quota, the first at {first}",
                "Write all limits into one.",
            )
        if (quota.user is None) == (quota.group is None):
            item.place.blame(
                None,
                "a quota is for one user or one group",
                "Write user or group, not both; * means each.",
            )
        limits = (quota.workloads, quota.devices, quota.cpu_milli, quota.memory_bytes)
        if all(limit is None for limit in limits):
            item.place.blame(
                None,
                "a quota without any limit does nothing",
                "Add workloads, devices, cpu or memory.",
            )


def requirements_can_be_met(draft: Draft) -> None:
    """Blame versions that are none, and capabilities that no machine can report."""
    for runtime in draft.runtimes:
        _know(runtime.model.requires, runtime.place, "requires")
    for item in draft.profiles:
        requirements, place = item.model.requirements, item.place
        here = Place(place.document, (*place.path, "requirements"))
        _know(requirements.capabilities, here, "capabilities")
        versions = {"interpreter": requirements.interpreter, "cuda": requirements.cuda}
        for key, version in (*versions.items(), *requirements.frameworks.items()):
            if version is not None and _VERSION.fullmatch(version) is None:
                inside = key if key in versions else "frameworks"
                here.blame(
                    inside,
                    f"{version[:80]!r} is no version of {key}",
                    "Write the least that serves, such as 3.11 or 2.4.",
                )
        major = (requirements.cuda or "").partition(".")[0]
        if major.isdecimal() and int(major) not in CUDA_DRIVERS:
            here.blame(
                "cuda",
                f"nobody knows which GPU driver cuda {requirements.cuda} needs",
                f"Write one of {', '.join(map(str, CUDA_DRIVERS))}.",
            )
        _leave_time(item.model, place)
        _leave_time_to_rest(item.model, place)


def _leave_time(profile: Profile, place: Place) -> None:
    if profile.limit_seconds == 0:
        place.blame(
            "limit",
            f"profile {profile.name!r} ends what has just become ready",
            "Write a longer limit, or remove the key for none.",
        )
    here = Place(place.document, (*place.path, "deadlines"))
    for key in ("prepare", "start", "stop"):
        if not getattr(profile.deadlines, f"{key}_seconds"):
            here.blame(
                key,
                f"profile {profile.name!r} leaves no time to {key}",
                "Write how long it may take, or remove the key.",
            )


def _know(names: Iterable[str], place: Place, key: str) -> None:
    for name in names:
        if name not in _CAPABILITIES and not name.startswith(_FAMILIES):
            place.blame(
                key,
                f"no machine can say whether it has {name[:80]!r}",
                f"Write one of {', '.join(sorted(_CAPABILITIES))}, or one that begins "
                f"with {', '.join(_FAMILIES)}.",
            )
