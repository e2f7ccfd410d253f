"""A machine of the fleet that runs real notebooks, for tests with all real parts."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from fleet import Fleet, Machine
from fleet_parts import NEEDS_HUB
from native_machine import SHARED, native_settings, unheard

from fleet_agent.drivers.native.environments.wheel import installed_lab_package
from fleet_agent.drivers.native.settings import environment_store


NATIVE_PATIENCE = 300.0
"""A first start builds an environment, which a busy machine takes minutes for."""


def missing_for_native() -> str | None:
    """Return why native notebooks cannot run on this machine, or None."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    return None


NEEDS_NATIVE = (
    *NEEDS_HUB,
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.skipif(
        missing_for_native() is not None, reason=str(missing_for_native())
    ),
)
"""How a test of a whole fleet with real notebooks is marked."""

KEPT = SHARED / "of-fleets"
"""Built environments, kept between tests.

A fleet's agent gets copies, and never sees this folder: it would collect what another
version of the code has built, while that still runs.
"""
KEEP = 2


def add_native_machine(
    fleet: Fleet,
    name: str = "box",
    *,
    owner: str = "ada",
    program: tuple[str, ...] | None = None,
    **settings: Any,
) -> Machine:
    """Enrol a machine with the native driver, and start its agent.

    It has what other tests downloaded, and the environments that they kept.
    """
    machine = fleet.add_agent(
        name,
        owner=owner,
        settings={
            "drivers": ["native"],
            # A test that fails must leave no notebook behind.
            "stop_workloads_on_exit": True,
            **settings,
        },
        start=False,
    )
    if program is not None:
        machine.program = program
    stock(machine)
    fleet.start_agent(name)
    return machine


def stock(machine: Machine) -> None:
    """Give *machine* what other tests downloaded, and the environments they kept."""
    native = machine.folder / "native"
    native.mkdir(mode=0o700)
    share_downloads(native)
    (native / "environments").mkdir(mode=0o700)
    KEPT.mkdir(exist_ok=True)
    for environment in KEPT.glob("[!.]*"):
        _copy(environment, native / "environments")


def build_environment(machine: Machine) -> None:
    """Build what *machine* needs to run notebooks: it has no way to a package index."""
    settings = native_settings(
        machine.folder / "native",
        environments=None,
        cache=None,
        lab_package=installed_lab_package(),
    )
    store = environment_store(settings)
    asyncio.run(store.prepare("jupyter", unheard))
    keep_environments(machine)


@contextmanager
def still_to_be_built(machine: Machine) -> Iterator[None]:
    """Have *machine*, whose agent does not run, own no environment until the block ends.

    Builds in the same folder take turns: it waits for its own, and then uses what has
    been built meanwhile.
    """
    native = machine.folder / "native"
    aside = native / "aside"
    (native / "environments").rename(aside)
    (native / "environments").mkdir(mode=0o700)
    with (native / "environments.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
        for environment in aside.glob("[!.]*"):
            environment.rename(native / "environments" / environment.name)


def share_downloads(native: Path) -> None:
    """Let the native driver with this folder use what other tests downloaded."""
    cache = native_settings(native).cache
    assert cache is not None
    cache.mkdir(exist_ok=True)
    (native / "cache").symlink_to(cache)


def keep_environments(machine: Machine) -> None:
    """Keep what *machine* has built, for the next test; older ones have to go."""
    for environment in (machine.folder / "native/environments").glob("[!.]*"):
        _copy(environment, KEPT)
    for old in sorted(KEPT.glob("[!.]*"), key=_age, reverse=True)[KEEP:]:
        shutil.rmtree(old, ignore_errors=True)


def _age(path: Path) -> float:
    """Return when *path* was made; what another test has removed is the oldest."""
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _copy(environment: Path, folder: Path) -> None:
    """Copy by hard links, whole or not at all."""
    if (folder / environment.name).exists():
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    part = folder / f".part-{os.getpid()}-{environment.name}"
    try:
        shutil.copytree(environment, part, symlinks=True, copy_function=os.link)
        part.rename(folder / environment.name)
    except OSError:
        # Another test removed it meanwhile, or was faster: it can always be built.
        shutil.rmtree(part, ignore_errors=True)
