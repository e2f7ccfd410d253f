"""Others' use of a GPU is told steadily, and never confused with the fleet's own."""

from __future__ import annotations

from datetime import UTC, datetime

from fleet_agent.foreign_use import (
    FIRST_QUIET_SECONDS,
    FORGIVEN_SECONDS,
    LINGER_SECONDS,
    LONGEST_QUIET_SECONDS,
    STALE_SECONDS,
    ForeignUse,
)
from fleet_contracts.capabilities import DeviceKind, DeviceUsage, Observed, Usage


LOOK = 30.0
"""Between two looks, as the agent looks by itself."""


class Bench:
    """A machine with one GPU, and its clock."""

    def __init__(self) -> None:
        """Hold nothing."""
        self.held: set[str] = set()
        self.now = 1000.0
        self.use = ForeignUse(held=lambda: self.held, clock=lambda: self.now)

    def look(self, used_mib: int | None, *, after: float = LOOK) -> int | None:
        """Look once, and return what is told then."""
        self.now += after
        self.use.see([a_device(used_mib)])
        return self.use.used_mib("GPU-a")


def a_device(used_mib: int | None, uuid: str | None = "GPU-a") -> DeviceUsage:
    """Return what one look shows."""
    return DeviceUsage(accelerator=DeviceKind.CUDA, uuid=uuid, memory_used_mib=used_mib)


def test_what_only_passes_is_no_use() -> None:
    """One look may meet somebody's quick test; the next one decides."""
    bench = Bench()
    assert bench.look(None) is None
    assert bench.look(9000) is None
    assert bench.use.is_suspicious
    assert bench.look(0) == 0
    assert not bench.use.is_suspicious


def test_a_use_that_stays_is_told_until_it_has_ended_for_a_while() -> None:
    """It clears by itself, and not with the first look that finds nothing."""
    bench = Bench()
    bench.look(9000)
    assert bench.look(9000) == 9000
    assert not bench.use.is_suspicious
    assert bench.use.in_use() == {"GPU-a": 9000}
    assert bench.look(12_000) == 12_000
    assert bench.look(0) == 12_000
    assert bench.look(0) == 0
    assert bench.use.in_use() == {}


def test_a_device_that_is_used_again_and_again_is_left_alone_for_longer() -> None:
    """The time doubles with each use, up to half an hour, and is forgotten after one."""

    def quiet_for(bench: Bench) -> float:
        assert bench.look(9000) in {0, None}
        assert bench.look(9000) == 9000
        bench.look(0)
        began = bench.now
        while bench.look(0, after=5.0):
            pass
        return bench.now - began

    bench = Bench()
    waited = [quiet_for(bench) for _ in range(9)]
    assert waited == [
        min(FIRST_QUIET_SECONDS * 2**number, LONGEST_QUIET_SECONDS)
        for number in range(9)
    ]
    bench.now += FORGIVEN_SECONDS
    assert quiet_for(bench) == FIRST_QUIET_SECONDS


def test_what_the_fleet_holds_is_the_fleets_own_use() -> None:
    """Nobody can tell whose it is, so nothing is told: neither none nor all."""
    bench = Bench()
    bench.held = {"GPU-a"}
    assert bench.look(70_000) is None
    assert bench.look(70_000) is None
    assert not bench.use.is_suspicious


def test_what_lingers_after_an_end_is_not_taken_for_somebody_elses() -> None:
    """A driver needs a moment to take its memory back; whoever stays longer is others."""
    bench = Bench()
    bench.held = {"GPU-a"}
    bench.look(70_000)
    bench.held = set()
    bench.use.note()
    for _ in range(3):
        assert bench.look(70_000, after=LINGER_SECONDS / 4) is None
    assert bench.use.just_left("GPU-a")
    assert bench.look(70_000, after=LINGER_SECONDS / 4) is None
    assert bench.look(70_000) == 70_000
    assert not bench.use.just_left("GPU-a")


def test_an_end_that_nobody_noted_is_noted_with_the_next_look() -> None:
    """The look itself finds that the device is not held any more."""
    bench = Bench()
    bench.held = {"GPU-a"}
    bench.look(70_000)
    bench.held = set()
    assert bench.look(70_000) is None
    assert bench.use.just_left("GPU-a")


def test_a_word_that_is_not_renewed_ends() -> None:
    """A tool that hangs makes what it said unknown, and does not keep a GPU for ever."""
    bench = Bench()
    bench.look(9000)
    assert bench.look(9000) == 9000
    assert bench.look(None) == 9000
    assert bench.look(None, after=STALE_SECONDS) is None
    assert bench.use.in_use() == {}


def test_what_a_launch_met_is_told_at_once_even_while_that_launch_holds_it() -> None:
    """The one that is refused has not touched the device, before nor after its end."""
    bench = Bench()
    bench.held = {"GPU-a"}
    bench.use.note()
    bench.use.convict("GPU-a", 24_000)
    assert bench.use.used_mib("GPU-a") == 24_000
    bench.held = set()
    bench.use.note()
    assert bench.use.used_mib("GPU-a") == 24_000
    assert bench.look(0) == 24_000
    assert bench.look(0) == 0


def test_a_device_that_is_held_again_after_it_was_refused_is_ours() -> None:
    """The verdict on the refused launch is not that of the next one."""
    bench = Bench()
    bench.held = {"GPU-a"}
    bench.use.note()
    bench.use.convict("GPU-a", 24_000)
    bench.held = set()
    bench.use.note()
    bench.held = {"GPU-a"}
    assert bench.use.used_mib("GPU-a") is None


def test_what_is_told_travels_with_the_observation() -> None:
    """Each device has its own word; one without a UUID has none."""
    bench = Bench()
    assert bench.use.told(None) is None
    bench.look(9000)
    bench.look(9000)
    bench.use.see([a_device(4, "GPU-b")])
    at = Observed(source="nvidia-smi", observed_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert bench.use.told(Usage(observed=at)) == Usage(observed=at)
    names = ("GPU-a", "GPU-b", "GPU-c", None)
    told = bench.use.told(
        Usage(observed=at, devices=tuple(a_device(1, name) for name in names))
    )
    assert told is not None
    assert [device.foreign_mib for device in told.devices] == [9000, 0, None, None]
