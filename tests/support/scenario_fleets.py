"""Fleets of machines that say what a scenario needs, and what is told of a refusal."""

from __future__ import annotations

from typing import Any

from fleet_controller import Fleet
from fleet_pictures import GIB, a_picture, some_gpus
from scheduling_builders import a_catalog, a_class, a_gpu_class, a_profile
from told_everywhere import told, what_if

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Catalog, ResourceClass
from fleet_contracts.reasons import Explanation, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.service.deeds import DEEDS


ROOT = Actor(name="root", role=ActorRole.ADMIN)


def the_catalog(*classes: ResourceClass, **changes: Any) -> Catalog:
    """Return a catalog whose profile ``lab`` offers these classes."""
    requirements = {
        key: changes.pop(key) for key in ("requirements",) if key in changes
    }
    names = tuple(item.name for item in classes)
    profile = a_profile(classes=names, **requirements)
    return a_catalog(classes=classes, profiles=(profile,), **changes)


def a_fleet(
    asked: ResourceClass, machines: dict[str, dict[str, Any]], **changes: Any
) -> Fleet:
    """Return machines of these pictures, and a catalog with this one class."""
    fleet = Fleet(catalog=the_catalog(asked, **changes))
    for name, picture in machines.items():
        given = dict(picture)
        labels = given.pop("labels", {})
        fleet.machine(name, capabilities=a_picture(**given))
        written = ",".join(f"{label}={value}" for label, value in labels.items())
        DEEDS["label"].run(fleet.core, ROOT, name, written)
    fleet.cycle()
    return fleet


def ask(fleet: Fleet) -> Workload:
    """Ask for the one class."""
    return fleet.ask(profile="lab", class_name=None)


def refusal(fleet: Fleet) -> Explanation:
    """Ask, and return why it was refused: at once, and never queued."""
    record = ask(fleet)
    assert record.state is State.REFUSED
    why = told(fleet, record)
    assert why.kind is ReasonKind.NEVER
    assert what_if(fleet, "alice").why is not None
    assert what_if(fleet, "alice").why.explanation.reason is why.reason
    return why


def by_machine(fleet: Fleet) -> dict[str, str]:
    """Return what each machine says to a mere question, without its name."""
    return {
        one.machine: sentence(
            one.why_not.explanation.model_copy(update={"machine": None})
        )
        for one in what_if(fleet, "alice").machines
        if one.why_not is not None
    }


def a_box(
    catalog: Catalog | None = None, *, settings: Settings | None = None, **picture: Any
) -> Fleet:
    """Return alice's box of 8 cores, 32 GiB and two GPUs, past the controller's start."""
    classes = (
        a_class("cpu", limit_seconds=3600),
        a_class("most", memory_bytes=30 * GIB),
        a_gpu_class("gpu", limit_seconds=3600),
    )
    fleet = Fleet(catalog=catalog or the_catalog(*classes), settings=settings)
    picture = {"gpus": some_gpus("box", 2)} | picture
    fleet.machine("box", capabilities=a_picture(**picture))
    fleet.clock.advance(3600)
    return fleet


def another(
    fleet: Fleet, server: int, class_name: str | None = "cpu", **who: Any
) -> Workload:
    """Ask for another server of this class; alice does, unless *who* says otherwise."""
    return fleet.ask(server, profile="lab", class_name=class_name, **who)
