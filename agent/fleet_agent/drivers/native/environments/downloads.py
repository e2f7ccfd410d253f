"""How long is what uv downloaded kept?  Until no build has needed it for a while.

An environment has copies of its own, so that nothing here is ever in use by a notebook.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress
from pathlib import Path

import structlog

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.native.environments.build import BuildTools, run


KEEP_SECONDS = 30 * 24 * 3600.0
"""After the last build; a broken environment is built again without the network."""

_LAST_BUILD = ".fleet-last-build"

_log = structlog.get_logger(__name__)


def note_build(cache: Path) -> None:
    """Note that a build has just used *cache*."""
    with suppress(OSError):
        (cache / _LAST_BUILD).touch()


async def tidy(tools: BuildTools, *, prune: bool, now: float) -> None:
    """Remove downloads that no build needed for long; with *prune* those of no use now.

    A cache that is a link is somebody else's, and left alone.
    """
    cache = tools.cache
    if cache.is_symlink() or not cache.is_dir():
        return
    stamp = cache / _LAST_BUILD
    try:
        unused = now - stamp.stat().st_mtime
    except FileNotFoundError:
        # Of an earlier version: its time begins now.
        note_build(cache)
        unused = 0.0
    if unused > KEEP_SECONDS:
        _log.info("downloads are removed", unused_days=int(unused / 86400))
        await asyncio.to_thread(shutil.rmtree, cache, ignore_errors=True)
    elif prune:
        command = [os.fspath(tools.uv), "--cache-dir", os.fspath(cache), "cache"]
        try:
            await run([*command, "prune", "--quiet"], tools.environment)
        except DriverError as error:
            _log.warning("downloads were not pruned", error=str(error))
