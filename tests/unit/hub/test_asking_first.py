"""What is answered to a question about a start: the same as the line itself would do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scheduling_builders import (
    ALICE,
    BOB,
    BOTH_DRIVERS,
    NOON,
    OPEN,
    a_catalog,
    a_class,
    a_gpu_box,
    a_gpu_class,
    a_machine,
    a_profile,
    a_runtime,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.catalog import Audience, Quota
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Accelerator, DriverName, WorkloadKind
from fleet_hub.scheduling.alternatives import alternatives
from fleet_hub.scheduling.choice import read_choice
from fleet_hub.scheduling.decisions import AlternativeKind
from fleet_hub.scheduling.explain import explain, what_if
from fleet_hub.scheduling.inspection import inspect_request
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState, Pin, Snapshot


HOUR = 3600.0
NAMES = ("gpu", "all", "endless")
CATALOG = a_catalog(
    classes=(
        a_gpu_class("gpu", limit_seconds=HOUR),
        a_gpu_class("all", devices=2, limit_seconds=HOUR),
        a_gpu_class("endless"),
    ),
    profiles=(
        a_profile(classes=NAMES),
        a_profile("urgent", classes=NAMES, priority=5),
    ),
)


def decided(snapshot: Snapshot) -> Planner:
    """Return an engine that has decided all that it can about *snapshot*."""
    planner = planner_of(snapshot)
    planner.decide(snapshot.now)
    return planner


def a_promised_box() -> Planner:
    """Return a box with one GPU held and one free, both promised to one large job."""
    held = an_allocation(devices=("GPU-box-0",), ends_by=NOON + HOUR)
    box = a_gpu_box("box", gpus=2, sharing=OPEN, drivers=BOTH_DRIVERS, held=(held,))
    large = a_waiting("large", class_name="all")
    return decided(a_snapshot(catalog=CATALOG, machines=(box,), waiting=(large,)))


def test_room_that_is_kept_for_a_promise_is_told_as_being_behind_it() -> None:
    """The free GPU is not free for who would hold it beyond the promised time."""
    planner = a_promised_box()
    asked = a_waiting("?", class_name="endless", principal=BOB)
    (found,) = inspect_request(planner, asked).machines
    assert found.explanation is not None
    assert found.explanation.reason is Reason.BEHIND
    assert [item.workload for item in found.explanation.holders] == ["large"]


def test_an_urgent_request_is_told_that_it_would_start_before_a_promise() -> None:
    """And it does: the answer to the question is what the line then decides."""
    planner = a_promised_box()
    verdict = what_if(planner, BOB, "urgent", "endless")
    assert (verdict.startable, verdict.machine) == (True, "box")
    assert planner.waiters["large"].found is not None
    planner.ask(a_waiting("now", profile="urgent", class_name="endless", principal=BOB))
    (placement,) = planner.decide(NOON).placements
    assert (placement.workload, placement.machine) == ("now", "box")


def test_a_question_about_what_nobody_offers_is_refused_with_its_reason() -> None:
    """It is answered without any machine."""
    verdict = what_if(decided(a_snapshot()), ALICE, "no-such-profile")
    assert (verdict.startable, verdict.choosable) == (False, False)
    assert verdict.explanation is not None
    assert verdict.explanation.reason is Reason.PROFILE_UNKNOWN


def test_a_profile_for_others_is_refused_before_any_machine_is_asked() -> None:
    """Who may not use it learns that, and nothing of the machines."""
    theirs = a_profile(audience=Audience(everyone=False, users=("bob",)))
    planner = decided(a_snapshot(catalog=a_catalog(profiles=(theirs,))))
    found = inspect_request(planner, a_waiting("?"))
    assert found.verdict.explanation is not None
    assert found.verdict.explanation.reason is Reason.NOT_IN_AUDIENCE
    assert (found.machines, found.changes) == ((), ())


def test_a_class_that_no_runtime_serves_is_refused_before_any_machine_is_asked() -> (
    None
):
    """The catalog alone can say so."""
    runtime = a_runtime(accelerators=(Accelerator.CPU,))
    planner = decided(a_snapshot(catalog=a_catalog(runtimes=(runtime,))))
    verdict = what_if(planner, ALICE, "lab", "gpu")
    assert not verdict.choosable
    assert verdict.explanation is not None
    assert verdict.explanation.reason is Reason.RUNTIME_NONE_MATCHES


def test_a_class_beyond_the_quota_is_not_named_as_a_change_that_helps() -> None:
    """It would be refused as soon as it was asked for."""
    catalog = a_catalog(
        classes=(a_gpu_class(), a_class("wide", cpu_milli=4000)),
        quotas=(Quota(user="alice", cpu_milli=2000),),
    )
    found = inspect_request(
        decided(a_snapshot(catalog=catalog)), a_waiting("?", class_name="gpu")
    )
    assert not found.verdict.startable
    assert found.changes == ()


def test_a_machine_that_is_drained_would_serve_a_smaller_request_and_not_now() -> None:
    """The change counts it among the machines, and not among the free ones."""
    machines = (a_gpu_box("drained", draining_by="cy"), a_gpu_box("idle"))
    snapshot = a_snapshot(catalog=CATALOG, machines=machines)
    asked = a_waiting("?", class_name="all")
    (change, *_) = inspect_request(decided(snapshot), asked).changes
    assert (change.instead, change.machines, change.free_now) == ("1", 2, 1)


def test_of_several_in_the_line_each_is_told_its_own_fate() -> None:
    """One starts, one waits and two can never run: none gets another's answer."""
    snapshot = a_snapshot(
        catalog=a_catalog(classes=(a_class("cpu"), a_class("all", cpu_milli=8000))),
        waiting=(
            a_waiting("a-never", profile="unknown"),
            a_waiting("b-never", class_name="unknown"),
            a_waiting("starts", class_name="cpu", asked_at=NOON - 90),
            a_waiting("waits", class_name="all", asked_at=NOON - 10),
        ),
    )
    assert explain(snapshot, "starts").machine == "box"
    reasons = {}
    for workload in ("a-never", "b-never", "waits"):
        verdict = explain(snapshot, workload)
        assert not verdict.startable
        assert verdict.explanation is not None
        reasons[workload] = (verdict.choosable, verdict.explanation.reason)
    assert reasons == {
        "a-never": (False, Reason.PROFILE_UNKNOWN),
        "b-never": (False, Reason.CLASS_UNKNOWN),
        "waits": (True, Reason.CPU_BUSY),
    }


