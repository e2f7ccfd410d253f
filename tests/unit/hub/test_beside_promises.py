"""Who may start beside what others were promised, and when."""

from __future__ import annotations

from dataclasses import replace

from scheduling_builders import (
    BOB,
    BOTH_DRIVERS,
    HALVES,
    NOON,
    OPEN,
    a_busy_box,
    a_catalog,
    a_gpu_box,
    a_gpu_hold,
    a_gpu_request,
    a_machine,
    a_planner,
    a_waiting,
    an_allocation,
    reserved,
    told,
)

from fleet_contracts.catalog import Quota
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName
from fleet_hub.scheduling.choice import SLACK_SECONDS
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState, Pin, Reservation


HOUR = 3600.0


def test_an_urgent_request_takes_no_promise_of_a_machine_that_it_cannot_use() -> None:
    """Its files are elsewhere, or the machine said no to it: nobody is moved for that."""
    at_home = a_gpu_request(
        "bound",
        profile="urgent",
        principal=BOB,
        pin=Pin(machine="z", driver=DriverName.SIMULATION),
    )
    turned_away = a_gpu_request(
        "rejected",
        profile="urgent",
        principal=BOB,
        rejected_by={"a": Reason.START_FAILED},
    )
    for urgent in (at_home, turned_away):
        planner = a_planner(
            a_busy_box("a"),
            a_busy_box("z", NOON + 5 * HOUR),
            waiting=(a_gpu_request("lower"),),
        )
        planner.decide(NOON)
        planner.ask(urgent)
        planner.decide(NOON)
        found = told(planner)
        assert found["lower"].broken is None
        assert found["lower"].reservation.machine == "a"
        assert found[urgent.workload].reservation.machine == "z"


def test_who_was_promised_another_place_meanwhile_keeps_the_better_one() -> None:
    """The machine of the first promise comes back, with room at the time of that one."""
    start = NOON + 3 * HOUR
    kept = Reservation(machine="b", driver=DriverName.NATIVE, start=start)
    away = replace(a_gpu_box("b", sharing=OPEN, drivers=BOTH_DRIVERS), online=False)
    planner = a_planner(
        a_busy_box("a"),
        away,
        recovering=True,
        waiting=(a_gpu_request("next", promise=start, reservation=kept),),
    )
    planner.decide(NOON)
    sooner = reserved(planner, "next")
    assert sooner is not None
    assert (sooner.machine, sooner.start) == ("a", NOON + HOUR + SLACK_SECONDS)
    planner.put_machine(
        replace(away, online=True, held=(a_gpu_hold("b", start - SLACK_SECONDS),))
    )
    planner.decide(NOON + 1)
    assert reserved(planner, "next") == sooner
    assert told(planner)["next"].broken is None


def test_who_starts_when_its_time_has_come_makes_nobody_behind_it_later() -> None:
    """What starts holds its machine until the news of its end, as was reckoned before."""
    planner = a_planner(
        a_busy_box(), waiting=(a_gpu_request("first"), a_gpu_request("second"))
    )
    planner.decide(NOON)
    before = told(planner)
    planner.release("box", "held-box")
    (placement,) = planner.decide(before["first"].no_later_than).placements
    assert placement.workload == "first"
    state = planner.fleet.entries["box"]
    planner.put_machine(replace(state.machine, held=tuple(state.allocations.values())))
    planner.decide(before["first"].no_later_than + 1)
    after = told(planner)["second"]
    assert after.no_later_than == before["second"].no_later_than
    assert after.broken is None


def test_where_not_all_promises_can_be_kept_the_earliest_is() -> None:
    """A holder stays for ever: who was to come first comes, and the other one later."""

    def box(ends_by: float | None) -> MachineState:
        held = (
            an_allocation("h1", cpu_milli=4000, ends_by=NOON + HOUR),
            an_allocation("h2", cpu_milli=4000, ends_by=ends_by),
        )
        return a_machine("box", cores_milli=8000, held=held)

    planner = a_planner(
        box(NOON + 2 * HOUR),
        catalog=HALVES,
        waiting=(
            a_waiting("first", class_name="half"),
            a_waiting("other", class_name="half", asked_at=NOON + 1),
        ),
    )
    planner.decide(NOON)
    before = told(planner)
    assert before["first"].no_later_than == NOON + HOUR + SLACK_SECONDS
    assert before["other"].no_later_than == NOON + 2 * HOUR + SLACK_SECONDS
    planner.put_machine(box(None))
    planner.decide(NOON + 1)
    after = told(planner)
    assert after["first"].no_later_than == before["first"].no_later_than
    assert after["first"].broken is None
    assert after["other"].no_later_than > before["other"].no_later_than
    assert after["other"].broken is not None


def test_an_urgent_request_takes_nobody_s_place_where_another_is_as_soon() -> None:
    """Two machines come free at one time: each of the two waits for its own."""
    planner = a_planner(
        a_busy_box("a"), a_busy_box("b"), waiting=(a_gpu_request("calm"),)
    )
    planner.decide(NOON)
    planner.ask(a_gpu_request("urgent", priority=5, asked_at=NOON + 1))
    planner.decide(NOON + 1)
    where = {name: wait.reservation.machine for name, wait in told(planner).items()}
    assert where == {"calm": "a", "urgent": "b"}


def one_at_a_time() -> Planner:
    """Return a fleet where alice may have one: a GPU that comes free, and free cores."""
    planner = a_planner(
        a_busy_box(),
        a_machine("plain"),
        catalog=a_catalog(quotas=(Quota(user="alice", workloads=1),)),
        waiting=(
            a_gpu_request("promised"),
            a_waiting(
                "beside",
                class_name="cpu",
                asked_at=NOON + 1,
                pin=Pin(machine="plain", driver=DriverName.NATIVE),
            ),
        ),
    )
    planner.decide(NOON)
    assert told(planner)["promised"].no_later_than is not None
    assert told(planner)["beside"].explanation.reason is Reason.USER_LIMIT
    return planner


def test_who_is_kept_back_by_a_promise_starts_as_soon_as_that_one_leaves() -> None:
    """No machine has changed for them: only the quota has room again."""
    planner = one_at_a_time()
    planner.leave("promised")
    (placement,) = planner.decide(NOON + 2).placements
    assert placement.workload == "beside"


def test_who_is_kept_back_by_a_promise_starts_as_soon_as_it_is_broken() -> None:
    """What stands in the quota's way is the promise, and it is gone."""
    planner = one_at_a_time()
    planner.put_machine(replace(a_busy_box(), online=False))
    (placement,) = planner.decide(NOON + 2).placements
    assert placement.workload == "beside"
