"""How many decisions a second, in memory, backfill included, by size of the fleet.

A mixed fleet (GPU boxes, CPU nodes, Macs) is filled, a thousand workloads wait, and
then workloads end at random before their limits while new ones are asked for.  Each
event is decided at once.  A decision is an outcome for one workload: a placement, a
promise that was made or moved, or "no time is known".  The seconds of an event include
the news itself: what ended is released, and who asks is judged and joins the line.
Rates are by processor time, which other work on the machine does not take away;
explanations by both: use ``chrt -r 1`` where the machine is busy.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from figures import keep, quantile
from fleet_contracts.allocations import State
from fleet_contracts.capabilities import DeviceKind
from fleet_contracts.catalog import (
    Catalog,
    Profile,
    Relation,
    ResourceClass,
    Runtime,
)
from fleet_contracts.placement_facts import PlaceableDevice, PlacementFacts
from fleet_contracts.workloads import Accelerator, DriverName, Principal
from fleet_hub.explaining.answers import answer
from fleet_hub.explaining.document import Question
from fleet_hub.explaining.state import Subject
from fleet_hub.explaining.view import View
from fleet_hub.scheduling.explain import what_if
from fleet_hub.scheduling.likely import History
from fleet_hub.scheduling.likely_ends import Runs
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.promises import Promises
from fleet_hub.scheduling.snapshot import MachineState, Sharing, Waiting
from fleet_hub.scheduling.telling import waits
from fleet_hub.service.garbage import Memory


GIB = 1024**3
NOON = 1_800_000_000.0
OPEN = Sharing(admin_allows=Relation.GUEST, owner_allows=Relation.GUEST)
USERS = [Principal(user_id=number, name=f"user{number}") for number in range(500)]
GPUS = [("A100-80", 80, "8.0"), ("A100-40", 40, "8.0"), ("L4", 24, "8.9")]


def a_class(
    name: str, cores: int, gib: int, hours: float, **more: Any
) -> ResourceClass:
    """Return a class with a time limit."""
    return ResourceClass(
        name=name,
        title=name,
        cpu_milli=cores * 1000,
        memory_bytes=gib * GIB,
        limit_seconds=hours * 3600,
        **more,
    )


CLASSES = (
    a_class("cpu-1", 1, 2, 8),
    a_class("cpu-4", 4, 16, 4),
    a_class("cpu-16", 16, 64, 2),
    a_class("cpu-disk", 4, 16, 4, disk_bytes=400 * GIB),
    a_class("gpu-1", 4, 32, 4, accelerator=Accelerator.CUDA, devices=1),
    a_class(
        "gpu-1-large",
        4,
        32,
        4,
        accelerator=Accelerator.CUDA,
        devices=1,
        device_memory_bytes=60 * GIB,
    ),
    a_class("gpu-4", 16, 128, 8, accelerator=Accelerator.CUDA, devices=4),
    a_class("metal", 2, 8, 4, accelerator=Accelerator.MPS, devices=1),
)
WEIGHTS = [40, 20, 5, 0, 20, 5, 5, 5]
EARLIER = {item.name: [minutes * 60.0 for minutes in range(30, 90)] for item in CLASSES}
"""Enough earlier runs of each class that each holder has a likely end."""
UNASKED = tuple(
    item.model_copy(update={"name": f"new-{item.name}", "limit_seconds": 3600.0})
    for item in CLASSES
)
"""Classes that nobody has asked about: what they could use is not known yet."""
CATALOG = Catalog(
    classes=CLASSES + UNASKED,
    runtimes=(
        Runtime(
            name="jupyter",
            accelerators=tuple(Accelerator),
            ref="demo",
            driver_refs={DriverName.NATIVE: "jupyter"},
        ),
    ),
    profiles=(
        Profile(
            name="lab",
            title="Lab",
            classes=tuple(item.name for item in CLASSES),
            runtimes=("jupyter",),
        ),
        Profile(
            name="new",
            title="New",
            classes=tuple(item.name for item in UNASKED),
            runtimes=("jupyter",),
        ),
    ),
)


def a_machine(number: int, chance: random.Random) -> MachineState:
    """Return a machine of the mix: one in five a GPU box, one in five a Mac."""
    kind = number % 5
    name = f"m{number:05}"
    facts: dict[str, Any] = {
        "known": True,
        "settled": True,
        "os": "linux",
        "cores_milli": 64_000,
        "memory_bytes": 256 * GIB,
        "disk_free_bytes": chance.randrange(200, 2000) * GIB,
        "drivers": {DriverName.SIMULATION: True},
    }
    if kind == 0:
        model, memory, computes = GPUS[number // 5 % len(GPUS)]
        facts["devices"] = tuple(
            PlaceableDevice(
                accelerator=DeviceKind.CUDA,
                uuid=f"GPU-{name}-{index}",
                name=model,
                memory_bytes=memory * GIB,
                compute_capability=computes,
                healthy=True,
                usable=True,
            )
            for index in range(8)
        )
    elif kind == 1:
        facts |= {
            "os": "darwin",
            "cores_milli": 10_000,
            "memory_bytes": 32 * GIB,
            "devices": (
                PlaceableDevice(
                    accelerator=DeviceKind.MPS, name="M2", healthy=True, usable=True
                ),
            ),
        }
    return MachineState(
        name=name,
        owner=USERS[number % len(USERS)].name,
        sharing=OPEN,
        facts=PlacementFacts(**facts),
    )


class Load:
    """A fleet that is kept full, with a line that is kept long."""

    def __init__(self, machines: int, waiting: int, seed: int) -> None:
        """Fill the fleet, and then the line."""
        self.chance = random.Random(seed)
        self.now = NOON
        self.number = 0
        self.running: list[tuple[str, str]] = []
        self.planner = Planner(CATALOG, now=NOON)
        for number in range(machines):
            self.planner.put_machine(a_machine(number, self.chance))
        self.planner.decide(self.now)
        while len(self.planner.waiters) < waiting:
            for _ in range(max(50, machines // 4)):
                self.ask()
            self.decide()

    def ask(self) -> None:
        """A user asks for something of the mix."""
        self.number += 1
        chosen = self.chance.choices(CLASSES, WEIGHTS)[0]
        self.planner.ask(
            Waiting(
                workload=f"w{self.number:07}",
                principal=self.chance.choice(USERS),
                profile="lab",
                class_name=chosen.name,
                asked_at=self.now,
            )
        )

    def decide(self) -> int:
        """Decide, and return how many placements there were."""
        placements = self.planner.decide(self.now).placements
        self.running += [(item.machine, item.workload) for item in placements]
        return len(placements)

    def end_one(self) -> None:
        """One workload, any of them, ends early."""
        position = self.chance.randrange(len(self.running))
        self.running[position], last = self.running[-1], self.running[position]
        self.running.pop()
        self.planner.release(*last)

    def happens(self) -> int:
        """One ends and another asks, a moment later; return how many begin by it."""
        self.now += self.chance.expovariate(2.0)
        self.end_one()
        self.ask()
        return self.decide()


class Moves:
    """Counts the promises that were made or moved."""

    def __init__(self) -> None:
        """Begin to count."""
        self.count = 0
        make = Promises.make

        def counting(promises: Promises, waiter: Any, found: Any) -> None:
            self.count += 1
            make(promises, waiter, found)

        self._make = make
        Promises.make = counting  # type: ignore[method-assign] - a counter, no more

    def end(self) -> None:
        """Count no further."""
        Promises.make = self._make  # type: ignore[method-assign] - as it was


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one size."""

    samples: dict[str, list[float]]
    """Seconds of each event, explanation and what-if."""
    facts: dict[str, float]


