"""The last look at the GPUs of a launch, before anything is started on them.

What the controller knew is a few seconds old.  A device that is gone, or that somebody
else uses by now, is refused: nothing has begun, and the place in the line is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from fleet_agent.drivers.base import NotNowError
from fleet_agent.foreign_use import ForeignUse
from fleet_agent.probes.nvidia.probe import NvidiaSighting
from fleet_contracts.capabilities import AcceleratorDevice, DeviceUsage
from fleet_contracts.device_use import used_by_programs
from fleet_contracts.reasons import Explanation, Reason


LINGER_LOOKS: Final = 20
"""How often a device is looked at again that one of ours has just left."""
_MIB: Final = 1024**2


async def check_devices(
    uuids: Sequence[str],
    *,
    look: Callable[[], Awaitable[NvidiaSighting | None]],
    use: ForeignUse,
    pause: Callable[[], Awaitable[None]],
) -> None:
    """Say whether a launch may have the devices *uuids*; what nobody knows is no "no".

    A device that one of ours has just left is looked at again after a *pause*.

    Raises:
        NotNowError: one is not there, or others use it.
    """
    for attempt in range(LINGER_LOOKS):
        seen = await look()
        if seen is None:
            return
        _refuse_lost(uuids, seen)
        used = {
            device.uuid: device
            for device in seen.usage
            if device.uuid in uuids and used_by_programs(device)
        }
        if not used:
            return
        if attempt + 1 == LINGER_LOOKS or not all(
            use.just_left(uuid) for uuid in used if uuid is not None
        ):
            raise _in_use(used, seen.answer.devices, use)
        await pause()


def _refuse_lost(uuids: Sequence[str], seen: NvidiaSighting) -> None:
    there = {device.uuid: device for device in seen.answer.devices}
    is_whole = seen.answer.devices_complete
    lost = [
        uuid
        for uuid in uuids
        if (uuid not in there and is_whole)
        or (uuid in there and there[uuid].healthy is False)
    ]
    if lost:
        raise NotNowError(
            Explanation(
                reason=Reason.DEVICE_LOST,
                requested=len(uuids),
                capacity=len(uuids),
                free=len(uuids) - len(lost),
                unit="devices",
            ),
            f"not there any more: {', '.join(lost)}",
        )


def _in_use(
    used: dict[str | None, DeviceUsage],
    devices: Sequence[AcceleratorDevice],
    use: ForeignUse,
) -> NotNowError:
    memory = {device.uuid: device.memory_mib or 0 for device in devices}
    taken: dict[str, int] = {}
    for uuid, device in used.items():
        mib = used_by_programs(device)
        if uuid is not None and mib:
            taken[uuid] = mib
            use.convict(uuid, mib)
    first = min(taken, key=lambda uuid: (taken[uuid], uuid))
    whole = memory.get(first, 0) * _MIB
    return NotNowError(
        Explanation(
            reason=Reason.FOREIGN_PROCESS,
            requested=whole or None,
            capacity=whole or None,
            free=max(0, whole - taken[first] * _MIB) if whole else None,
            unit="bytes",
        ),
        f"in use by others: {', '.join(sorted(taken))}",
    )


async def a_second() -> None:
    """Give a driver the time to take back what one of ours had."""
    await asyncio.sleep(1.0)
