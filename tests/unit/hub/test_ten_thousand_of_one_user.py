"""Ten thousand workloads of one user cost the next one nothing, quotas or none.

What is counted is work and not time: calls, and workloads that get a turn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from controller_catalogs import a_catalog
from fleet_builders import a_principal
from fleet_controller import Fleet, an_ask
from scheduling_builders import (
    ALICE,
    BOB,
    NOON,
    OPEN,
    a_catalog as a_scheduling_catalog,
    a_class,
    a_machine,
    a_profile,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.catalog import Quota
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName, Principal
from fleet_hub.controller import asking, enrolling
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.scheduling.deciding import Decider
from fleet_hub.scheduling.explain import what_if
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.telling import waits


BOTH = {DriverName.NATIVE: True, DriverName.SIMULATION: True}
CY = Principal(user_id=3, name="cy")
FEW, MANY = 100, 1000
TWO = (Quota(user="alice", workloads=2),)
ONE_OF_A_GROUP = (Quota(group="lab", workloads=1),)


def calls_of(deed: Callable[[], object]) -> int:
    """Return how many functions are called, and how many items are generated, by *deed*."""
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        deed()
    finally:
        sys.setprofile(before)
    return calls


class _Unwritten:
    """A store of which only the way to it is of interest here."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, change: object) -> None:
        """Keep nothing."""


def ask(fleet: Fleet, number: int) -> None:
    """Let alice ask for one more server, and the controller decide."""
    asking.ask(fleet.core, an_ask(number))
    run_cycle(fleet.core)


@pytest.mark.parametrize("quotas", [(), TWO], ids=["no quota", "a quota"])
def test_the_thousandth_ask_of_one_user_is_as_much_work_as_the_hundredth(
    quotas: tuple[Quota, ...],
) -> None:
    """Her earlier ones are neither looked at nor told anything."""
    fleet = Fleet(catalog=a_catalog(quotas=quotas))
    fleet.machine(owner="bob")
    fleet.core.store = _Unwritten(fleet.store)
    for number in range(1, FEW):
        ask(fleet, number)
    few = calls_of(lambda: ask(fleet, FEW))
    for number in range(FEW + 1, MANY):
        ask(fleet, number)
    many = calls_of(lambda: ask(fleet, MANY))
    assert many <= few * 1.1, (few, many)


def test_a_hundred_machines_of_ones_own_make_an_ask_no_more_work() -> None:
    """Only machines that know their owner otherwise are looked at."""
    fleet = Fleet()
    fleet.core.store = _Unwritten(fleet.store)
    for number in range(FEW):
        enrolling.enrol(fleet.core, name=f"box-{number}", owner="alice", local=True)
    ask(fleet, 1)
    assert {one.owner_id for one in fleet.core.model.machines.values()} == {1}
    known = calls_of(lambda: asking.ask(fleet.core, an_ask(2)))
    stranger = an_ask(3, principal=a_principal("bob", 2))
    asking.ask(fleet.core, stranger)
    again = an_ask(4, principal=a_principal("bob", 2))
    assert known <= calls_of(lambda: asking.ask(fleet.core, again)) * 1.1


def a_line(quotas: tuple[Quota, ...], *, many: int = MANY, **fields: object) -> Planner:
    """Return the engine of a fleet for which *many* ask who may have but a few at once."""
    chosen = a_class("cpu", limit_seconds=1000)
    catalog = a_scheduling_catalog(
        classes=(chosen,), profiles=(a_profile(classes=("cpu",)),), quotas=quotas
    )
    waiting = tuple(
        a_waiting(
            f"w{number:04}",
            class_name="cpu",
            asked_at=NOON - many + number,
            **fields,
        )
        for number in range(many)
    )
    box = a_machine("box", sharing=OPEN, drivers=BOTH)
    return planner_of(a_snapshot(catalog=catalog, machines=(box,), waiting=waiting))


def turns_of(monkeypatch: pytest.MonkeyPatch, deed: Callable[[], object]) -> int:
    """Return how many waiters get a turn while *deed* is done."""
    turns, take_turn = 0, Decider.take_turn

    def count(self: Decider, *args: Any) -> None:
        nonlocal turns
        turns += 1
        take_turn(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Decider, "take_turn", count)
        deed()
    return turns


