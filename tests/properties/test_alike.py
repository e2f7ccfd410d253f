"""The quick answer of all machines is the one that each machine gives by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings
from scheduling_builders import (
    BOB,
    GIB,
    NOON,
    OPEN,
    a_catalog,
    a_class,
    a_gpu,
    a_gpu_class,
    a_mac,
    a_machine,
    a_metal_class,
    a_runtime,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.catalog import Quota, Relation, TrustPolicy
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.trust import relation_of
from fleet_contracts.workloads import DriverName
from fleet_hub.scheduling.bars import bar_of
from fleet_hub.scheduling.inspection import (
    PAGE,
    Inspection,
    inspect_request,
    inspect_waiting,
)
from fleet_hub.scheduling.nearness import nearness
from fleet_hub.scheduling.outlooks import DRIVER_ORDER, look
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.positions import position, positions
from fleet_hub.scheduling.prospects import Prospects
from fleet_hub.scheduling.snapshot import MachineState, Pin, Sharing, Snapshot
from fleet_hub.scheduling.survey import answer_of
from fleet_hub.scheduling.telling import told
from fleet_hub.scheduling.waiter import Waiter


CLASSES = (
    a_class("cpu", cpu_milli=2500, limit_seconds=1000),
    a_class("wide", cpu_milli=6000, limit_seconds=900),
    a_class("full", cpu_milli=1000, disk_bytes=40 * GIB, limit_seconds=900),
    a_gpu_class("gpu", limit_seconds=3000),
    a_gpu_class("large-gpu", device_memory_bytes=60 * GIB, disk_bytes=60 * GIB),
    a_metal_class("metal", limit_seconds=2000),
)
NAMES = tuple(item.name for item in CLASSES)
CLOSED = Sharing(admin_allows=Relation.OWNER, owner_allows=Relation.OWNER)
LENT = Sharing(
    admin_allows=Relation.MEMBER, owner_allows=Relation.MEMBER, users=frozenset({"bob"})
)


@dataclass(frozen=True)
class Kind:
    """What several machines of a fleet have in common."""

    fields: dict[str, Any]
    is_mac: bool
    devices: int
    device_gib: int
    holds: int
    cpu_milli: int
    held_gib: int
    foreign_gib: tuple[int, ...]
    """What others use of its devices, the last one first."""

    def machine(self, name: str, **fields: Any) -> MachineState:
        """Return one of them."""
        fields = self.fields | fields
        if self.is_mac:
            return a_mac(name, **fields)
        devices = tuple(
            a_gpu(f"{name}-{number}", memory_bytes=self.device_gib * GIB)
            for number in range(self.devices)
        )
        held = tuple(
            an_allocation(
                f"h-{name}-{number}",
                cpu_milli=self.cpu_milli,
                disk_bytes=self.held_gib * GIB,
                devices=tuple(one.uuid for one in devices[number : number + 1]),
                ends_by=NOON + 500,
            )
            for number in range(self.holds)
        )
        used = zip(reversed(devices), self.foreign_gib, strict=False)
        foreign = tuple((str(one.uuid), gib * GIB) for one, gib in used if gib)
        return a_machine(name, devices=devices, held=held, foreign=foreign, **fields)


FIELDS = st.fixed_dictionaries(
    {
        "owner": st.sampled_from(["alice", "cy", "cy"]),
        "sharing": st.sampled_from([OPEN, OPEN, OPEN, CLOSED, LENT]),
        "drivers": st.sampled_from(
            [
                {DriverName.NATIVE: True, DriverName.SIMULATION: True},
                {DriverName.NATIVE: True},
            ]
        ),
        "online": st.sampled_from([True, True, True, False]),
        "draining_by": st.sampled_from([None, None, None, "root"]),
        "inventory_known": st.sampled_from([True, True, True, False]),
    }
)
KINDS = st.builds(
    Kind,
    FIELDS,
    st.sampled_from([False, False, True]),
    st.sampled_from([0, 0, 1, 2]),
    st.sampled_from([40, 80]),
    st.integers(0, 2),
    st.sampled_from([500, 3500, 4000]),
    st.sampled_from([0, 30]),
    st.sampled_from([(), (), (3,), (0, 3), (3, 9), (9, 9)]),
)


def _gib(size: int | None) -> int | None:
    return None if size is None else size * GIB


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Return a fleet with a line, rejections, files that are somewhere and quotas."""
    names = [f"m{number}" for number in range(draw(st.integers(0, 8)))]
    kinds = draw(st.lists(KINDS, min_size=1, max_size=2))
    disks = draw(st.lists(st.sampled_from([None, 50, 100, 400]), min_size=1))
    waiting = []
    for number in range(draw(st.integers(0, 6))):
        pinned = draw(st.sampled_from([None, None, None, "m0", "gone"]))
        pin = None if pinned is None else Pin(machine=pinned, driver=DriverName.NATIVE)
        rejected = draw(st.sampled_from([(), (), (), ("m1", "m2")]))
        waiting.append(
            a_waiting(
                f"w{number}",
                class_name=draw(st.sampled_from(NAMES)),
                asked_at=NOON - number,
                pin=pin,
                source=draw(st.sampled_from([None, None, None, "m0", "gone"])),
                rejected_by=dict.fromkeys(rejected, Reason.DISK_FULL),
                **draw(st.sampled_from([{}, {"principal": BOB}])),
            )
        )
    catalog = a_catalog(
        classes=CLASSES,
        runtimes=(a_runtime(requires=draw(st.sampled_from([(), ("sandbox.bwrap",)]))),),
        quotas=draw(st.sampled_from([(), (Quota(user="*", workloads=1),)])),
        trust=TrustPolicy(),
    )
    return a_snapshot(
        catalog=catalog,
        machines=tuple(
            draw(st.sampled_from(kinds)).machine(
                name, disk_free_bytes=_gib(draw(st.sampled_from(disks)))
            )
            for name in names
        ),
        waiting=tuple(waiting),
    )


