"""The last look at a launch's GPUs refuses what is gone and what others use."""

from __future__ import annotations

import pytest

from fleet_agent.device_check import LINGER_LOOKS, check_devices
from fleet_agent.drivers.base import NotNowError
from fleet_agent.foreign_use import LINGER_SECONDS, ForeignUse
from fleet_agent.probes.answers import Answer
from fleet_agent.probes.nvidia.probe import NvidiaSighting
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    DeviceUsage,
    ProbeStatus,
)
from fleet_contracts.reasons import Explanation, Reason


pytestmark = pytest.mark.asyncio

MIB = 1024**2


def a_sighting(
    used: dict[str, int | None], *, complete: bool = True, **healthy: bool
) -> NvidiaSighting:
    """Return a look at the devices of which so many MiB are used."""
    devices = tuple(
        AcceleratorDevice(
            accelerator=DeviceKind.CUDA,
            vendor="nvidia",
            uuid=uuid,
            memory_mib=81_920,
            healthy=healthy.get(uuid.replace("-", "_"), True),
        )
        for uuid in used
    )
    busy = tuple(
        DeviceUsage(accelerator=DeviceKind.CUDA, uuid=uuid, memory_used_mib=mib)
        for uuid, mib in used.items()
    )
    return NvidiaSighting(
        answer=Answer(
            status=ProbeStatus.OK, devices=devices, devices_complete=complete
        ),
        usage=busy,
    )


class Bench:
    """One launch that is about to start on ``GPU-a``, or on more."""

    def __init__(self, *looks: NvidiaSighting | None, held: set[str] | None = None):
        """See these, one after the other, and the last one again and again."""
        self.looks = list(looks)
        self.looked = 0
        self.now = 0.0
        self.held = held if held is not None else {"GPU-a"}
        self.use = ForeignUse(held=lambda: self.held, clock=lambda: self.now)

    async def look(self) -> NvidiaSighting | None:
        """See the next one."""
        self.looked += 1
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    async def pause(self) -> None:
        """Let a second go by."""
        self.now += 1

    async def check(self, *uuids: str) -> None:
        """Look as the agent does."""
        await check_devices(
            uuids or ("GPU-a",), look=self.look, use=self.use, pause=self.pause
        )

    async def refusal(self, *uuids: str) -> Explanation:
        """Return why not."""
        with pytest.raises(NotNowError) as caught:
            await self.check(*uuids)
        return caught.value.explanation


@pytest.mark.parametrize(
    "seen",
    [
        None,
        a_sighting({"GPU-a": 4}),
        a_sighting({"GPU-a": None}),
        a_sighting({"GPU-a": 700}),
        a_sighting({"GPU-a": 4, "GPU-b": 70_000}),
        # The list has a gap, so nobody can say that the device is not in it.
        a_sighting({"GPU-b": 4}, complete=False),
    ],
)
async def test_what_is_clean_or_cannot_be_known_is_let_pass(
    seen: NvidiaSighting | None,
) -> None:
    """A tool that does not answer, another's device and a desktop are no reason."""
    bench = Bench(seen)
    await bench.check()
    assert bench.looked == 1


async def test_a_device_that_others_use_is_refused_with_numbers_at_once() -> None:
    """It is the device's own fault: from here on it is known as used by others."""
    bench = Bench(a_sighting({"GPU-a": 24_576, "GPU-b": 4}))
    assert await bench.refusal() == Explanation(
        reason=Reason.FOREIGN_PROCESS,
        requested=81_920 * MIB,
        capacity=81_920 * MIB,
        free=57_344 * MIB,
        unit="bytes",
    )
    assert bench.looked == 1
    assert bench.use.in_use() == {"GPU-a": 24_576}


async def test_of_several_devices_only_the_used_ones_are_blamed() -> None:
    """The others of the launch are as good for the next one."""
    bench = Bench(
        a_sighting({"GPU-a": 4, "GPU-b": 24_576, "GPU-c": 9000}),
        held={"GPU-a", "GPU-b", "GPU-c"},
    )
    why = await bench.refusal("GPU-a", "GPU-b", "GPU-c")
    assert why.free == (81_920 - 9000) * MIB
    assert bench.use.in_use() == {"GPU-b": 24_576, "GPU-c": 9000}


async def test_what_one_of_ours_leaves_is_waited_for() -> None:
    """Its memory comes back a moment after its end, and that is no foreign use."""
    bench = Bench(
        a_sighting({"GPU-a": 70_000}),
        a_sighting({"GPU-a": 70_000}),
        a_sighting({"GPU-a": 4}),
    )
    bench.held.clear()
    bench.use.note()
    bench.held.add("GPU-a")
    await bench.check()
    assert bench.looked == 3
    assert bench.use.in_use() == {}


async def test_what_stays_for_too_long_after_an_end_is_somebody_elses() -> None:
    """Nobody waits without end for memory that does not come back."""
    bench = Bench(a_sighting({"GPU-a": 70_000}))
    bench.held.clear()
    bench.use.note()
    bench.held.add("GPU-a")
    assert (await bench.refusal()).reason is Reason.FOREIGN_PROCESS
    assert bench.looked == LINGER_LOOKS
    bench.now += LINGER_SECONDS
    assert bench.use.in_use() == {"GPU-a": 70_000}


@pytest.mark.parametrize(
    "seen",
    [
        a_sighting({"GPU-b": 4}),
        a_sighting({}),
        a_sighting({"GPU-a": 4, "GPU-b": 4}, GPU_a=False),
    ],
)
async def test_a_device_that_is_gone_is_refused_as_lost(seen: NvidiaSighting) -> None:
    """Missing from a whole list, or in it and broken."""
    why = await Bench(seen).refusal("GPU-a", "GPU-b")
    left = 1 if any(one.uuid == "GPU-b" for one in seen.answer.devices) else 0
    assert why == Explanation(
        reason=Reason.DEVICE_LOST, requested=2, capacity=2, free=left, unit="devices"
    )
