"""A fleet of which what is held, promised and free is added up by hand.

It knows nothing of the engine's pools, horizons and profiles.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from changing_fleet import ChangingFleet
from scheduling_builders import (
    BOTH_DRIVERS,
    GIB,
    a_catalog,
    a_class,
    a_gpu_class,
    a_metal_class,
    a_profile,
)

from fleet_contracts.catalog import Quota, ResourceClass
from fleet_contracts.devices import reserves_metal
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.scheduling.decisions import Placement
from fleet_hub.scheduling.likely import History, Outset
from fleet_hub.scheduling.profile import SOMEDAY
from fleet_hub.scheduling.snapshot import MachineState, Reservation, Usage, Waiting


CLASSES = (
    a_class("cpu", limit_seconds=1000),
    a_class("wide", cpu_milli=6000, limit_seconds=5000),
    a_class("endless", cpu_milli=3000),
    a_class("disk", disk_bytes=300 * GIB, limit_seconds=2000),
    a_gpu_class("gpu", limit_seconds=3000),
    a_gpu_class("gpus", devices=2, limit_seconds=4000),
    a_metal_class("metal", limit_seconds=2000),
)
NAMES = tuple(item.name for item in CLASSES)
BY_NAME = {item.name: item for item in CLASSES}
PRIORITIES = {"lab": 0, "urgent": 5}
QUOTAS = (Quota(user="dee", workloads=2), Quota(group="bio", devices=3))
CATALOG = a_catalog(
    classes=CLASSES,
    profiles=tuple(
        a_profile(name, classes=NAMES, priority=priority)
        for name, priority in PRIORITIES.items()
    ),
    quotas=QUOTAS,
)
STEPS_SECONDS = 300 + 1800 + 120 + 10 + 30
"""What a start may take beside its limit: hand-over, preparation, start, stop, news."""
NEWS_SECONDS = 30
EARLIER = 1.0
"""Less than this is no earlier time."""


def hold_seconds(chosen: ResourceClass) -> float:
    """Return how long such a start may hold its machine."""
    if chosen.limit_seconds is None:
        return math.inf
    return chosen.limit_seconds + STEPS_SECONDS


class FleetByHand(ChangingFleet):
    """A fleet of which all that is free is added up moment by moment."""

    def __init__(self) -> None:
        """Begin with an empty fleet at noon."""
        super().__init__(CATALOG)
        self.usage: dict[int, Usage] = {}
        self.planner.use(self.usage)
        self.running: dict[str, tuple[Waiting, Placement]] = {}
        self.line: dict[str, Waiting] = {}
        self.outsets: dict[str, Outset | None] = {}
        self.history = History(
            {name: [0.1 * n for n in range(1, 10)] * 3 for name in NAMES}
        )
        self.moves = 0
        self.is_recovering = False
        self.is_restarting = False
        self.kept_before: dict[str, Reservation | None] = {}
        """What was promised to whom before the restart that is under way."""
        self.back: set[str] = set()
        """The machines that have dialled again since."""
        self.worse: set[str | None] = set()
        """Which machines have less than before, by the event that is being told."""

    # ------------------------------------------------------ the model, by hand

    def capacity(self, state: MachineState) -> Counter[str]:
        """Return all that a machine has."""
        facts = state.facts
        return Counter(
            cpu=facts.cores_milli or 0,
            memory=facts.memory_bytes or 0,
            disk=facts.disk_free_bytes or 0,
            metal=1,
            gpu=sum(
                device.usable and device.uuid is not None for device in facts.devices
            ),
        )

    def need(
        self, state: MachineState, waiting: Waiting, driver: DriverName
    ) -> Counter[str] | None:
        """Return what a start would take there; None: it may never run there so."""
        chosen = BY_NAME[waiting.class_name or ""]
        if driver is DriverName.NATIVE and waiting.principal.name != state.owner:
            return None
        on_a_mac = state.facts.os == "darwin"
        if (chosen.accelerator is Accelerator.MPS) != on_a_mac and (
            chosen.accelerator is not Accelerator.CPU
        ):
            return None
        metal = reserves_metal(
            os=state.facts.os, driver=driver, accelerator=chosen.accelerator
        )
        working = [device for device in state.facts.devices if device.usable]
        if chosen.accelerator is not Accelerator.CPU and len(working) < chosen.devices:
            return None
        return Counter(
            cpu=chosen.cpu_milli,
            memory=chosen.memory_bytes,
            disk=chosen.disk_bytes,
            metal=int(metal),
            gpu=chosen.devices if chosen.accelerator is Accelerator.CUDA else 0,
        )

    def taken(
        self, state: MachineState, *, without: str = ""
    ) -> Iterator[tuple[float, float, Counter[str]]]:
        """Yield what is held and promised there, from when until when."""
        for item in state.held:
            end = math.inf if item.ends_by is None else item.ends_by + NEWS_SECONDS
            # Who is late may stay for ever.
            end = math.inf if end <= self.now else end
            lost = {device.uuid for device in state.facts.devices if not device.usable}
            yield (
                -math.inf,
                end,
                Counter(
                    cpu=item.resources.cpu_milli,
                    memory=item.resources.memory_bytes,
                    disk=item.resources.disk_bytes,
                    metal=int(item.resources.metal),
                    gpu=len(
                        [uuid for uuid in item.resources.devices if uuid not in lost]
                    ),
                ),
            )
        for workload, wait in self.told.items():
            kept = wait.reservation
            if kept is None or kept.machine != state.name or workload == without:
                continue
            waiting = self.line[workload]
            need = self.need(state, waiting, kept.driver)
            assert need is not None, f"{workload} cannot run where it is promised"
            seconds = hold_seconds(BY_NAME[waiting.class_name or ""])
            yield kept.start, kept.start + seconds, need
        yield from self.kept_without_a_time(state, without)

    def kept_without_a_time(
        self, state: MachineState, without: str
    ) -> Iterator[tuple[float, float, Counter[str]]]:
        """Yield what is kept there, one day, for who cannot be told when."""
        for workload, waiter in self.planner.waiters.items():
            found = waiter.found
            if found is None or waiter.is_timed or workload == without:
                continue
            if found.machine == state.name:
                need = self.need(state, self.line[workload], found.need.driver)
                assert need is not None
                yield SOMEDAY, math.inf, need

    def fits(
        self,
        state: MachineState,
        taken: list[tuple[float, float, Counter[str]]],
        need: Counter[str],
        start: float,
        end: float,
    ) -> bool:
        """Return whether *need* fits all the time, moment by moment."""
        moments = {start} | {begin for begin, until, _ in taken if start < begin < end}
        capacity = self.capacity(state)
        for moment in moments:
            used: Counter[str] = Counter()
            for begin, until, amounts in taken:
                if begin <= moment < until:
                    used.update(amounts)
            if any(
                used[key] + amount > capacity[key]
                for key, amount in need.items()
                if amount
            ):
                return False
        return True

    def takes_work(self, state: MachineState) -> bool:
        """Return whether it takes anything new."""
        return state.online and state.draining_by is None and state.inventory_known

    def soonest(self, workload: str) -> float:
        """Return the first moment at which it could start, beside all that is promised."""
        waiting, best = self.line[workload], math.inf
        seconds = hold_seconds(BY_NAME[waiting.class_name or ""])
        for state in self.machines.values():
            if not self.takes_work(state) or state.name in waiting.rejected_by:
                continue
            taken = list(self.taken(state, without=workload))
            for driver in BOTH_DRIVERS:
                need = self.need(state, waiting, driver)
                if need is None:
                    continue
                ends = {until for _, until, _ in taken if self.now < until < math.inf}
                for start in sorted({self.now} | ends):
                    if start < best and self.fits(
                        state, taken, need, start, start + seconds
                    ):
                        best = start
        return best