def measure(machines: int, waiting: int, events: int) -> Measured:
    """Return the figures of one size."""
    load = Load(machines, waiting, seed=7)
    # As the service does while it is idle.
    Memory().put_aside()
    moves = Moves()
    seconds: list[float] = []
    decisions, processor = 0, 0.0
    for _ in range(events):
        load.now += load.chance.expovariate(2.0)
        before = moves.count
        start, worked = time.perf_counter(), time.process_time()
        load.end_one()
        load.ask()
        placements = load.decide()
        seconds.append(time.perf_counter() - start)
        processor += time.process_time() - worked
        # Between events, as the service does.
        load.planner.rank_if_due(load.now)
        # Who has just asked has an outcome too where no time can be promised.
        asked = load.planner.waiters.get(f"w{load.number:07}")
        unpromised = asked is not None and asked.found is None
        decisions += placements + moves.count - before + unpromised
    moves.end()
    samples = {
        "event": seconds,
        "explanation": list(_explanations(load, 1000)),
        "what_if": list(_what_ifs(load, 1000)),
    }
    first = _full_explanations(load, _first_questions(load))
    samples["first_full_explanation"] = first.wall
    every = _full_explanations(load, _questions(load, 1000))
    samples["full_explanation"] = every.wall
    samples["full_explanation_cpu"] = every.processor
    facts = {
        "decisions": decisions,
        "processor_seconds": processor,
        "events": events,
        "waiting": len(load.planner.waiters),
        "running": len(load.running),
        "promises": len(load.planner.promises),
    }
    gc.unfreeze()
    return Measured(samples=samples, facts=facts)


def _explanations(load: Load, count: int) -> Iterable[float]:
    """Yield how long it takes to tell one waiting workload everything."""
    names = sorted(load.planner.waiters)
    for workload in load.chance.sample(names, min(count, len(names))):
        start = time.perf_counter()
        told = list(waits(load.planner, [workload]))
        yield time.perf_counter() - start
        assert told


