"""Which runtime runs: one answer for placement, reasons, specs and agents.

``select_runtime`` takes the first runtime in the catalog's order that serves both the
accelerator and the driver, with that driver's ref.  The model gate then judges the
*selected* runtime, every time: another driver cannot lead around it.

The agent never sees the catalog.  It is handed the selected entry with its own
driver's ref only, and ``verify_dispatch`` runs the same function on that entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from pydantic import Field, ValidationError

from fleet_contracts.base import Contract
from fleet_contracts.catalog import Runtime
from fleet_contracts.devices import reserves_metal
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import (
    Accelerator,
    DriverName,
    ModelVerdict,
    RefSource,
    Resources,
    RuntimeSpec,
    WorkloadKind,
)


_BY_UUID: Final = frozenset({Accelerator.CUDA, Accelerator.ROCM})
"""Accelerators whose devices are held one by one."""


class RuledOut(Contract):
    """A runtime that was not selected, and why."""

    runtime: str
    explanation: Explanation


class Selection(Contract):
    """The selected runtime, or every runtime with the code that ruled it out."""

    runtime: Runtime | None = Field(default=None, repr=False)
    ref: str | None = Field(default=None, repr=False)
    source: RefSource | None = None
    ruled_out: tuple[RuledOut, ...] = ()
    refusal: Explanation | None = None
    """Why nothing may run: no runtime serves, or the model gate said no."""


def select_runtime(
    runtimes: Iterable[Runtime],
    *,
    kind: WorkloadKind,
    accelerator: Accelerator,
    driver: DriverName,
    model: ModelVerdict | None = None,
) -> Selection:
    """Return the first of *runtimes* that serves *accelerator* through *driver*."""
    ruled_out: list[RuledOut] = []
    for runtime in runtimes:
        found = _judge(runtime, kind, accelerator, driver)
        if isinstance(found, Explanation):
            ruled_out.append(RuledOut(runtime=runtime.name, explanation=found))
            continue
        return Selection(
            runtime=runtime,
            ref=found[1],
            source=found[0],
            ruled_out=tuple(ruled_out),
            refusal=_judge_model(runtime, accelerator, model),
        )
    return Selection(
        ruled_out=tuple(ruled_out),
        refusal=Explanation(reason=_common(ruled_out), subject=driver.value),
    )


def serving_ref(
    runtime: Runtime, accelerator: Accelerator, driver: DriverName
) -> tuple[RefSource, str] | None:
    """Return *runtime*'s ref for *driver* and where it stands; None: not supported."""
    agent_driver = driver in {DriverName.DOCKER, DriverName.NATIVE}
    source, ref = RefSource.REF, runtime.ref
    if agent_driver and runtime.driver_refs:
        source, ref = RefSource.DRIVER_REFS, runtime.driver_refs.get(driver)
    elif driver is DriverName.DOCKER and runtime.container_ref:
        source, ref = RefSource.CONTAINER_REF, runtime.container_ref
    elif driver is DriverName.NATIVE and accelerator is not Accelerator.MPS:
        # Before there were maps, the ref of a cpu or cuda runtime named a container
        # image: the native driver cannot run it.
        return None
    return (source, ref) if ref else None


def runtime_spec(
    selection: Selection,
    *,
    accelerator: Accelerator,
    driver: DriverName,
    catalog_digest: str,
) -> RuntimeSpec:
    """Return what the agent is handed of a selection that was not refused.

    Raises:
        ValueError: nothing was selected, or the model gate refused it.
    """
    runtime = selection.runtime
    if (
        selection.refusal is not None
        or runtime is None
        or selection.ref is None
        or selection.source is None
    ):
        raise ValueError("a refused selection cannot be dispatched")
    return RuntimeSpec(
        name=runtime.name,
        driver=driver,
        ref=selection.ref,
        accelerator=accelerator,
        requires=runtime.requires,
        catalog_digest=catalog_digest,
        kind=runtime.kind,
        source=selection.source,
        model_formats=runtime.model_formats,
    )


