"""When does the agent find out whether the fence holds, and what does it say of it?

Off unless the owner consents.  A probe computes on the GPU, so it waits until nothing
native is here, and whatever is launched meanwhile waits for its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog

from fleet_agent.drivers.base import Driver, FenceFinding
from fleet_agent.picture import Picture
from fleet_agent.probes.settings import DetectSettings
from fleet_contracts.capabilities import HostFacts, MetalFence, Observed
from fleet_contracts.devices import MACOS


_log = structlog.stdlib.get_logger("fleet_agent.fence")


class Fencing:
    """Keeps the word about the fence in *picture* true."""

    def __init__(
        self,
        *,
        consent: bool,
        driver: Driver | None,
        picture: Picture,
        detection: DetectSettings,
        in_use: Callable[[], bool],
    ) -> None:
        """Ask *driver*, with its owner's *consent*, while nothing is *in_use*."""
        self._consent = consent
        self._driver = driver
        self._picture = picture
        self._now = detection.now
        self._in_use = in_use
        self._wanted = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._tried: set[str] = set()

    def look(self) -> None:
        """See whether something is to be done: facts or workloads have changed."""
        self._wanted.set()

    def look_again(self) -> None:
        """Try once more what came to no result."""
        self._tried.clear()
        self._wanted.set()

    async def until_quiet(self) -> None:
        """Return when no probe is computing on the GPU."""
        await self._quiet.wait()

    async def recall(self) -> None:
        """Say at once what an earlier agent has found out."""
        host, driver = self._picture.latest.host, self._driver
        if driver is None or self._obstacle(host) is not None:
            return
        known = await driver.known_fence(str(host.os_build.value))
        if known is not None:
            self._picture.tell_fence(self._found(known))

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._wanted.clear()
            try:
                self._picture.tell_fence(await self._word())
            except Exception as error:  # noqa: BLE001 - then nobody knows, and the agent goes on
                _log.error("the fence cannot be judged", exc_info=error)
                self._picture.tell_fence(self._unknown("probe_failed", None))
            await self._wanted.wait()

    async def _word(self) -> MetalFence | None:
        host, driver = self._picture.latest.host, self._driver
        if driver is None or host.os.value != MACOS:
            return None
        build, obstacle = host.os_build.value, self._obstacle(host)
        if build is None or obstacle is not None:
            return self._unknown(obstacle or "build_unknown", build)
        known = await driver.known_fence(build)
        if known is None and build in self._tried:
            # The word that the attempt led to still stands.
            return self._picture.latest.metal_fence
        known = known or await self._probe(driver, build)
        return (
            self._unknown("gpu_in_use", build) if known is None else self._found(known)
        )

    def _obstacle(self, host: HostFacts) -> str | None:
        """Return why there is nothing to find out; None: there may be."""
        if not self._consent:
            return "no_consent"
        if host.os_build.value is None:
            return "build_unknown"
        return None if host.apple_silicon.value is True else "no_apple_silicon"

    async def _probe(self, driver: Driver, build: str) -> FenceFinding | None:
        """Find out, alone with the GPU; None: it is not the moment."""
        async with self._picture.still(), self._alone() as alone:
            # An update may have come in while others were waited for.
            if not alone or self._picture.latest.host.os_build.value != build:
                return None
            # Meanwhile nothing that was known counts any more.
            self._picture.tell_fence(self._unknown("being_probed", build))
            self._tried.add(build)
            return await driver.probe_fence(build)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[bool]:
        """Yield whether nobody has the GPU; nobody gets it until the end of this."""
        if self._in_use():
            yield False
            return
        self._quiet.clear()
        try:
            yield True
        finally:
            self._quiet.set()

    def _found(self, found: FenceFinding) -> MetalFence:
        return MetalFence(
            consent=self._consent,
            holds=found.holds,
            reason=found.reason,
            os_build=found.os_build,
            observed=Observed(source="fence probe", observed_at=found.at),
        )

    def _unknown(self, reason: str, build: str | None) -> MetalFence:
        return MetalFence(
            consent=self._consent,
            reason=reason,
            os_build=build,
            observed=Observed(source="fence probe", observed_at=self._now()),
        )
