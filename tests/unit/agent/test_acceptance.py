"""What a machine refuses, judged from its own facts and ledger alone."""

from __future__ import annotations

from typing import Any

import pytest
from agent_support import a_runtime, a_spec

from fleet_agent.acceptance import Machine, judge_epoch, judge_launch
from fleet_agent.ledger_entry import Entry, Key
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import (
    Accelerator,
    DriverName,
    RefSource,
    Resources,
    RuntimeSpec,
    WorkloadSpec,
)


GIB = 1 << 30


def a_machine(**changes: Any) -> Machine:
    """Return olivia's machine: four cores, eight GiB, native and simulation."""
    values: dict[str, Any] = {
        "owner": "olivia",
        "drivers": {DriverName.NATIVE, DriverName.SIMULATION},
        "os": "linux",
        "cpu_milli": 4000,
        "memory_bytes": 8 * GIB,
    }
    return Machine(**values | changes)


def a_native_runtime(**changes: Any) -> RuntimeSpec:
    """Return a runtime selected for the native driver."""
    return a_runtime(driver=DriverName.NATIVE, source=RefSource.DRIVER_REFS, **changes)


def an_entry(
    resources: Resources, event: AgentEvent = AgentEvent.SERVING, key: Key | None = None
) -> Entry:
    """Return a ledger entry that holds *resources*."""
    return Entry(
        key=key or Key("other", 1),
        event=event,
        seq=1,
        spec=a_spec(resources=resources),
    )


def _reason(
    spec: WorkloadSpec, machine: Machine | None = None, *entries: Entry
) -> Reason | None:
    refusal = judge_launch(spec, machine=machine or a_machine(), entries=entries)
    return refusal and refusal.reason


def test_what_fits_is_accepted() -> None:
    """A workload of the owner that fits beside the others may run."""
    spec = a_spec(
        runtime=a_native_runtime(),
        resources=Resources(cpu_milli=1000, memory_bytes=GIB),
    )
    held = an_entry(Resources(cpu_milli=3000, memory_bytes=7 * GIB))
    assert _reason(spec, None, held) is None


@pytest.mark.parametrize("owner", ["somebody", "", "Olivia"])
def test_native_runs_are_for_the_owner_alone(owner: str) -> None:
    """An agent that knows no owner runs nothing natively, for nobody."""
    spec = a_spec(runtime=a_native_runtime())
    refusal = judge_launch(spec, machine=a_machine(owner=owner), entries=())
    assert refusal is not None
    assert refusal.reason is Reason.ISOLATION_TOO_WEAK


def test_an_empty_owner_does_not_match_an_empty_name() -> None:
    """Two unknown people are not the same person."""
    spec = a_spec(owner="", runtime=a_native_runtime())
    assert _reason(spec, a_machine(owner="")) is Reason.ISOLATION_TOO_WEAK


def test_simulation_serves_anybody() -> None:
    """Nothing of the user's runs there."""
    assert _reason(a_spec(owner="guest")) is None


def test_a_driver_that_is_not_there_is_refused() -> None:
    """Whatever the controller believes."""
    machine = a_machine(drivers={DriverName.SIMULATION})
    spec = a_spec(runtime=a_native_runtime())
    assert _reason(spec, machine) is Reason.DRIVER_UNAVAILABLE


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (Resources(cpu_milli=1001), Reason.CPU_BUSY),
        (Resources(memory_bytes=GIB + 1), Reason.MEMORY_BUSY),
        (Resources(cpu_milli=1000, memory_bytes=GIB), None),
    ],
)
def test_amounts_add_up(wanted: Resources, reason: Reason | None) -> None:
    """What others hold is not there, and the numbers are told."""
    held = an_entry(Resources(cpu_milli=3000, memory_bytes=7 * GIB))
    assert _reason(a_spec(resources=wanted), None, held) is reason


def test_the_free_amount_is_told() -> None:
    """A refusal carries the numbers that a sentence needs."""
    held = an_entry(Resources(cpu_milli=3500))
    refusal = judge_launch(
        a_spec(resources=Resources(cpu_milli=1000)),
        machine=a_machine(),
        entries=[held],
    )
    assert refusal == Explanation(
        reason=Reason.CPU_BUSY,
        requested=1000,
        capacity=4000,
        free=500,
        unit="millicores",
    )


def test_what_is_over_holds_nothing() -> None:
    """An ended allocation that is not forgotten yet is in nobody's way."""
    held = an_entry(Resources(cpu_milli=4000), AgentEvent.ENDED)
    assert _reason(a_spec(resources=Resources(cpu_milli=4000)), None, held) is None


@pytest.mark.parametrize("unknown", ["cpu_milli", "memory_bytes"])
def test_an_unknown_amount_is_no_free_amount(unknown: str) -> None:
    """A check that cannot be completed fails closed."""
    machine = a_machine(**{unknown: None})
    assert _reason(a_spec(), machine) is Reason.CAPABILITIES_UNKNOWN


