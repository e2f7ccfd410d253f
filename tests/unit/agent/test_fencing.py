"""The agent probes the fence when it may, and says what follows of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from patience import PATIENCE
from probe_machines import NOON, a_pretend_machine, settings_for
from typing_extensions import override

from fleet_agent.drivers.base import (
    Condition,
    Driver,
    DriverError,
    FenceFinding,
    Handle,
    Job,
    ProgressSink,
)
from fleet_agent.fencing import Fencing
from fleet_agent.picture import Picture
from fleet_contracts.capabilities import Fact, HostFacts, WorkerCapabilities
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName


pytestmark = pytest.mark.asyncio


@dataclass
class ADriver(Driver):
    """A driver that knows of fences, and starts nothing."""

    name = DriverName.NATIVE
    holds: bool | None = True
    remembers: bool = True
    fault: Exception | None = None
    probed: list[str] = field(default_factory=list)
    kept: dict[str, FenceFinding] = field(default_factory=dict)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    @override
    async def prepare(self, job: Job, progress: ProgressSink) -> None:
        raise NotImplementedError

    @override
    def start(self, job: Job, progress: ProgressSink) -> AsyncIterator[Handle]:
        raise NotImplementedError

    @override
    async def stop(self, handle: Handle, *, grace_seconds: float) -> None:
        raise NotImplementedError

    @override
    async def wait(self, handle: Handle) -> Condition:
        raise NotImplementedError

    @override
    async def recover(self, handle: Handle) -> Condition:
        raise NotImplementedError

    @override
    async def known_fence(self, os_build: str) -> FenceFinding | None:
        return self.kept.get(os_build)

    @override
    async def probe_fence(self, os_build: str) -> FenceFinding:
        self.probed.append(os_build)
        await self.go_on.wait()
        if self.fault is not None:
            raise self.fault
        found = FenceFinding(
            os_build=os_build, holds=self.holds, reason="told", at=NOON
        )
        if self.remembers and self.holds is not None:
            self.kept[os_build] = found
        return found


def a_mac(build: str | None = "24F74", **host: object) -> WorkerCapabilities:
    """Return what a Mac with Apple Silicon says of itself."""
    facts = {"os": "darwin", "apple_silicon": True, "os_build": build} | host
    return WorkerCapabilities(
        host=HostFacts.model_validate(
            {name: Fact(value=value) for name, value in facts.items()}
        )
    )


@dataclass
class Bench:
    """One agent's fence, its picture, and who uses the GPU."""

    driver: ADriver
    consent: bool = True
    used: bool = False
    told: asyncio.Queue[WorkerCapabilities] = field(default_factory=asyncio.Queue)

    def __post_init__(self) -> None:
        """Put it together."""
        detection = settings_for(a_pretend_machine())
        self.picture = Picture(
            settings=detection, on_change=self._changed, period_seconds=3600
        )
        self.picture.latest = a_mac()
        self.fencing = Fencing(
            consent=self.consent,
            driver=self.driver,
            picture=self.picture,
            detection=detection,
            in_use=lambda: self.used,
        )

    def _changed(self, picture: WorkerCapabilities) -> None:
        self.told.put_nowait(picture)
        self.fencing.look()

    @property
    def shares(self) -> bool:
        """Whether a CPU notebook here would hold nothing of the GPU."""
        return placement_facts(self.picture.latest).metal_fenced

    async def until(self, reason: str) -> None:
        """Return when the agent says *reason* of its fence."""
        async with asyncio.timeout(PATIENCE):
            while True:
                fence = self.picture.latest.metal_fence
                if fence is not None and fence.reason == reason:
                    return
                await self.told.get()


@asynccontextmanager
async def running(
    driver: ADriver, *, consent: bool = True, used: bool = False
) -> AsyncIterator[Bench]:
    """Run the fence of an agent; a probe ends at once unless told otherwise."""
    bench = Bench(driver, consent=consent, used=used)
    task = asyncio.create_task(bench.fencing.run())
    try:
        yield bench
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def a_driver(**changes: object) -> ADriver:
    """Return a driver whose probe ends at once."""
    driver = ADriver(**changes)  # type: ignore[arg-type]  # the fields of it
    driver.go_on.set()
    return driver


async def test_a_fence_that_holds_is_told_and_probed_once() -> None:
    """With its build and the time at which it was seen."""
    driver = a_driver()
    async with running(driver) as bench:
        await bench.until("told")
        assert bench.shares
        fence = bench.picture.latest.metal_fence
        assert fence is not None
        assert (fence.os_build, fence.observed.observed_at) == ("24F74", NOON)
        assert fence.observed.source == "fence probe"
        bench.fencing.look_again()
        await _everything_that_is_due()
    assert driver.probed == ["24F74"]