def test_who_does_not_wait_has_no_fate_to_be_told() -> None:
    """The caller learns that the workload is not in the line."""
    with pytest.raises(KeyError, match="nobody"):
        explain(a_snapshot(waiting=(a_waiting(),)), "nobody")


def offered(
    class_name: str, pin: Pin, *machines: MachineState
) -> list[tuple[AlternativeKind, str, str | None]]:
    """Return alice's ways out whose files are where *pin* says."""
    planner = decided(a_snapshot(machines=machines))
    return [
        (way.kind, way.class_name, way.machine)
        for way in alternatives(planner, ALICE, "lab", class_name, pin)
    ]


def test_the_class_that_is_asked_for_is_no_way_out_of_itself() -> None:
    """Files whose machine lost its GPU: only a fresh folder elsewhere is left."""
    pin = Pin(machine="home", driver=DriverName.NATIVE, class_name="gpu")
    ways = offered("gpu", pin, a_machine("home"), a_gpu_box("other"))
    assert ways == [(AlternativeKind.FRESH_FOLDER, "gpu", "other")]


def test_an_old_class_that_does_not_run_at_home_any_more_is_not_offered() -> None:
    """The Metal GPU of that day is gone too."""
    pin = Pin(machine="home", driver=DriverName.NATIVE, class_name="metal")
    home = replace(a_machine("home"), owner="alice")
    ways = offered("gpu", pin, home, a_gpu_box("other"))
    assert ways == [(AlternativeKind.FRESH_FOLDER, "gpu", "other")]


def test_an_empty_class_in_a_form_means_the_first_one() -> None:
    """A browser sends an empty text where nothing was chosen."""
    choice = read_choice(a_catalog(), ALICE, {"profile": "lab", "class": ""})
    assert not isinstance(choice, Explanation)
    assert (choice.profile, choice.class_name) == ("lab", None)


def test_a_profile_of_the_kind_that_is_not_built_says_so() -> None:
    """Endpoints are in the catalog's language, and nothing starts one."""
    endpoint = a_profile("serve", kind=WorkloadKind.ENDPOINT)
    catalog = a_catalog(profiles=(endpoint,))
    found = read_choice(catalog, ALICE, {"profile": "serve"})
    assert isinstance(found, Explanation)
    assert (found.reason, found.subject) == (Reason.ENDPOINTS_NOT_BUILT, "serve")
