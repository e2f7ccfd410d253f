"""Long polls: an answer within milliseconds of the change, or at the time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fleet_hub.controller.core import Core
from fleet_hub.controller.records import Workload


async def wait_until(
    core: Core,
    workload: str,
    is_so: Callable[[Workload | None], bool],
    *,
    wait_seconds: float,
) -> Workload | None:
    """Return *workload* once *is_so*, or as it is after *wait_seconds*.

    None: it is not, or no longer, known.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_seconds
    with core.watchers.watch(workload) as watch:
        while True:
            watch.clear()
            record = core.model.workloads.get(workload)
            remaining = deadline - loop.time()
            if is_so(record) or remaining <= 0:
                return record
            await watch.wait(remaining)
