"""How does a step in a thread end that somebody no longer waits for?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar


Result = TypeVar("Result")


async def to_its_end(
    step: Callable[[], Result], threads: Executor | None = None
) -> Result:
    """Return the result of *step*, done in a thread of *threads*.

    Cancelled, it has been done all the same when the ``CancelledError`` arrives: what
    it made is there to be found and undone.
    """
    doing = asyncio.get_running_loop().run_in_executor(threads, step)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        if not doing.cancelled():
            # Retrieved: nobody else will.
            doing.exception()
        raise