def one_by_one(planner: Planner, waiter: Waiter) -> dict[str, Explanation | None]:
    """Return what each machine says, asked by itself."""
    fleet, interest = planner.fleet, waiter.interest
    asker = waiter.asker(names_visible=True)
    answers: dict[str, Explanation | None] = {}
    for name in fleet.entries:
        why = answer_of(fleet, interest, asker, name) or waiter.bar
        if why is None and fleet.start_on(interest, name, planner.now) > planner.now:
            why = told(planner, interest, waiter, name)
        answers[name] = why
    return answers


def numbers(explanation: Explanation | None) -> Explanation | None:
    """Return *explanation* without a machine's name and holders."""
    if explanation is None:
        return None
    return explanation.model_copy(update={"machine": None, "holders": ()})


def spread(found: Inspection) -> dict[str, Explanation | None]:
    """Return what every machine says according to the quick answer."""
    answers: dict[str, Explanation | None] = {}
    for one in found.alike:
        for place, name in enumerate(one.machines):
            why = one.explanation
            if why is not None and one.capacities:
                why = why.model_copy(update={"capacity": one.capacities[place]})
            if why is not None and one.frees:
                why = why.model_copy(update={"free": one.frees[place]})
            assert name not in answers
            answers[name] = why
    return answers


def check(planner: Planner, waiter: Waiter, found: Inspection) -> None:
    """Compare the quick answer of all machines with each one's own."""
    plain = one_by_one(planner, waiter)
    assert {name: numbers(why) for name, why in plain.items()} == {
        name: numbers(why) for name, why in spread(found).items()
    }
    assert sum(found.counts.values()) == sum(why is not None for why in plain.values())
    rows = {one.machine: one.explanation for one in found.machines}
    assert set(rows) == set(plain)
    for name, why in plain.items():
        row = rows[name]
        assert numbers(row) == numbers(why)
        assert (row and row.holders) == (why and why.holders)
    order = [(_distance(why), name) for name, why in rows.items()]
    assert order == sorted(order)


def _distance(why: Explanation | None) -> tuple[bool, bool, int]:
    """Return how far from yes a machine is."""
    if why is None:
        return False, False, 0
    may_clear, near = nearness(why.reason)
    return True, not may_clear, -near


def counted(planner: Planner, waiter: Waiter) -> tuple[int, int]:
    """Return how many machines would serve and start the request, one by one."""
    waiting, request, fleet = waiter.waiting, waiter.request, planner.fleet
    serving = starting = 0
    for name, entry in fleet.entries.items():
        sharing = entry.machine.sharing
        relation = relation_of(
            waiting.principal,
            owner=entry.machine.owner,
            users=sharing.users,
            groups=sharing.groups,
        )
        drivers = DRIVER_ORDER if waiting.pin is None else (waiting.pin.driver,)
        outlook = look(
            entry.signature, request, relation, drivers, planner.catalog.trust
        )
        if waiting.pin is not None and waiting.pin.machine != name:
            continue
        disk = entry.machine.facts.disk_free_bytes or 0
        if name in waiting.rejected_by or not outlook.needs:
            continue
        if disk < request.chosen.disk_bytes:
            continue
        serving += 1
        if not outlook.placeable or entry.trouble is not None:
            continue
        opening = entry.first(
            outlook.needs,
            request.hold_seconds,
            planner.now,
            without=(waiter.workload,),
        )
        starting += opening is not None and opening.start <= planner.now
    return serving, starting


CHANGES = st.lists(
    st.tuples(
        st.integers(0, 7),
        st.sampled_from([{}, {"online": False}, {"draining_by": "root"}]),
        st.sampled_from([None, 50, 100, 400]),
        st.sampled_from([None, 0, 30]),
    ),
    max_size=3,
)


