"""Busy, away, drained, missing and impossible: five states that never look alike."""

from __future__ import annotations

import pytest
from fleet_builders import a_principal
from fleet_controller import Fleet, allocation_of
from fleet_pictures import a_picture, some_gpus
from scenario_fleets import the_catalog
from scheduling_builders import a_class, a_gpu_class
from told_everywhere import (
    answer_to,
    in_a_terminal,
    the_line,
    the_line_in_a_terminal,
    told,
    waiting_by_reason,
    what_if,
)

from fleet_contracts.allocations import State
from fleet_contracts.reasons import Reason, ReasonKind
from fleet_hub.controller import governing
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.records import Workload


ROOT = Actor(name="root", role=ActorRole.ADMIN)


def a_fleet(**gpus: int) -> Fleet:
    """Return machines with so many GPUs, and classes of one and of five, and of none."""
    fleet = Fleet(
        catalog=the_catalog(
            a_gpu_class("gpu", limit_seconds=3600),
            a_gpu_class("five", devices=5),
            a_class("cpu"),
        )
    )
    for name, count in gpus.items():
        fleet.machine(name, capabilities=a_picture(gpus=some_gpus(name, count)))
    fleet.clock.advance(3600)
    return fleet


def ask(fleet: Fleet, server: int, class_name: str = "gpu") -> Workload:
    """Let alice ask for another server."""
    return fleet.ask(server, profile="lab", class_name=class_name)


def a_full_fleet() -> Fleet:
    """Return one GPU, which alice's first server holds."""
    fleet = a_fleet(box=1)
    holder = ask(fleet, 1)
    fleet.agents["box"].serve(allocation_of(holder))
    return fleet


def test_who_waits_for_a_holder_and_who_can_never_run_are_told_apart_everywhere() -> (
    None
):
    """One is in the line, in its listings and metrics; the other is in none of them."""
    fleet = a_full_fleet()
    busy, never = ask(fleet, 2), ask(fleet, 3, "five")
    assert (busy.state, never.state) == (State.QUEUED, State.REFUSED)
    waits, cannot = told(fleet, busy), told(fleet, never)
    assert (waits.kind, cannot.kind) == (ReasonKind.BUSY, ReasonKind.NEVER)
    assert (waits.reason, cannot.reason) == (
        Reason.GPU_BUSY,
        Reason.EXCEEDS_ANY_MACHINE,
    )
    assert [one.workload for one in the_line(fleet).waiting] == [busy.id]
    assert never.id not in the_line_in_a_terminal(fleet)
    assert waiting_by_reason(fleet) == {"gpu_busy": 1}
    texts = [in_a_terminal(answer_to(fleet, one)) for one in (busy, never)]
    assert "● You are next. On box, all suitable devices are taken" in texts[0]
    assert "✕ This cannot run as asked: no machine is that large" in texts[1]
    assert what_if(fleet, "alice", "lab", "gpu").may_be_asked
    assert not what_if(fleet, "alice", "lab", "five").may_be_asked


def test_a_full_fleet_is_busy_and_says_who_has_it() -> None:
    """It is not "no machines", and not "no such accelerator"."""
    fleet = a_full_fleet()
    why = told(fleet, ask(fleet, 2))
    assert (why.reason, why.kind) == (Reason.GPU_BUSY, ReasonKind.BUSY)
    assert [one.owner for one in why.holders] == ["alice"]


def test_an_idle_fleet_without_the_accelerator_is_a_mismatch_and_not_full() -> None:
    """Everything is free, and nothing of it helps."""
    fleet = a_fleet(a=0, b=0)
    record = ask(fleet, 1)
    why = told(fleet, record)
    assert (why.reason, why.subject, why.kind) == (
        Reason.ACCELERATOR_MISMATCH,
        "cuda",
        ReasonKind.NEVER,
    )
    assert "taken" not in in_a_terminal(answer_to(fleet, record))


def test_a_drained_fleet_is_neither_full_nor_unfit() -> None:
    """It says who drains it; what is free there is not called taken."""
    fleet = a_fleet(box=1)
    governing.drain(fleet.core, ROOT, "box")
    record = ask(fleet, 1)
    why = told(fleet, record)
    assert (why.reason, why.kind) == (Reason.DRAINING, ReasonKind.NOT_NOW)
    assert why.subject is not None
    governing.resume(fleet.core, ROOT, "box")
    fleet.cycle()
    assert fleet.get(record).state is State.PLACED


def test_an_empty_fleet_says_that_there_are_no_machines_yet() -> None:
    """Whatever is asked for: it waits for the first one."""
    fleet = a_fleet()
    record = ask(fleet, 1, "five")
    why = told(fleet, record)
    assert (why.reason, why.kind) == (Reason.NO_MACHINES, ReasonKind.NOT_NOW)


def test_a_fleet_that_is_away_keeps_the_hope_and_is_not_called_empty() -> None:
    """The machine is known, and comes back."""
    fleet = a_fleet(box=1)
    fleet.agents["box"].disconnect()
    record = ask(fleet, 1)
    why = told(fleet, record)
    assert (why.reason, why.machine) == (Reason.OFFLINE, "box")
    fleet.agents["box"].connect()
    fleet.cycle()
    assert fleet.get(record).state is State.PLACED


def test_of_a_full_a_drained_and_an_unfit_machine_the_nearest_is_the_headline() -> None:
    """All of them are counted, and nine that never do hide nothing."""
    fleet = a_fleet(full=1, drained=1, **{f"plain-{number}": 0 for number in range(9)})
    governing.drain(fleet.core, ROOT, "drained")
    fleet.cycle()
    ask(fleet, 1)
    record = ask(fleet, 2)
    assert told(fleet, record).reason is Reason.GPU_BUSY
    assert answer_to(fleet, record).counts == {
        Reason.ACCELERATOR_MISMATCH: 9,
        Reason.DRAINING: 1,
        Reason.GPU_BUSY: 1,
    }


@pytest.mark.parametrize("urgent", [False, True])
def test_whoever_may_not_push_others_out_is_told_who_really_holds_it(
    urgent: bool,
) -> None:
    """A priority ends nobody's work: the holder and their end are the answer."""
    fleet = a_full_fleet()
    urgent_profile = fleet.catalogs.catalog.profiles[0].model_copy(
        update={"name": "urgent", "priority": 9}
    )
    fleet.catalogs.catalog = fleet.catalogs.catalog.model_copy(
        update={"profiles": (*fleet.catalogs.catalog.profiles, urgent_profile)}
    )
    profile = "urgent" if urgent else "lab"
    record = fleet.ask(
        2, principal=a_principal("alice"), profile=profile, class_name="gpu"
    )
    why = told(fleet, record)
    assert why.reason is Reason.GPU_BUSY
    [holder] = why.holders
    assert (holder.owner, holder.amount) == ("alice", 1)
    assert holder.ends_by is not None
    assert "priority" not in in_a_terminal(answer_to(fleet, record))
