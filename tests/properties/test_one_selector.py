"""One selector: placement, reasons, runtime specs and agents all go by its answer.

Each user of the selection is compared with the selector itself, on catalogs with maps,
without, and with the older key; and each is seen to follow when the rule is another
one.  One that had a rule of its own would agree with neither.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from agent_support import a_spec
from hypothesis import HealthCheck, assume, given, settings
from scheduling_builders import (
    ALICE,
    GIB,
    OPEN,
    a_catalog,
    a_class,
    a_gpu,
    a_mac,
    a_machine,
    a_profile,
    a_snapshot,
    a_waiting,
)

from fleet_agent.acceptance import Machine, judge_launch
from fleet_contracts import selection as selector
from fleet_contracts.catalog import Catalog, Runtime
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.selection import Selection, select_runtime
from fleet_contracts.support import is_scheduled
from fleet_contracts.workloads import (
    Accelerator,
    DriverName,
    RefSource,
    Resources,
    RuntimeSpec,
    WorkloadKind,
)
from fleet_hub.scheduling.choice import Request, resolve
from fleet_hub.scheduling.explain import explain
from fleet_hub.scheduling.plan import plan
from fleet_hub.scheduling.snapshot import MachineState, Pin


CPU, CUDA, MPS = Accelerator.CPU, Accelerator.CUDA, Accelerator.MPS
NATIVE, DOCKER = DriverName.NATIVE, DriverName.DOCKER
REFS = st.none() | st.sampled_from(["ref-a", "ref-b", "ref-c"])
DRIVERS = st.sampled_from([NATIVE, DOCKER, DriverName.SIMULATION])


@st.composite
def runtimes(draw: st.DrawFn, name: str) -> Runtime:
    """Return any runtime that a catalog may hold."""
    accelerators = draw(st.sets(st.sampled_from([CPU, CUDA, MPS]), min_size=1))
    return Runtime(
        name=name,
        accelerators=tuple(sorted(accelerators)),
        ref=draw(REFS),
        container_ref=draw(REFS),
        driver_refs=draw(
            st.dictionaries(
                st.sampled_from([NATIVE, DOCKER]), st.sampled_from(["map-a", "map-b"])
            )
        ),
    )


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    """Return a catalog of one profile with one class and up to three runtimes."""
    accelerator = draw(st.sampled_from([CPU, CUDA, MPS]))
    chosen = a_class("c", accelerator=accelerator, devices=int(accelerator is not CPU))
    count = draw(st.integers(1, 3))
    found = tuple(draw(runtimes(f"r{number}")) for number in range(count))
    profile = a_profile(classes=("c",), runtimes=tuple(item.name for item in found))
    return a_catalog(classes=(chosen,), runtimes=found, profiles=(profile,))


def selected(catalog: Catalog, driver: DriverName) -> Selection:
    """Return the selector's own answer."""
    return select_runtime(
        catalog.runtimes,
        kind=WorkloadKind.NOTEBOOK,
        accelerator=catalog.classes[0].accelerator,
        driver=driver,
    )


def a_machine_with(catalog: Catalog, driver: DriverName) -> MachineState:
    """Return a machine that has *driver* alone, and all that the class asks for."""
    fields: dict[str, Any] = {"drivers": {driver: True}, "sharing": OPEN}
    if catalog.classes[0].accelerator is MPS:
        return a_mac("box", **fields)
    return a_machine("box", devices=(a_gpu("G"),), **fields)


def a_request(catalog: Catalog) -> Request | None:
    """Return the resolved request; None: it may not be asked for."""
    request = resolve(catalog, ALICE, "lab", "c")
    return request if isinstance(request, Request) else None


@given(catalogs(), DRIVERS)
def test_placement_goes_by_the_selector(catalog: Catalog, driver: DriverName) -> None:
    """What is placed runs what is selected, and what is not selected is not placed."""
    accelerator = catalog.classes[0].accelerator
    assume(is_scheduled(accelerator, driver))
    chosen = selected(catalog, driver)
    machine = a_machine_with(catalog, driver)
    waiting = a_waiting("w", class_name="c")
    decided = plan(a_snapshot(catalog=catalog, machines=(machine,), waiting=(waiting,)))
    if chosen.refusal is not None:
        assert decided.placements == ()
        return
    (placement,) = decided.placements
    assert chosen.runtime is not None
    assert placement.runtime.name == chosen.runtime.name
    assert placement.runtime.ref == chosen.ref
    assert placement.runtime.source == chosen.source
    assert placement.runtime.driver is driver


# Most catalogs can be served, and say nothing about reasons.
@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(catalogs(), DRIVERS)
def test_reasons_go_by_the_selector(catalog: Catalog, driver: DriverName) -> None:
    """A machine that lacks nothing else gives the selector's own reason."""
    request = a_request(catalog)
    assume(request is not None)
    chosen = selected(catalog, driver)
    machine = a_machine_with(catalog, driver)
    assume(chosen.refusal is not None)
    assert chosen.refusal is not None
    # Files bind the request to this driver alone, so that no other answers for it.
    pin = Pin(machine="box", driver=driver)
    waiting = a_waiting("w", class_name="c", pin=pin)
    verdict = explain(
        a_snapshot(catalog=catalog, machines=(machine,), waiting=(waiting,)), "w"
    )
    told, refusal = verdict.explanation, chosen.refusal
    assert told is not None
    assert (told.reason, told.subject) == (refusal.reason, refusal.subject)