def test_a_device_is_held_by_one_at_a_time() -> None:
    """Whole GPUs, by their UUID, from acceptance to the end."""
    cuda = a_native_runtime(accelerator=Accelerator.CUDA)
    held = an_entry(Resources(devices=("GPU-a", "GPU-b")), AgentEvent.STOPPING)
    same = a_spec(runtime=cuda, resources=Resources(devices=("GPU-b",)))
    assert _reason(same, None, held) is Reason.GPU_BUSY
    other = a_spec(runtime=cuda, resources=Resources(devices=("GPU-c",)))
    assert _reason(other, None, held) is None


@pytest.mark.parametrize("os", ["darwin", None])
def test_native_work_on_a_mac_holds_its_gpu(os: str | None) -> None:
    """Also for a CPU class, and also while it is unknown whether it is a Mac."""
    machine = a_machine(os=os)
    without = a_spec(runtime=a_native_runtime(), resources=Resources(cpu_milli=1))
    assert _reason(without, machine) is Reason.SELECTION_MISMATCH
    with_metal = a_spec(
        runtime=a_native_runtime(), resources=Resources(cpu_milli=1, metal=True)
    )
    assert _reason(with_metal, machine) is None
    held = an_entry(Resources(cpu_milli=1, metal=True), AgentEvent.ACCEPTED)
    assert _reason(with_metal, machine, held) is Reason.METAL_BUSY


def test_a_ref_for_another_driver_is_a_mismatch() -> None:
    """A legacy ref names a container image: the native driver must not take it."""
    legacy = a_runtime(driver=DriverName.NATIVE, source=RefSource.REF)
    assert _reason(a_spec(runtime=legacy)) is Reason.SELECTION_MISMATCH


@pytest.mark.parametrize(
    ("newest", "reason"),
    [(None, None), (4, None), (5, Reason.EPOCH_STALE), (6, Reason.EPOCH_STALE)],
)
def test_an_epoch_is_launched_once(newest: int | None, reason: Reason | None) -> None:
    """Only a newer epoch than any before may begin."""
    refusal = judge_epoch(Key("a", 5), newest=newest, entries=())
    assert (refusal and refusal.reason) is reason


def test_an_older_launch_must_end_first() -> None:
    """Two launches of one allocation never hold at once."""
    live = an_entry(Resources(), key=Key("a", 4))
    over = an_entry(Resources(), AgentEvent.ENDED, key=Key("a", 4))
    refusal = judge_epoch(Key("a", 5), newest=4, entries=[live])
    assert refusal is not None
    assert refusal.reason is Reason.AGENT_REJECTED
    assert judge_epoch(Key("a", 5), newest=4, entries=[over]) is None


A_MAC = {"os": "darwin", "owner": "olivia"}
CPU = a_spec(
    runtime=a_native_runtime(), resources=Resources(cpu_milli=1000, memory_bytes=GIB)
)


@pytest.mark.parametrize(
    ("fenced", "reason"), [(True, None), (False, Reason.SELECTION_MISMATCH)]
)
def test_a_cpu_notebook_that_holds_no_gpu_is_accepted_behind_a_fence_alone(
    *, fenced: bool, reason: Reason | None
) -> None:
    """The Mac itself decides, whatever the controller believes of its fence."""
    assert _reason(CPU, a_machine(**A_MAC, metal_fenced=fenced)) is reason


def test_a_notebook_behind_the_fence_is_in_nobodys_way() -> None:
    """Beside it runs what holds the GPU, and it runs beside that."""
    machine = a_machine(**A_MAC, metal_fenced=True)
    gpu = CPU.model_copy(
        update={
            "runtime": a_native_runtime(accelerator=Accelerator.MPS),
            "resources": Resources(cpu_milli=1000, memory_bytes=GIB, metal=True),
        }
    )

    assert _reason(gpu, machine, a_native_entry()) is None
    assert _reason(CPU, machine, an_entry(gpu.resources)) is None
    assert _reason(CPU, machine, a_native_entry()) is None


def test_once_the_fence_is_in_doubt_what_runs_behind_it_holds_the_gpu() -> None:
    """It runs on, and the agent lets nobody compute beside it."""
    gpu = CPU.model_copy(
        update={
            "runtime": a_native_runtime(accelerator=Accelerator.MPS),
            "resources": Resources(cpu_milli=1000, memory_bytes=GIB, metal=True),
        }
    )

    assert _reason(gpu, a_machine(**A_MAC), a_native_entry()) is Reason.METAL_BUSY


def a_native_entry() -> Entry:
    """Return a CPU notebook that was started behind the fence."""
    return Entry(key=Key("fenced", 1), event=AgentEvent.SERVING, seq=1, spec=CPU)
