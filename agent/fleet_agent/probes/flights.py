"""Runs a probe beside the event loop, once at a time, and never waits for a stuck one.

A thread that reads from a dead file system or a wedged driver cannot be stopped.  It is
left behind, and the same probe does not start again while it lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar


Seen = TypeVar("Seen")

_FIRST_PAUSE_SECONDS: Final = 60.0
_LONGEST_PAUSE_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed(Generic[Seen]):
    """How a probe's run ended; ``value`` None means that it said nothing."""

    value: Seen | None = None
    late: bool = False
    """It did not answer in time, or an earlier run still has not."""
    error: str | None = None
    """A fault of the probe itself."""


@dataclass(slots=True)
class _Flight:
    busy: bool = False
    """Its thread has not come back."""
    pause_seconds: float = 0.0
    not_before: float = 0.0


@dataclass(slots=True)
class Flights:
    """The probes under way in this process; one object for its whole life."""

    clock: Callable[[], float] = time.monotonic
    _flights: dict[str, _Flight] = field(default_factory=dict)

    async def run(
        self, name: str, observe: Callable[[], Seen], *, seconds: float
    ) -> Landed[Seen]:
        """Return what *observe* returns, or that it is late after *seconds*."""
        flight = self._flights.setdefault(name, _Flight())
        if flight.busy or self.clock() < flight.not_before:
            return Landed(late=True)
        landed = await self._start(flight, name, observe, seconds)
        self._pause(flight, late=landed.late)
        return landed

    def forgive(self) -> None:
        """End every rest, since somebody asks who may have mended a tool.

        A run that is stuck stays stuck: only its own end makes room for another.
        """
        for flight in self._flights.values():
            flight.pause_seconds = flight.not_before = 0.0

    def _pause(self, flight: _Flight, *, late: bool) -> None:
        if not late:
            flight.pause_seconds = flight.not_before = 0.0
            return
        longer = max(_FIRST_PAUSE_SECONDS, flight.pause_seconds * 2)
        flight.pause_seconds = min(longer, _LONGEST_PAUSE_SECONDS)
        flight.not_before = self.clock() + flight.pause_seconds

    async def _start(
        self, flight: _Flight, name: str, observe: Callable[[], Seen], seconds: float
    ) -> Landed[Seen]:
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[Landed[Seen]] = loop.create_future()

        def land(landed: Landed[Seen]) -> None:
            if not arrived.done():
                arrived.set_result(landed)

        def fly() -> None:
            landed: Landed[Seen]
            try:
                landed = Landed(value=observe())
            except Exception as error:  # noqa: BLE001 - a probe's fault costs its own facts only
                landed = Landed(error=f"{type(error).__name__}: {error}")
            flight.busy = False
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(land, landed)

        # A daemon: a stuck thread must not keep the process from ending.
        flight.busy = True
        threading.Thread(target=fly, name=f"probe-{name}", daemon=True).start()
        try:
            # Not wait_for: of Python 3.11 it takes no cancellation from a caller whose
            # answer arrives at the same moment, and that caller then goes on for ever.
            async with asyncio.timeout(seconds):
                return await arrived
        except TimeoutError:
            return Landed(late=True)


def value_or(landed: Landed[Any], default: Any) -> Any:
    """Return what a probe saw, or *default* where it said nothing."""
    return default if landed.value is None else landed.value