def _what_ifs(load: Load, count: int) -> Iterable[float]:
    """Yield how long the answer takes to somebody who might ask."""
    for _ in range(count):
        user = load.chance.choice(USERS)
        chosen = load.chance.choice(CLASSES)
        start = time.perf_counter()
        what_if(load.planner, user, "lab", chosen.name)
        yield time.perf_counter() - start


@dataclass(frozen=True, slots=True)
class Took:
    """How long each answer took."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def _first_questions(load: Load) -> Iterator[dict[str, str]]:
    """Yield one question about each class that nobody has asked about before."""
    for item in UNASKED:
        load.happens()
        yield {"profile": "new", "class": item.name, "user": USERS[0].name}


def _questions(load: Load, count: int) -> Iterator[dict[str, str]]:
    """Yield questions about who waits, and about what somebody might ask for.

    Before each of them something happens, as it does in a fleet.
    """
    for number in range(count):
        load.happens()
        if number % 2:
            user, chosen = load.chance.choice(USERS), load.chance.choice(CLASSES)
            yield {"profile": "lab", "class": chosen.name, "user": user.name}
        else:
            yield {"workload": load.chance.choice(sorted(load.planner.waiters))}


def _full_explanations(load: Load, questions: Iterable[dict[str, str]]) -> Took:
    """Return how long everything takes: each machine, what would help, JSON included."""
    planner, took = load.planner, Took()
    # What came before had priority and did not rest: that is made up for first.
    time.sleep(1)
    for asked in questions:
        view = _view(load)
        question = Question.model_validate(asked)
        start, worked = time.perf_counter(), time.process_time()
        found = answer(view, question)
        text = found.model_dump_json(by_alias=True)
        took.processor.append(time.process_time() - worked)
        took.wall.append(time.perf_counter() - start)
        # Whoever has priority and never rests is made to rest 50 ms of each second.
        time.sleep(took.wall[-1])
        told = sum(len(one.machines) for one in found.alike)
        assert told == len(planner.fleet.entries)
        assert text
    return took


def _view(load: Load) -> View:
    """Return what the service answers from."""

    def subject(name: str) -> Subject:
        waiting = load.planner.waiters[name].waiting
        return Subject(
            workload=name,
            generation=1,
            principal=waiting.principal,
            server="",
            profile=waiting.profile,
            class_name=waiting.class_name,
            state=State.QUEUED,
            asked_at=datetime.fromtimestamp(waiting.asked_at, UTC),
            headline="",
        )

    return View(
        as_of=datetime.fromtimestamp(load.now, UTC),
        planner=load.planner,
        starts={},
        subject=subject,
        principal=lambda name: None,
        waits=lambda: (),
        history=History(),
        runs=Runs(EARLIER),
    )


def main() -> None:
    """Measure each size and keep the figures; exits with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, nargs="*", default=[10, 1000, 10_000])
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--events", type=int, default=2000)
    arguments = parser.parse_args()
    samples: dict[str, list[float]] = {}
    figures: dict[str, float] = {}
    facts: dict[str, Any] = {}
    for size in arguments.machines:
        found = measure(size, arguments.waiting, arguments.events)
        samples |= {f"{name}_{size}": values for name, values in found.samples.items()}
        facts |= {f"{name}_{size}": value for name, value in found.facts.items()}
        rate = found.facts["decisions"] / found.facts["processor_seconds"]
        figures[f"decisions_per_second_{size}"] = rate
        figures[f"explanation_p99_ms_{size}"] = (
            quantile(found.samples["explanation"], 0.99) * 1000
        )
        for name in ("what_if", "full_explanation", "full_explanation_cpu"):
            figures[f"{name}_p99_ms_{size}"] = (
                quantile(found.samples[name], 0.99) * 1000
            )
        figures[f"first_full_explanation_p99_ms_{size}"] = (
            max(found.samples["first_full_explanation"]) * 1000
        )
    targets = {name: 20.0 for name in figures if "p99_ms" in name}
    if {1000, 10_000} <= set(arguments.machines):
        large = figures["decisions_per_second_10000"]
        figures["cost_10000_to_1000"] = figures["decisions_per_second_1000"] / large
        # Bounds are upper ones, so the rate is bounded by its inverse.
        figures["microseconds_per_decision_10000"] = 1e6 / large
        targets |= {
            "cost_10000_to_1000": 2.5,
            "microseconds_per_decision_10000": 200.0,
        }
    met = keep(
        "decisions", samples=samples, ratios=figures, targets=targets, facts=facts
    )
    sys.exit(not met)


if __name__ == "__main__":
    main()
