"""The machine's picture of itself, kept up to date beside everything else.

Detection may take seconds, and a broken tool minutes.  Registration waits only for the
facts that need no slow tool; what is not known yet is unknown, and follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import structlog

from fleet_agent.lost_devices import with_lost
from fleet_agent.memory import give_back
from fleet_agent.probes.detect import detect_fast, pictures
from fleet_agent.probes.nvidia.probe import NvidiaSighting
from fleet_agent.probes.observe import look_at_devices, observe
from fleet_agent.probes.same import same_facts, same_terms
from fleet_agent.probes.settings import DetectSettings, always
from fleet_agent.terms.watching import TermsWatch
from fleet_contracts.capabilities import (
    DeviceUsage,
    MetalFence,
    Usage,
    WorkerCapabilities,
)
from fleet_contracts.placement_facts import placement_facts


_FIRST_SECONDS = 3.0
"""How long the first hello waits for the fast facts."""

_TERMS_SECONDS = 5.0
"""Between two looks at the owner's terms: a file, a clock, at most two quick tools."""

_SECOND_LOOK_SECONDS = 5.0
"""Until what was seen of a device is looked at once more, because it matters."""

_log = structlog.stdlib.get_logger("fleet_agent.picture")


class Picture:
    """The latest picture of the machine; all unknown until something is known."""

    def __init__(
        self,
        *,
        settings: DetectSettings,
        on_change: Callable[[WorkerCapabilities], None],
        period_seconds: float,
        observe_seconds: float = 30.0,
        terms: TermsWatch | None = None,
        on_usage: Callable[[Sequence[DeviceUsage]], bool] = lambda devices: False,
    ) -> None:
        """Detect with *settings*; *on_change* hears of each picture that differs.

        *on_usage* hears of each look at the devices' use, and says whether it wants
        another one soon.
        """
        self._on_usage = on_usage
        self._observing = asyncio.Lock()
        self._terms = terms
        self.latest = WorkerCapabilities()
        self._usage: Usage | None = None
        self._observe_seconds = observe_seconds
        self._settings = settings
        self._on_change = on_change
        self._period_seconds = period_seconds
        self._wanted = asyncio.Event()
        self._looking = asyncio.Lock()

    @property
    def usage(self) -> Usage | None:
        """How busy the machine was when it was last looked at, by whichever look."""
        known = [item for item in (self._usage, self.latest.usage) if item is not None]
        return max(known, key=lambda item: item.observed.observed_at, default=None)

    def look_again(self) -> None:
        """Detect now, not only when it is time; a tool that rested is tried again."""
        self._settings.memory.flights.forgive()
        self._wanted.set()

    async def notice_environments(self) -> None:
        """Detect again if an environment was built since the last look."""
        find = self._settings.find_environments
        if find is None:
            return
        try:
            built = {environment.ref for environment in await find()}
        except Exception as error:  # noqa: BLE001 - the next look tries again
            _log.error("environments cannot be found", exc_info=error)
            return
        if built - {facts.environment for facts in self.latest.torch}:
            self.look_again()

    async def torch_in(
        self, ref: str, wanted: Sequence[str], *, may_compute: bool = True
    ) -> dict[str, bool | None]:
        """Return what torch of the environment *ref* can do, asked now if unknown.

        A look that is under way may be asking it already, so it is waited for.
        Without *may_compute* it is only asked if nobody else holds the GPU.
        """
        async with self._looking:
            facts = self._torch_of(self.latest, ref)
            if all(facts.get(name) is not None for name in wanted):
                return facts
            find = self._settings.find_environments
            built = () if find is None else await find()
            settings = replace(
                self._settings,
                environments=tuple(each for each in built if each.ref == ref),
                find_environments=None,
                gpu_is_free=always if may_compute else self._settings.gpu_is_free,
            )
            seen = [picture async for picture in pictures(settings)][-1]
        # What was learnt is remembered, so telling it takes no second question.
        self.look_again()
        return self._torch_of(seen, ref)

    @staticmethod
    def _torch_of(picture: WorkerCapabilities, ref: str) -> dict[str, bool | None]:
        return placement_facts(picture).environments.get(ref, {})

    async def look_fast(self) -> None:
        """Learn what needs no slow tool, and do not wait for it for long."""
        if self._terms is not None:
            await self._look_at_terms(self._terms)
        try:
            async with asyncio.timeout(_FIRST_SECONDS):
                seen = await detect_fast(self._settings)
                self.latest = self._with_told(seen)
        except TimeoutError:
            _log.warning("the first facts are late; the machine registers without them")

    async def run(self) -> None:
        """Detect at once, then periodically and on demand, until cancelled."""
        while True:
            self._wanted.clear()
            await self._look()
            try:
                async with asyncio.timeout(self._period_seconds):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def watch(self) -> None:
        """Observe how busy the machine is, again and again, until cancelled.

        Nobody is told: whoever speaks next takes the latest observation along.
        """
        is_wanted = False
        while True:
            soon = _SECOND_LOOK_SECONDS if is_wanted else self._observe_seconds
            await asyncio.sleep(min(soon, self._observe_seconds))
            is_wanted = False
            try:
                async with self._observing:
                    seen = await observe(self._settings, self.latest)
                if seen is not None:
                    self._usage = seen
                    is_wanted = self._on_usage(seen.devices)
            except Exception as error:  # noqa: BLE001 - as in _look
                _log.error("observation failed", exc_info=error)

    async def devices_now(self) -> NvidiaSighting | None:
        """Return what nvidia-smi says of the devices now; None: it does not say.

        Nothing of the agent's own computes on them meanwhile.
        """
        async with self._looking, self._observing:
            seen = await look_at_devices(self._settings)
        usage = self.usage
        if seen is not None and seen.usage and usage is not None:
            at = usage.observed.model_copy(update={"observed_at": self._settings.now()})
            more = {"devices": seen.usage, "observed": at}
            self._usage = usage.model_copy(update=more)
        return seen

    async def watch_terms(self) -> None:
        """See again and again whether the owner's terms are met, until cancelled."""
        terms = self._terms
        if terms is None:
            # Its end would be taken for the agent's.
            await asyncio.Event().wait()
            return
        while True:
            if await self._look_at_terms(terms):
                _log.info("the owner's terms changed", unmet=_unmet(self.latest))
                self._on_change(self.latest)
            await asyncio.sleep(_TERMS_SECONDS)

    async def _look_at_terms(self, terms: TermsWatch) -> bool:
        """Take the terms as they are met now; return whether anything changed."""
        told = await terms.look()
        changed = not same_terms(told, self.latest.terms)
        self.latest = self.latest.model_copy(update={"terms": told})
        return changed

    def tell_fence(self, fence: MetalFence | None) -> None:
        """Take what is known of a Mac's fence."""
        told = self.latest.model_copy(update={"metal_fence": fence})
        changed = not same_facts(told, self.latest)
        self.latest = told
        if changed:
            _log.info("fence", reason=fence and fence.reason)
            self._on_change(told)

    @asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """Let no look at the machine, which may compute on its GPU, begin meanwhile."""
        async with self._looking:
            yield

    def _with_told(self, seen: WorkerCapabilities) -> WorkerCapabilities:
        """Return *seen* with what is no probe's to say."""
        kept = {"terms": self.latest.terms, "metal_fence": self.latest.metal_fence}
        return seen.model_copy(update=kept)

    async def _look(self) -> None:
        try:
            async with self._looking:
                async for seen in pictures(self._settings):
                    self._take(seen)
            give_back()
        except Exception as error:  # noqa: BLE001 - a broken probe must not end the agent
            _log.error("detection failed", exc_info=error)

    def _take(self, seen: WorkerCapabilities) -> None:
        if self.latest.settled and not seen.settled:
            # A picture in the making must not make known facts unknown again.
            return
        if seen.settled:
            seen = with_lost(seen, self.latest)
        seen = self._with_told(seen)
        changed = not same_facts(seen, self.latest)
        self.latest = seen
        if changed:
            _log.info("capabilities changed", settled=seen.settled)
            self._on_change(seen)


def _unmet(picture: WorkerCapabilities) -> list[str]:
    return [term.name for term in picture.terms if term.met is not True]