@given(catalogs(), DRIVERS)
def test_runtime_specs_go_by_the_selector(catalog: Catalog, driver: DriverName) -> None:
    """The agent is handed the selected entry with this driver's ref, or nothing."""
    request = a_request(catalog)
    assume(request is not None)
    assert request is not None
    chosen = selected(catalog, driver)
    assert request.selections[driver] == chosen
    if chosen.refusal is not None:
        with pytest.raises(ValueError, match="cannot be dispatched"):
            request.spec(driver)
        return
    spec = request.spec(driver)
    assert chosen.runtime is not None
    assert (spec.name, spec.ref, spec.source) == (
        chosen.runtime.name,
        chosen.ref,
        chosen.source,
    )
    assert spec.catalog_digest == catalog.digest


def refused_by_the_agent(spec: RuntimeSpec) -> Explanation | None:
    """Return why a machine that has every driver refuses *spec*; None: it takes it."""
    on_gpu = spec.accelerator is CUDA
    resources = Resources(
        cpu_milli=1000,
        memory_bytes=GIB,
        devices=("GPU-0",) if on_gpu else (),
        metal=spec.accelerator is MPS,
    )
    machine = Machine(
        owner="olivia",
        drivers=set(DriverName),
        os="darwin" if spec.accelerator is MPS else "linux",
        cpu_milli=4000,
        memory_bytes=8 * GIB,
    )
    return judge_launch(
        a_spec(runtime=spec, resources=resources), machine=machine, entries=()
    )


@given(
    st.builds(
        RuntimeSpec,
        name=st.just("r"),
        driver=DRIVERS,
        ref=st.sampled_from(["ref-a", "map-a"]),
        accelerator=st.sampled_from([CPU, CUDA, MPS]),
        catalog_digest=st.just("d"),
        source=st.sampled_from(RefSource),
    )
)
def test_agents_go_by_the_selector(spec: RuntimeSpec) -> None:
    """Whatever it is sent, an agent takes what selection would have given it."""
    entry = Runtime(
        name=spec.name,
        accelerators=(spec.accelerator,),
        ref=spec.ref if spec.source is RefSource.REF else None,
        driver_refs={spec.driver: spec.ref}
        if spec.source is RefSource.DRIVER_REFS
        else {},
        container_ref=spec.ref if spec.source is RefSource.CONTAINER_REF else None,
    )
    chosen = select_runtime(
        (entry,),
        kind=WorkloadKind.NOTEBOOK,
        accelerator=spec.accelerator,
        driver=spec.driver,
    )
    refusal = refused_by_the_agent(spec)
    if chosen.refusal is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert refusal.reason is Reason.SELECTION_MISMATCH


# The same with another rule: whoever does not follow it has one of its own.

FIRST = Runtime(name="first", accelerators=(CPU,), driver_refs={NATIVE: "ref-first"})
SECOND = Runtime(name="second", accelerators=(CPU,), driver_refs={NATIVE: "ref-second"})
BOTH = a_catalog(
    classes=(a_class("c"),),
    runtimes=(FIRST, SECOND),
    profiles=(a_profile(classes=("c",), runtimes=("first", "second")),),
)


@pytest.fixture
def _first_is_banned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the selector pass over the runtime called ``first``."""
    rule = selector._judge

    def another(runtime: Runtime, *rest: Any) -> Any:
        if runtime.name == "first":
            return Explanation(reason=Reason.RUNTIME_MISSING, subject="banned")
        return rule(runtime, *rest)

    monkeypatch.setattr(selector, "_judge", another)


def decided_with(catalog: Catalog) -> Any:
    """Return the plan for one waiting workload and one machine."""
    waiting = a_waiting("w", class_name="c")
    return plan(
        a_snapshot(catalog=catalog, machines=(a_machine("box"),), waiting=(waiting,))
    )


@pytest.mark.usefixtures("_first_is_banned")
def test_placement_follows_another_rule() -> None:
    """It places the second runtime, though the first would serve by the old rule."""
    (placement,) = decided_with(BOTH).placements
    assert (placement.runtime.name, placement.runtime.ref) == ("second", "ref-second")


@pytest.mark.usefixtures("_first_is_banned")
def test_reasons_follow_another_rule() -> None:
    """What only the first would serve is refused, with the other rule's own word."""
    only = BOTH.model_copy(update={"runtimes": (FIRST,)})
    request = resolve(only, ALICE, "lab", "c")
    assert isinstance(request, Explanation)
    assert request.reason is Reason.RUNTIME_NONE_MATCHES
    (refusal,) = decided_with(only).refusals
    assert refusal.explanation == request


@pytest.mark.usefixtures("_first_is_banned")
def test_runtime_specs_follow_another_rule() -> None:
    """The spec is the second's."""
    request = resolve(BOTH, ALICE, "lab", "c")
    assert isinstance(request, Request)
    assert request.spec(NATIVE).ref == "ref-second"


@pytest.mark.usefixtures("_first_is_banned")
def test_agents_follow_another_rule() -> None:
    """A launch of the first is refused, one of the second is not."""
    for name, reason in (("first", Reason.SELECTION_MISMATCH), ("second", None)):
        spec = RuntimeSpec(
            name=name,
            driver=NATIVE,
            ref=f"ref-{name}",
            accelerator=CPU,
            catalog_digest="d",
        )
        refusal = refused_by_the_agent(spec)
        assert (refusal and refusal.reason) is reason