def verify_dispatch(
    spec: RuntimeSpec,
    *,
    kind: WorkloadKind,
    resources: Resources,
    drivers: Collection[DriverName],
    os: str | None,
    model: ModelVerdict | None = None,
    fenced: bool = False,
) -> Explanation | None:
    """Return why an agent with *drivers* on *os* must refuse *spec*; None: it may run.

    The agent calls this before it accepts a launch, whatever the controller decided.
    *os* is its own: ``linux`` or ``darwin``, None while it does not know.  *fenced*:
    its CPU notebooks need not hold the Mac's GPU, see ``reserves_metal``.
    """
    if spec.driver not in drivers:
        return Explanation(reason=Reason.DRIVER_UNAVAILABLE, subject=spec.driver.value)
    if kind is WorkloadKind.ENDPOINT:
        return Explanation(reason=Reason.ENDPOINTS_NOT_BUILT)
    try:
        entry = _entry(spec)
    except ValidationError:
        return _mismatch("the runtime's entry is malformed")
    selection = select_runtime(
        (entry,),
        kind=kind,
        accelerator=spec.accelerator,
        driver=spec.driver,
        model=model,
    )
    if selection.refusal is not None:
        return _mismatch(f"runtime {entry.name} does not serve {spec.driver.value}")
    return _judge_devices(spec, resources, os=os, fenced=fenced)


def _judge_devices(
    spec: RuntimeSpec, resources: Resources, *, os: str | None, fenced: bool
) -> Explanation | None:
    if bool(resources.devices) != (spec.accelerator in _BY_UUID):
        return _mismatch(f"the devices held do not suit {spec.accelerator.value}")
    metal = reserves_metal(
        os=os, driver=spec.driver, accelerator=spec.accelerator, fenced=fenced
    )
    if metal and not resources.metal:
        return _mismatch("the Mac's GPU is not held")
    return None


def _entry(spec: RuntimeSpec) -> Runtime:
    """Return the catalog's entry as far as *spec* tells it."""
    return Runtime(
        name=spec.name,
        kind=spec.kind,
        accelerators=(spec.accelerator,),
        requires=spec.requires,
        model_formats=spec.model_formats,
        ref=spec.ref if spec.source is RefSource.REF else None,
        driver_refs=(
            {spec.driver: spec.ref} if spec.source is RefSource.DRIVER_REFS else {}
        ),
        container_ref=spec.ref if spec.source is RefSource.CONTAINER_REF else None,
    )


def _judge(
    runtime: Runtime, kind: WorkloadKind, accelerator: Accelerator, driver: DriverName
) -> tuple[RefSource, str] | Explanation:
    if runtime.kind is not kind:
        return Explanation(reason=Reason.RUNTIME_NONE_MATCHES, subject=kind.value)
    if accelerator not in runtime.accelerators:
        return Explanation(
            reason=Reason.ACCELERATOR_MISMATCH, subject=accelerator.value
        )
    if driver is DriverName.DOCKER and accelerator is Accelerator.MPS:
        return Explanation(
            reason=Reason.ACCELERATOR_MISMATCH,
            subject=accelerator.value,
            detail="containers on a Mac run in a virtual machine without Metal",
        )
    found = serving_ref(runtime, accelerator, driver)
    if found is None:
        return Explanation(reason=Reason.RUNTIME_MISSING, subject=driver.value)
    return found


def _judge_model(
    runtime: Runtime, accelerator: Accelerator, model: ModelVerdict | None
) -> Explanation | None:
    """Return why *runtime* must not load the model; None: it may, or there is none.

    A verdict of content validation counts, never a declared format.
    """
    if runtime.kind is not WorkloadKind.ENDPOINT:
        return None
    if accelerator is Accelerator.CPU:
        return Explanation(reason=Reason.ENDPOINTS_NOT_BUILT, subject=accelerator.value)
    if model is None or not model.valid:
        return Explanation(
            reason=Reason.MODEL_INVALID,
            detail="its content has not been validated",
        )
    if model.format not in runtime.model_formats:
        return Explanation(
            reason=Reason.MODEL_INVALID,
            subject=model.format,
            detail=f"runtime {runtime.name} does not load this format",
        )
    return None


def _common(ruled_out: list[RuledOut]) -> Reason:
    """Return the nearest miss: a runtime that only lacks this driver comes closest."""
    reasons = {item.explanation.reason for item in ruled_out}
    for reason in (Reason.RUNTIME_MISSING, Reason.ACCELERATOR_MISMATCH):
        if reason in reasons:
            return reason
    return Reason.RUNTIME_NONE_MATCHES


def _mismatch(detail: str) -> Explanation:
    return Explanation(reason=Reason.SELECTION_MISMATCH, detail=detail)
