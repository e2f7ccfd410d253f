"""Telling the controller something that must not be lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from logging import Logger, LoggerAdapter
from typing import Any, Final, TypeVar

from fleet_hub.errors import ControllerRefusedError, ControllerUnreachableError


RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)

_Answer = TypeVar("_Answer")
_PENDING: dict[asyncio.Task[Any], str] = {}
"""What each task is about; also keeps tasks alive that nobody awaits any more."""


async def until_recorded(
    tell: Callable[[], Awaitable[_Answer]],
    *,
    within_seconds: float | None,
    log: Logger | LoggerAdapter[Logger],
    about: str = "",
) -> _Answer | None:
    """Repeat *tell* until the controller took it; return its answer.

    After *within_seconds* without success None is returned, and the telling goes on in
    the background.  None for the limit waits for as long as it takes.  A controller
    that refuses is logged and not asked again.  ``is_told`` waits for what is *about*
    the same.
    """
    task = asyncio.ensure_future(_repeat(tell, log))
    _PENDING[task] = about
    task.add_done_callback(_PENDING.pop)
    # not cancelled with its caller, nor by the limit
    await asyncio.wait([task], timeout=within_seconds)
    return task.result() if task.done() else None


async def is_told(about: str, *, within_seconds: float) -> bool:
    """Return whether the controller knows, in time, all that *about* is told of.

    What it heard later would be taken for being about what came after.
    """
    tasks = [task for task, subject in _PENDING.items() if subject == about]
    if not tasks:
        return True
    _, late = await asyncio.wait(tasks, timeout=within_seconds)
    return not late


async def _repeat(
    tell: Callable[[], Awaitable[_Answer]], log: Logger | LoggerAdapter[Logger]
) -> _Answer | None:
    failures = 0
    while True:
        try:
            return await tell()
        except ControllerUnreachableError as error:
            if failures == 0:
                log.warning("the controller is away; it will be told again: %s", error)
            pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
            failures += 1
            await asyncio.sleep(pause)
        except ControllerRefusedError:
            log.exception("the controller refused")
            return None