@settings(max_examples=150)
@given(snapshots(), st.sampled_from(NAMES), CHANGES)
def test_the_quick_answer_of_all_machines_equals_each_ones_own(
    snapshot: Snapshot,
    class_name: str,
    changes: list[tuple[int, dict[str, Any], int | None, int | None]],
) -> None:
    """Code, numbers and holders, for whoever waits and for whoever might ask.

    So it is again after machines changed of which something was known.
    """
    planner = planner_of(snapshot)
    planner.decide(snapshot.now)
    check_everybody(planner, class_name)
    for number, fields, disk, held_gib in changes:
        entry = planner.fleet.entries.get(f"m{number}")
        if entry is None:
            continue
        facts = entry.machine.facts.model_copy(update={"disk_free_bytes": _gib(disk)})
        held = tuple(entry.allocations.values())
        if held_gib is not None:
            more = an_allocation(f"more-{number}", disk_bytes=held_gib * GIB)
            held = (*(one for one in held if one.workload != more.workload), more)
        planner.put_machine(replace(entry.machine, facts=facts, held=held, **fields))
    planner.decide(snapshot.now)
    check_everybody(planner, class_name)


def check_everybody(planner: Planner, class_name: str) -> None:
    """Check the answers to all who wait, and to somebody who might ask."""
    places = {waiter.workload: place for waiter, place in positions(planner)}
    for name in tuple(planner.waiters):
        waiter = planner.waiters[name]
        assert position(planner, name) == places[name]
        check(planner, waiter, inspect_waiting(planner, name))
        serving, starting = counted(planner, waiter)
        prospects = Prospects(planner, waiter)
        assert prospects.of(waiter.request) == (serving, starting)
        assert prospects.would_serve(waiter.request) is (serving > 0)
        assert prospects.would_start(waiter.request) is (starting > 0)
    asked = a_waiting("zz", class_name=class_name)
    found = inspect_request(planner, asked)
    with planner.imagine(asked) as imagined:
        if isinstance(imagined, Waiter) and found.alike:
            imagined.bar = bar_of(planner.fleet, planner.quotas, imagined)
            check(planner, imagined, found)


def test_equal_machines_answer_apart_where_a_promise_or_a_disk_tells_them_apart() -> (
    None
):
    """One is promised to somebody, one has said no, and disks are too small or too full."""
    held = {
        name: (an_allocation(f"h-{name}", cpu_milli=4000, ends_by=NOON + 60),)
        for name in "abcde"
    }
    held["e"] = (*held["e"], an_allocation("h-disk", cpu_milli=0, disk_bytes=40 * GIB))
    fleet = tuple(
        a_machine(name, held=held[name], disk_free_bytes=size * GIB)
        for name, size in zip("abcde", (90, 90, 90, 50, 90), strict=True)
    )
    catalog = a_catalog(
        classes=(
            a_class("wide", cpu_milli=6000, limit_seconds=900),
            a_class("small", cpu_milli=3000, disk_bytes=60 * GIB, limit_seconds=900),
            a_class("tiny", cpu_milli=1000, limit_seconds=900),
        )
    )
    planner = planner_of(
        a_snapshot(
            catalog=catalog,
            machines=fleet,
            waiting=(a_waiting("w", class_name="wide", rejected_by={}),),
        )
    )
    planner.decide(NOON)
    assert planner.promises.machines() == {"a"}
    asked = a_waiting(
        "zz", class_name="small", rejected_by={"b": Reason.ENVIRONMENT_BROKEN}
    )
    found = inspect_request(planner, asked)
    told_by = {
        one.reason: (one.machines, one.capacities, one.frees) for one in found.alike
    }
    assert told_by == {
        None: (("c",), (), ()),
        Reason.BEHIND: (("a",), (), ()),
        Reason.AGENT_REJECTED: (("b",), (), ()),
        Reason.DISK_BUSY: (("e",), (90 * GIB,), (50 * GIB,)),
        Reason.DISK_TOO_SMALL: (("d",), (50 * GIB,), ()),
    }
    with planner.imagine(asked) as waiter:
        assert isinstance(waiter, Waiter)
        assert Prospects(planner, waiter).of(waiter.request) == (3, 1)
    # What leaves room for the promised start is in nobody's way.
    tiny = inspect_request(planner, a_waiting("zz", class_name="tiny")).alike
    assert [(one.reason, one.machines) for one in tiny] == [(None, tuple("abcde"))]


def test_a_page_tells_the_nearest_machines_and_every_page_others() -> None:
    """Every machine is on exactly one page, those that take it on the first."""
    fleet = [a_machine(f"m{number:03}") for number in range(2 * PAGE + 30)]
    free = {"m007", f"m{2 * PAGE + 29:03}"}
    snapshot = a_snapshot(
        machines=tuple(
            one
            if one.name in free
            else a_machine(
                one.name, held=(an_allocation(f"h-{one.name}", cpu_milli=8000),)
            )
            for one in fleet
        ),
    )
    planner = planner_of(snapshot)
    planner.decide(snapshot.now)
    pages = [inspect_request(planner, a_waiting("?"), page) for page in (1, 2, 3, 4)]
    shown = [[one.machine for one in page.machines] for page in pages]
    assert [len(names) for names in shown] == [PAGE, PAGE, 30, 0]
    assert shown[0][:3] == [*sorted(free), "m000"]
    assert sorted(name for names in shown for name in names) == [
        one.name for one in fleet
    ]
    for page in pages:
        assert page.counts == {Reason.CPU_BUSY: 2 * PAGE + 28}