def test_an_end_under_a_quota_brings_up_the_first_of_those_it_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It starts, the next one is seen to be kept still, and nobody else gets a turn."""
    planner = a_line(TWO)
    first, second = planner.decide(NOON).placements
    assert (first.workload, second.workload) == ("w0000", "w0001")
    started: list[str] = []

    def end_one() -> None:
        planner.release("box", "w0000")
        started.extend(one.workload for one in planner.decide(NOON + 1).placements)

    assert turns_of(monkeypatch, end_one) <= 4
    assert started == ["w0002"]
    assert planner.look_again(MANY) == 0


def test_whoever_is_kept_by_a_quota_is_told_its_numbers_as_of_now() -> None:
    """The last of a thousand too, who has had no turn since the first of them started."""
    planner = a_line(TWO)
    planner.decide(NOON)
    planner.release("box", "w0000")
    planner.decide(NOON + 1)
    (last,) = waits(planner, ["w0999"])
    assert last.explanation.reason is Reason.USER_LIMIT
    assert [one.workload for one in last.explanation.holders] == ["w0001", "w0002"]
    asked = what_if(planner, ALICE, "lab", "cpu").explanation
    assert asked is not None
    assert asked.holders == last.explanation.holders


def test_members_of_a_group_take_turns_when_its_quota_has_room_again() -> None:
    """Each kind of asker has its own first one, and the line says which of them is next."""
    planner = a_line(ONE_OF_A_GROUP, many=0)
    ada, bob = (who.model_copy(update={"groups": ("lab",)}) for who in (ALICE, BOB))
    for number, who in enumerate((ada, ada, bob, ada, bob)):
        planner.ask(
            a_waiting(
                f"w{number}", principal=who, class_name="cpu", asked_at=NOON + number
            )
        )
    order = []
    for moment in range(5):
        (placement,) = planner.decide(NOON + moment).placements
        order.append(placement.workload)
        assert planner.look_again(5) == 0
        planner.release("box", placement.workload)
    # Who has just had a start comes after who has had none.
    assert order == ["w0", "w2", "w1", "w4", "w3"]
    assert not planner.decide(NOON + 5).placements


def test_who_waits_for_files_does_not_speak_for_those_who_wait_for_the_same_quota() -> (
    None
):
    """The quota has room again: the first one cannot use it, and the next one can."""
    planner = a_line((Quota(user="alice", workloads=1),), many=0)
    home = a_machine("home", cores_milli=500)
    planner.put_machine(home)
    for number, source in enumerate((None, "home", None)):
        asked_at = NOON + number
        planner.ask(
            a_waiting(f"w{number}", class_name="cpu", asked_at=asked_at, source=source)
        )
    (first,) = planner.decide(NOON + 3).placements
    planner.put_machine(replace(home, online=False))
    assert not planner.decide(NOON + 4).placements
    planner.release(first.machine, first.workload)
    (then,) = planner.decide(NOON + 5).placements
    assert (first.workload, then.workload) == ("w0", "w2")
    planner.put_machine(home)
    planner.release(then.machine, then.workload)
    (last,) = planner.decide(NOON + 6).placements
    assert last.workload == "w1"


def test_who_is_kept_by_a_quota_keeps_no_room_from_the_next_one() -> None:
    """The first of the line may hold nothing more; room is kept for the second one.

    Nobody can tell either a time, and small work would pass the second for ever.
    """
    catalog = a_scheduling_catalog(
        classes=(a_class("whole", cpu_milli=8000),),
        profiles=(a_profile(classes=("whole",)),),
        quotas=(Quota(user="bob", workloads=1),),
    )
    held = tuple(
        an_allocation(name, cpu_milli=cores * 1000, owner=owner, user_id=user)
        for name, cores, owner, user in (
            ("his", 4, "bob", 2),
            ("other", 1, "eve", 9),
            ("another", 3, "eve", 9),
        )
    )
    planner = planner_of(
        a_snapshot(
            catalog=catalog,
            machines=(a_machine("box", sharing=OPEN, drivers=BOTH, held=held),),
            waiting=(
                a_waiting("w1", principal=BOB, class_name="whole", priority=1),
                a_waiting("w2", principal=CY, class_name="whole", asked_at=NOON + 1),
            ),
        )
    )
    planner.decide(NOON + 1)
    assert planner.waiters["w1"].bar is not None
    assert planner.promises.keeper_on("box") is None, "neither has waited for long"
    planner.release("box", "other")
    planner.decide(NOON + 5000)
    kept = planner.promises.keeper_on("box")
    assert kept is not None
    assert kept.workload == "w2"


def test_places_count_only_those_who_are_kept_by_nothing() -> None:
    """Of a thousand before him all but those with a place stand in nobody's way."""
    planner = a_line(TWO)
    planner.decide(NOON)
    planner.ask(a_waiting("bobs", principal=BOB, class_name="cpu", asked_at=NOON + 1))
    planner.fleet.put(replace(planner.fleet.entries["box"].machine, draining_by="me"))
    planner.decide(NOON + 1)
    (told,) = waits(planner, ["bobs"])
    assert told.position == 0
