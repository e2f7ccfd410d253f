"""Catalogs with one profile, ``jupyter``, for tests of the controller."""

from __future__ import annotations

from typing import Any

from scheduling_builders import GIB, a_runtime

from fleet_contracts.catalog import Catalog, Profile, ResourceClass, Runtime
from fleet_contracts.workloads import Accelerator, DriverName


def a_catalog(**changes: Any) -> Catalog:
    """Return a catalog with one profile in two sizes."""
    values: dict[str, Any] = {
        "classes": (
            ResourceClass(
                name="small", title="Small", cpu_milli=1000, memory_bytes=GIB
            ),
            ResourceClass(
                name="whole", title="Whole", cpu_milli=4000, memory_bytes=GIB
            ),
        ),
        "runtimes": (
            Runtime(
                name="python",
                accelerators=(Accelerator.CPU,),
                driver_refs={DriverName.NATIVE: "secret-ref"},
            ),
        ),
        "profiles": (
            Profile(
                name="jupyter",
                title="JupyterLab",
                classes=("small", "whole"),
                runtimes=("python",),
            ),
        ),
    }
    return Catalog(**(values | changes))


def offering(*classes: ResourceClass) -> Catalog:
    """Return a catalog that offers these classes, on any accelerator and driver."""
    (profile,) = a_catalog().profiles
    names = tuple(item.name for item in classes)
    return a_catalog(
        classes=classes,
        runtimes=(a_runtime("python"),),
        profiles=(profile.model_copy(update={"classes": names}),),
    )


def ending(seconds: float = 3600) -> Catalog:
    """Return a catalog whose classes have a time limit."""
    return a_catalog(
        classes=tuple(
            item.model_copy(update={"limit_seconds": seconds})
            for item in a_catalog().classes
        )
    )


def through(driver: DriverName, catalog: Catalog | None = None) -> Catalog:
    """Return a catalog, *catalog* if given, whose one runtime goes through *driver*."""
    # What is only pretended has no ref of its own.
    is_pretended = driver is DriverName.SIMULATION
    runtime = Runtime(
        name="python",
        accelerators=(Accelerator.CPU,),
        ref="secret-ref" if is_pretended else None,
        driver_refs={} if is_pretended else {driver: "secret-ref"},
    )
    return (catalog or a_catalog()).model_copy(update={"runtimes": (runtime,)})
