"""Two things that every allocation does with a driver: wait in time, and stop gently."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from fleet_agent.drivers.base import Driver, Handle
from fleet_agent.outcomes import Outcome, gone_wrong, late
from fleet_contracts.reasons import Reason


async def within(
    seconds: float,
    work: Coroutine[None, None, None],
    *,
    too_late: Reason,
    went_wrong: Reason,
    on_fault: Callable[[Exception], None],
) -> Outcome | None:
    """Return None when *work* got done within *seconds*, else how it failed."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await work
    except Exception as error:  # noqa: BLE001 - a driver's fault must not end the agent
        if limit.expired():
            return late(too_late, seconds)
        on_fault(error)
        return gone_wrong(error, went_wrong)
    return None


async def stop_gently(
    driver: Driver, handle: Handle, *, grace_seconds: float, hurry: asyncio.Event
) -> None:
    """Stop a workload; as soon as *hurry* is set, without any more grace."""
    if grace_seconds > 0 and not hurry.is_set():
        gently = asyncio.create_task(driver.stop(handle, grace_seconds=grace_seconds))
        hurried = asyncio.create_task(hurry.wait())
        try:
            await asyncio.wait({gently, hurried}, return_when="FIRST_COMPLETED")
        finally:
            hurried.cancel()
            gently.cancel()
        await asyncio.wait({gently})
        if not gently.cancelled():
            return gently.result()
    return await driver.stop(handle, grace_seconds=0)