async def test_without_the_owners_consent_nothing_is_probed_or_shared() -> None:
    """A fence that is known to hold since an earlier setting is not used either."""
    driver = a_driver()
    driver.kept["24F74"] = FenceFinding(
        os_build="24F74", holds=True, reason="ok", at=NOON
    )
    async with running(driver, consent=False) as bench:
        await bench.fencing.recall()
        await bench.until("no_consent")
        assert not bench.shares
    assert driver.probed == []


async def test_what_an_earlier_agent_saw_counts_before_the_machine_says_hello() -> None:
    """A restart of the agent takes no notebook's right to share."""
    driver = a_driver()
    driver.kept["24F74"] = FenceFinding(
        os_build="24F74", holds=True, reason="ok", at=NOON
    )
    bench = Bench(driver)

    await bench.fencing.recall()

    assert bench.shares
    assert driver.probed == []


async def test_an_update_of_macos_ends_sharing_until_it_was_probed_again() -> None:
    """The new build's fence may be another."""
    driver = a_driver()
    async with running(driver) as bench:
        await bench.until("told")
        driver.go_on.clear()
        driver.holds = None
        fence = bench.picture.latest.metal_fence
        bench.picture.latest = a_mac("24G84").model_copy(update={"metal_fence": fence})
        assert not bench.shares
        bench.fencing.look()
        await bench.until("being_probed")
        driver.go_on.set()
        await bench.until("told")
        assert not bench.shares
    assert driver.probed == ["24F74", "24G84"]


@pytest.mark.parametrize("holds", [False, None])
async def test_a_fence_that_does_not_hold_is_not_shared_and_not_probed_for_ever(
    *, holds: bool | None
) -> None:
    """What came to no result is tried again when somebody asks, or the agent restarts."""
    driver = a_driver(holds=holds)
    async with running(driver) as bench:
        await bench.until("told")
        bench.fencing.look()
        await _everything_that_is_due()
        assert not bench.shares
        assert driver.probed == ["24F74"]
        bench.fencing.look_again()
        if holds is None:
            async with asyncio.timeout(PATIENCE):
                while len(driver.probed) < 2:
                    await bench.told.get()
    assert len(driver.probed) == (2 if holds is None else 1)


async def test_a_probe_that_fails_is_told_as_unknown() -> None:
    """The agent goes on, and its notebooks run one at a time."""
    fault = DriverError(Reason.SANDBOX_MISSING, "no tool")
    async with running(a_driver(fault=fault)) as bench:
        await bench.until("probe_failed")
        assert not bench.shares


async def test_a_probe_waits_until_nobody_uses_the_gpu() -> None:
    """The end of a workload is heard of; then it is its turn."""
    driver = a_driver()
    async with running(driver, used=True) as bench:
        await bench.until("gpu_in_use")
        assert driver.probed == []
        assert not bench.shares
        bench.used = False
        bench.fencing.look()
        await bench.until("told")
        assert bench.shares


async def test_what_starts_during_a_probe_waits_for_its_end() -> None:
    """So does a look at the machine, which may compute on the GPU as well."""
    driver = ADriver()
    async with running(driver) as bench:
        await bench.until("being_probed")
        starting = asyncio.create_task(bench.fencing.until_quiet())
        looking = asyncio.create_task(_enter(bench.picture))
        await asyncio.wait({starting, looking}, timeout=0)
        assert not starting.done()
        assert not looking.done()
        driver.go_on.set()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(starting, looking)


async def _everything_that_is_due() -> None:
    """Let the loop work off what waits for nothing; nothing here needs more turns."""
    for _ in range(50):
        await asyncio.sleep(0)


async def _enter(picture: Picture) -> None:
    async with picture.still():
        pass


@pytest.mark.parametrize(
    ("picture", "reason"),
    [
        (a_mac(None), "build_unknown"),
        (a_mac(apple_silicon=False), "no_apple_silicon"),
        (a_mac(apple_silicon=None), "no_apple_silicon"),
    ],
)
async def test_a_mac_that_is_not_known_well_enough_is_not_probed(
    picture: WorkerCapabilities, reason: str
) -> None:
    """There is nothing that a result could be true of."""
    driver = a_driver()
    bench = Bench(driver)
    bench.picture.latest = picture
    task = asyncio.create_task(bench.fencing.run())
    await bench.until(reason)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert driver.probed == []
    assert not bench.shares


@pytest.mark.parametrize("picture", [a_mac(os="linux"), WorkerCapabilities()])
async def test_what_is_no_mac_says_nothing_of_a_fence(
    picture: WorkerCapabilities,
) -> None:
    """Nor does a machine that does not know yet what it is."""
    bench = Bench(a_driver())
    bench.picture.latest = picture
    task = asyncio.create_task(bench.fencing.run())
    await _everything_that_is_due()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert bench.picture.latest.metal_fence is None
    assert bench.told.empty()
