"""What is wrong with a catalog whose entries are each well-formed.

Each check looks at the whole catalog and blames the line that the admin has to
change.  A name whose own entry is malformed counts as known, so that one mistake is
reported once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from itertools import product
from typing import Final

from fleet_contracts.catalog import Profile, ResourceClass, Runtime
from fleet_contracts.catalog_draft import Draft, Place
from fleet_contracts.catalog_reach import (
    classes_can_be_scheduled,
    requirements_agree,
    titles_tell_apart,
)
from fleet_contracts.catalog_values import (
    classes_make_sense,
    quotas_make_sense,
    requirements_can_be_met,
)
from fleet_contracts.selection import select_runtime, serving_ref
from fleet_contracts.support import is_scheduled
from fleet_contracts.workloads import Accelerator, DriverName, WorkloadKind


def check(draft: Draft) -> None:
    """Blame everything that is wrong between the entries of *draft*."""
    for one_check in _CHECKS:
        one_check(draft)


def _runtimes_make_sense(draft: Draft) -> None:
    for item in draft.runtimes:
        runtime, place = item.model, item.place
        is_endpoint = runtime.kind is WorkloadKind.ENDPOINT
        if is_endpoint and not runtime.model_formats:
            place.blame(
                None,
                f"runtime {runtime.name!r} serves endpoints and loads no model format",
                "Add model_formats.",
            )
        if runtime.model_formats and not is_endpoint:
            place.blame(
                "model_formats",
                f"runtime {runtime.name!r} is for notebooks and has model formats",
                "Remove the key, or write kind: endpoint.",
            )
        for driver in runtime.driver_refs:
            _judge_driver_ref(runtime, driver, place)
        if not any(_serves_somewhere(runtime, driver) for driver in DriverName):
            place.blame(
                None,
                f"runtime {runtime.name!r} cannot run anywhere: it has no usable ref",
                "Add driver_refs, or ref.",
            )


def _judge_driver_ref(runtime: Runtime, driver: DriverName, place: Place) -> None:
    here = Place(place.document, (*place.path, "driver_refs"))
    if not _serves_somewhere(runtime, driver):
        here.blame(
            driver.value,
            f"the {driver.value} ref of runtime {runtime.name!r} is never used",
            "Containers on a Mac have no Metal: remove it, or add accelerators.",
        )
    elif driver is DriverName.NATIVE and "/" in runtime.driver_refs[driver]:
        here.blame(
            driver.value,
            f"the native ref of runtime {runtime.name!r} is a path",
            "Write the name of an environment that the agents have.",
        )


def _profiles_name_what_exists(draft: Draft) -> None:
    known = {
        "classes": {item.model.name for item in draft.classes},
        "runtimes": {item.model.name for item in draft.runtimes},
    }
    for item in draft.profiles:
        for key, names in known.items():
            listed: tuple[str, ...] = getattr(item.model, key)
            for number, name in enumerate(listed):
                here = Place(item.place.document, (*item.place.path, key))
                if name in listed[:number]:
                    here.blame(number, f"{name!r} is listed twice", "Remove one.")
                malformed = draft.malformed.get(key, set())
                if name not in names and not get_close_matches(name, malformed, n=1):
                    here.blame(
                        number,
                        f"profile {item.model.name!r} names {name!r}, which is not "
                        f"among the {key}",
                        _suggestion(name, names),
                    )


def _kinds_agree(draft: Draft) -> None:
    for item in draft.profiles:
        for runtime in draft.runtimes_of(item.model):
            if runtime.kind is not item.model.kind:
                here = Place(item.place.document, (*item.place.path, "runtimes"))
                here.blame(
                    item.model.runtimes.index(runtime.name),
                    f"profile {item.model.name!r} is for {item.model.kind.value}s, and "
                    f"runtime {runtime.name!r} is for {runtime.kind.value}s",
                    "Use runtimes of the profile's kind.",
                )


def _every_class_is_served(draft: Draft) -> None:
    classes = draft.class_models()
    for item in draft.profiles:
        if not draft.runtime_names() >= set(item.model.runtimes):
            # What it lacks is blamed where it stands.
            continue
        for number, name in enumerate(item.model.classes):
            chosen = classes.get(name)
            if chosen is None:
                continue
            here = Place(item.place.document, (*item.place.path, "classes"))
            if not _selected(draft, item.model, chosen):
                here.blame(
                    number,
                    f"no runtime of profile {item.model.name!r} serves class {name!r} "
                    f"({chosen.accelerator.value})",
                    "Add a runtime with this accelerator, or remove the class.",
                )
            elif not _selected(draft, item.model, chosen, _ways(chosen.accelerator)):
                here.blame(
                    number,
                    f"no runtime of profile {item.model.name!r} names what a machine "
                    f"runs for class {name!r} ({chosen.accelerator.value})",
                    "Add docker or native to the driver_refs of one, or remove the "
                    "class.",
                )


def _everything_can_be_reached(draft: Draft) -> None:
    named = {
        name
        for item in draft.profiles
        for name in (*item.model.classes, *item.model.runtimes)
    }
    known = draft.class_models().keys() | draft.runtime_names()
    used = named | draft.malformed.get("profiles", set())
    for name in named - known:
        # A misspelt name is blamed where it stands, and not once more here.
        used.update(get_close_matches(name, sorted(known), n=1))
    for chosen in draft.classes:
        if chosen.model.name not in used:
            chosen.place.blame(
                None,
                f"class {chosen.model.name!r} cannot be reached: no profile offers it",
                "Add it to a profile, or remove it.",
            )
    selected = _ever_selected(draft)
    for runtime in draft.runtimes:
        name = runtime.model.name
        if name not in used:
            runtime.place.blame(
                None,
                f"runtime {name!r} cannot be reached: no profile uses it",
                "Add it to a profile, or remove it.",
            )
        elif name not in selected and not draft.malformed and named <= known:
            runtime.place.blame(
                None,
                f"runtime {name!r} is never selected: no class needs it, or the ones "
                "before it serve every class and driver first",
                "Move it up, or remove it.",
            )


def _audiences_include_somebody(draft: Draft) -> None:
    for item in draft.profiles:
        audience = item.model.audience
        if not (audience.everyone or audience.users or audience.groups):
            item.place.blame(
                "audience",
                f"profile {item.model.name!r} is offered to nobody",
                "Name users or groups, or remove the audience.",
            )


_CHECKS: Final[tuple[Callable[[Draft], None], ...]] = (
    classes_make_sense,
    classes_can_be_scheduled,
    titles_tell_apart,
    requirements_can_be_met,
    requirements_agree,
    _runtimes_make_sense,
    _profiles_name_what_exists,
    _kinds_agree,
    _every_class_is_served,
    _everything_can_be_reached,
    _audiences_include_somebody,
    quotas_make_sense,
)


def _serves_somewhere(runtime: Runtime, driver: DriverName) -> bool:
    return any(
        serving_ref(runtime, accelerator, driver) is not None
        for accelerator in runtime.accelerators
        if (driver, accelerator) != (DriverName.DOCKER, Accelerator.MPS)
    )


def _ways(accelerator: Accelerator) -> tuple[DriverName, ...]:
    """Return the drivers with which this is more than pretended."""
    ways = tuple(
        one
        for one in DriverName
        if one is not DriverName.SIMULATION and is_scheduled(accelerator, one)
    )
    # Where nothing is scheduled, that is told of the class.
    return ways or tuple(DriverName)


def _selected(
    draft: Draft,
    profile: Profile,
    chosen: ResourceClass,
    drivers: Iterable[DriverName] = tuple(DriverName),
) -> set[str]:
    """Return the runtimes that any of *drivers* would get for this class."""
    runtimes = draft.runtimes_of(profile)
    found = (
        select_runtime(
            runtimes,
            kind=profile.kind,
            accelerator=chosen.accelerator,
            driver=driver,
        ).runtime
        for driver in drivers
    )
    return {runtime.name for runtime in found if runtime is not None}


def _ever_selected(draft: Draft) -> set[str]:
    profiles = (item.model for item in draft.profiles)
    classes = (item.model for item in draft.classes)
    return {
        name
        for profile, chosen in product(profiles, list(classes))
        if chosen.name in profile.classes
        for name in _selected(draft, profile, chosen)
    }


def _suggestion(name: str, known: Iterable[str]) -> str:
    close: Iterator[str] = iter(get_close_matches(name, sorted(known), n=1))
    guess = next(close, None)
    return f"Did you mean {guess!r}?" if guess else "Define it, or remove it here."
