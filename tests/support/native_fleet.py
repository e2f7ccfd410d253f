"""A machine of the fleet that runs real notebooks, for tests with all real parts."""

from __future__ import annotations

import shutil
from typing import Any

from fleet import Fleet, Machine
from native_machine import native_settings


NATIVE_PATIENCE = 300.0
"""A first start builds an environment, which a busy machine takes minutes for."""


def missing_for_native() -> str | None:
    """Return why native notebooks cannot run on this machine, or None."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    return None


def add_native_machine(
    fleet: Fleet,
    name: str = "box",
    *,
    owner: str = "ada",
    keeps_environments: bool = True,
    **settings: Any,
) -> Machine:
    """Enrol a machine with the native driver, and start its agent.

    Downloads are shared between tests.  With *keeps_environments* built environments
    are as well, else this machine builds its own.
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
    native = machine.folder / "native"
    native.mkdir(mode=0o700)
    shared = native_settings(native)
    assert shared.cache is not None
    assert shared.environments is not None
    shared.cache.mkdir(exist_ok=True)
    (native / "cache").symlink_to(shared.cache)
    if keeps_environments:
        shared.environments.mkdir(exist_ok=True)
        (native / "environments").symlink_to(shared.environments)
    fleet.start_agent(name)
    return machine
