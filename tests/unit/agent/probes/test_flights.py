"""A stuck probe is left behind: it delays nobody and is not started twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from fleet_agent.probes.flights import Flights


pytestmark = pytest.mark.asyncio


class Clock:
    """A clock that the test advances."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time that the test chose."""
        return self.now


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Give an event that lets stuck threads go at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_probe_that_answers_is_heard() -> None:
    """Its value comes back, from a thread beside the event loop."""
    landed = await Flights().run("host", threading.get_ident, seconds=5)

    assert landed.value not in (None, threading.get_ident())
    assert not landed.late


async def test_a_fault_is_a_value() -> None:
    """Whatever a probe raises is told, and raised nowhere."""
    landed = await Flights().run("host", lambda: 1 // 0, seconds=5)

    assert landed.value is None
    assert landed.error == "ZeroDivisionError: integer division or modulo by zero"


async def test_a_stuck_probe_is_late_and_not_started_again(
    release: threading.Event,
) -> None:
    """While the first run is stuck, the second one is late at once."""
    flights, starts = Flights(), []

    def stuck() -> None:
        starts.append(1)
        release.wait()

    assert (await flights.run("nvidia", stuck, seconds=0.01)).late
    assert (await flights.run("nvidia", stuck, seconds=60)).late
    assert len(starts) == 1


async def test_a_stuck_probe_does_not_stop_the_others(release: threading.Event) -> None:
    """Each probe waits for itself alone."""
    flights = Flights()
    assert (await flights.run("nvidia", release.wait, seconds=0.01)).late

    assert (await flights.run("host", lambda: 7, seconds=5)).value == 7


async def test_after_it_was_late_a_probe_rests_longer_each_time() -> None:
    """A broken tool is tried after 60 s, then 120 s; an answer forgives it."""
    clock = Clock()
    flights = Flights(clock=clock)

    async def hang() -> None:
        release, gone = threading.Event(), threading.Event()
        landed = await flights.run(
            "nvidia", lambda: (release.wait(), gone.set()), seconds=0.01
        )
        assert landed.late
        release.set()
        await asyncio.to_thread(_join, "probe-nvidia")
        assert gone.is_set()

    async def is_resting() -> bool:
        return (await flights.run("nvidia", lambda: 1, seconds=5)).late

    await hang()
    clock.now = 59
    assert await is_resting()
    clock.now = 61
    await hang()
    clock.now = 61 + 119
    assert await is_resting()
    clock.now = 61 + 121
    assert not await is_resting()
    assert not await is_resting()


async def test_who_asks_on_purpose_does_not_wait_for_the_rest(
    release: threading.Event,
) -> None:
    """A mended tool is tried at once; one that is still stuck is not."""
    flights = Flights(clock=Clock())
    gone = threading.Event()
    assert (
        await flights.run("nvidia", lambda: gone.wait(timeout=10), seconds=0.01)
    ).late
    assert (await flights.run("amd", release.wait, seconds=0.01)).late
    gone.set()
    await asyncio.to_thread(_join, "probe-nvidia")
    flights.forgive()

    assert (await flights.run("nvidia", lambda: 1, seconds=5)).value == 1
    assert (await flights.run("amd", lambda: 1, seconds=5)).late


def _join(name: str) -> None:
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(timeout=10)


async def test_who_is_told_to_stop_as_the_answer_arrives_stops() -> None:
    """An agent that ends must not go on because a probe answered at that moment."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        # The thread's last act was to hand its answer to this loop.
        for thread in threading.enumerate():
            if thread.name == "probe-tool":
                thread.join()
        loop.call_soon(asking.cancel)

    def observe() -> int:
        loop.call_soon_threadsafe(stop)
        return 1

    asking = asyncio.create_task(Flights().run("tool", observe, seconds=5))

    with pytest.raises(asyncio.CancelledError):
        await asking
