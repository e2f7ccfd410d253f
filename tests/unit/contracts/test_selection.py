"""Runtime selection: the first that serves accelerator and driver, or why none does."""

from __future__ import annotations

from typing import Any

import pytest

from fleet_contracts.catalog import Runtime
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.selection import (
    runtime_spec,
    select_runtime,
    serving_ref,
    verify_dispatch,
)
from fleet_contracts.workloads import (
    Accelerator,
    DriverName,
    ModelVerdict,
    RefSource,
    Resources,
    RuntimeSpec,
    WorkloadKind,
)


CPU, CUDA, MPS = Accelerator.CPU, Accelerator.CUDA, Accelerator.MPS
DOCKER, NATIVE, SIMULATION, KUBERNETES = (
    DriverName.DOCKER,
    DriverName.NATIVE,
    DriverName.SIMULATION,
    DriverName.KUBERNETES,
)
EVERYWHERE = (CPU, CUDA, MPS)
SAFE = ModelVerdict(digest="d", format="safetensors", valid=True)


def a_runtime(name: str = "jupyter", **fields: Any) -> Runtime:
    """Return a runtime that serves every accelerator, unless told otherwise."""
    return Runtime(**({"name": name, "accelerators": EVERYWHERE} | fields))


MAPPED = a_runtime(ref="default", driver_refs={DOCKER: "image", NATIVE: "environment"})
DOCKER_ONLY = a_runtime(ref="default", driver_refs={DOCKER: "image"})
LEGACY = a_runtime(ref="default")
LEGACY_CONTAINER = a_runtime(ref="default", container_ref="older-image")
MAP_WITHOUT_REF = a_runtime(driver_refs={NATIVE: "environment"})
CONTAINER_WITHOUT_REF = a_runtime(container_ref="older-image")


@pytest.mark.parametrize(
    ("runtime", "accelerator", "driver", "expected"),
    [
        (MAPPED, CPU, DOCKER, "image"),
        (MAPPED, CPU, NATIVE, "environment"),
        (MAPPED, MPS, NATIVE, "environment"),
        (MAPPED, CPU, SIMULATION, "default"),
        (MAPPED, CPU, KUBERNETES, "default"),
        # A map lists what is supported: the default ref does not fill the gap.
        (DOCKER_ONLY, CPU, NATIVE, None),
        (DOCKER_ONLY, MPS, NATIVE, None),
        (LEGACY, CPU, DOCKER, "default"),
        (LEGACY, CUDA, DOCKER, "default"),
        (LEGACY, MPS, NATIVE, "default"),
        (LEGACY, CPU, NATIVE, None),
        (LEGACY, CUDA, NATIVE, None),
        (LEGACY, CUDA, KUBERNETES, "default"),
        (LEGACY_CONTAINER, CUDA, DOCKER, "older-image"),
        (LEGACY_CONTAINER, CPU, NATIVE, None),
        (LEGACY_CONTAINER, MPS, NATIVE, "default"),
        (LEGACY_CONTAINER, CPU, SIMULATION, "default"),
        (MAP_WITHOUT_REF, CPU, SIMULATION, None),
        (MAP_WITHOUT_REF, CPU, KUBERNETES, None),
        (MAP_WITHOUT_REF, CPU, DOCKER, None),
        (CONTAINER_WITHOUT_REF, CPU, DOCKER, "older-image"),
        (CONTAINER_WITHOUT_REF, MPS, NATIVE, None),
    ],
)
def test_each_driver_gets_its_own_ref_or_none(
    runtime: Runtime, accelerator: Accelerator, driver: DriverName, expected: str | None
) -> None:
    """A driver is never handed a ref that was meant for another one."""
    found = serving_ref(runtime, accelerator, driver)
    assert (None if found is None else found[1]) == expected


def test_the_first_runtime_in_the_catalogs_order_is_selected() -> None:
    """Order is the admin's word; what came before carries its code."""
    chosen = select_runtime(
        (
            a_runtime("gpu-only", accelerators=(CUDA,), ref="x"),
            a_runtime("image-only", ref="x"),
            a_runtime("endpoint", kind=WorkloadKind.ENDPOINT, ref="x"),
            a_runtime("first", driver_refs={NATIVE: "one"}),
            a_runtime("second", driver_refs={NATIVE: "two"}),
        ),
        kind=WorkloadKind.NOTEBOOK,
        accelerator=CPU,
        driver=NATIVE,
    )
    assert chosen.runtime is not None
    assert (chosen.runtime.name, chosen.ref) == ("first", "one")
    assert [(item.runtime, item.explanation.reason) for item in chosen.ruled_out] == [
        ("gpu-only", Reason.ACCELERATOR_MISMATCH),
        ("image-only", Reason.RUNTIME_MISSING),
        ("endpoint", Reason.RUNTIME_NONE_MATCHES),
    ]
    assert chosen.refusal is None


@pytest.mark.parametrize(
    ("runtimes", "expected"),
    [
        ((), Reason.RUNTIME_NONE_MATCHES),
        ((a_runtime(accelerators=(CUDA,), ref="x"),), Reason.ACCELERATOR_MISMATCH),
        (
            (a_runtime(accelerators=(CUDA,), ref="x"), a_runtime("b", ref="x")),
            Reason.RUNTIME_MISSING,
        ),
    ],
)
def test_where_none_serves_the_nearest_miss_is_told(
    runtimes: tuple[Runtime, ...], expected: Reason
) -> None:
    """A runtime that lacks only the driver comes closer than one without the GPU."""
    refused = select_runtime(
        runtimes, kind=WorkloadKind.NOTEBOOK, accelerator=CPU, driver=NATIVE
    )
    assert refused.refusal is not None
    assert refused.refusal.reason is expected
    with pytest.raises(ValueError, match="cannot be dispatched"):
        runtime_spec(refused, accelerator=CPU, driver=NATIVE, catalog_digest="d")


def test_docker_never_serves_metal() -> None:
    """Even a map that names an image cannot put Metal into a virtual machine."""
    refused = select_runtime(
        (MAPPED,), kind=WorkloadKind.NOTEBOOK, accelerator=MPS, driver=DOCKER
    )
    assert refused.refusal is not None
    assert refused.refusal.reason is Reason.ACCELERATOR_MISMATCH


@pytest.mark.parametrize(
    ("accelerator", "model", "expected"),
    [
        (CUDA, SAFE, None),
        (CUDA, None, Reason.MODEL_INVALID),
        (CUDA, SAFE.model_copy(update={"valid": False}), Reason.MODEL_INVALID),
        (CUDA, SAFE.model_copy(update={"format": "gguf"}), Reason.MODEL_INVALID),
        (CPU, SAFE, Reason.ENDPOINTS_NOT_BUILT),
    ],
)
def test_the_model_gate_judges_the_selected_runtime(
    accelerator: Accelerator, model: ModelVerdict | None, expected: Reason | None
) -> None:
    """Neither a declared format nor a later runtime leads around the gate."""
    selected = select_runtime(
        (
            a_runtime(
                "strict",
                kind=WorkloadKind.ENDPOINT,
                ref="x",
                model_formats=("safetensors",),
            ),
            a_runtime(
                "lax", kind=WorkloadKind.ENDPOINT, ref="y", model_formats=("gguf",)
            ),
        ),
        kind=WorkloadKind.ENDPOINT,
        accelerator=accelerator,
        driver=DOCKER,
        model=model,
    )
    assert selected.runtime is not None
    assert selected.runtime.name == "strict"
    reason = None if selected.refusal is None else selected.refusal.reason
    assert reason is expected


def test_a_refusal_names_what_the_runtime_has_not() -> None:
    """The accelerator that was asked for, or the format of the model."""
    gpu_only = a_runtime("gpu-only", accelerators=(CUDA,), ref="x")
    refused = select_runtime(
        (gpu_only,), kind=WorkloadKind.NOTEBOOK, accelerator=CPU, driver=NATIVE
    )
    assert refused.ruled_out[0].explanation.subject == "cpu"
    virtual = select_runtime(
        (MAPPED,), kind=WorkloadKind.NOTEBOOK, accelerator=MPS, driver=DOCKER
    )
    assert virtual.ruled_out[0].explanation.subject == "mps"
    endpoint = a_runtime(
        "strict", kind=WorkloadKind.ENDPOINT, ref="x", model_formats=("safetensors",)
    )

    def told(accelerator: Accelerator, model: ModelVerdict | None) -> Explanation:
        selected = select_runtime(
            (endpoint,),
            kind=WorkloadKind.ENDPOINT,
            accelerator=accelerator,
            driver=DOCKER,
            model=model,
        )
        assert selected.refusal is not None
        return selected.refusal

    assert told(CPU, SAFE).subject == "cpu"
    assert told(CUDA, None).detail == "its content has not been validated"
    other = told(CUDA, SAFE.model_copy(update={"format": "gguf"}))
    assert other.subject == "gguf"
    assert other.detail == "runtime strict does not load this format"


def test_what_an_agent_is_handed_says_what_kind_of_work_it_is() -> None:
    """An endpoint is not started as a notebook."""
    endpoint = a_runtime(
        "strict", kind=WorkloadKind.ENDPOINT, ref="x", model_formats=("safetensors",)
    )
    selected = select_runtime(
        (endpoint,),
        kind=WorkloadKind.ENDPOINT,
        accelerator=CUDA,
        driver=DOCKER,
        model=SAFE,
    )
    spec = runtime_spec(selected, accelerator=CUDA, driver=DOCKER, catalog_digest="d")
    assert spec.kind is WorkloadKind.ENDPOINT
    assert spec.model_formats == ("safetensors",)


def test_another_driver_meets_the_same_gate() -> None:
    """A runtime with a ref for each driver is judged by its formats under each."""
    runtimes = (
        a_runtime(
            kind=WorkloadKind.ENDPOINT,
            ref="x",
            driver_refs={DOCKER: "image", NATIVE: "environment"},
            model_formats=("safetensors",),
        ),
    )
    unsafe = ModelVerdict(digest="d", format="pickle", valid=True)
    for driver in (DOCKER, NATIVE, KUBERNETES, SIMULATION):
        judged = select_runtime(
            runtimes,
            kind=WorkloadKind.ENDPOINT,
            accelerator=CUDA,
            driver=driver,
            model=unsafe,
        )
        assert judged.refusal is not None
        assert judged.refusal.reason is Reason.MODEL_INVALID


def dispatched(
    runtime: Runtime, accelerator: Accelerator, driver: DriverName
) -> RuntimeSpec:
    """Return what the agent is handed for this selection."""
    selection = select_runtime(
        (runtime,), kind=runtime.kind, accelerator=accelerator, driver=driver
    )
    return runtime_spec(
        selection, accelerator=accelerator, driver=driver, catalog_digest="digest"
    )


def verdict(spec: RuntimeSpec, **changes: Any) -> Reason | None:
    """Return the reason of an agent with all drivers on Linux, or None."""
    arguments: dict[str, Any] = {
        "kind": WorkloadKind.NOTEBOOK,
        "resources": Resources(),
        "drivers": tuple(DriverName),
        "os": "linux",
    }
    found = verify_dispatch(spec, **(arguments | changes))
    return None if found is None else found.reason


@pytest.mark.parametrize(
    ("runtime", "accelerator", "driver", "resources", "source"),
    [
        (MAPPED, CPU, NATIVE, Resources(), RefSource.DRIVER_REFS),
        (MAPPED, CUDA, DOCKER, Resources(devices=("GPU-1",)), RefSource.DRIVER_REFS),
        (MAPPED, CPU, SIMULATION, Resources(), RefSource.REF),
        (LEGACY, MPS, NATIVE, Resources(metal=True), RefSource.REF),
        (LEGACY_CONTAINER, CPU, DOCKER, Resources(), RefSource.CONTAINER_REF),
    ],
)
def test_the_agent_accepts_what_the_controller_selected(
    runtime: Runtime,
    accelerator: Accelerator,
    driver: DriverName,
    resources: Resources,
    source: RefSource,
) -> None:
    """The same function, run on the one entry with one ref, gives the same answer."""
    spec = dispatched(runtime, accelerator, driver)
    assert spec.source is source
    assert verdict(spec, resources=resources) is None


def test_the_agent_is_handed_no_ref_but_its_own() -> None:
    """Neither the wire nor a log of the spec tells the other drivers' refs."""
    spec = dispatched(MAPPED, CPU, NATIVE)
    wire = spec.model_dump_json()
    assert "environment" in wire
    assert "image" not in wire
    assert "default" not in wire
    assert "environment" not in repr(spec)


@pytest.mark.parametrize(
    ("changes", "context", "expected"),
    [
        ({}, {"drivers": (DOCKER,)}, Reason.DRIVER_UNAVAILABLE),
        ({}, {"kind": WorkloadKind.ENDPOINT}, Reason.ENDPOINTS_NOT_BUILT),
        ({"kind": WorkloadKind.ENDPOINT}, {}, Reason.SELECTION_MISMATCH),
        # A container image handed to the native driver.
        ({"source": RefSource.REF}, {}, Reason.SELECTION_MISMATCH),
        ({"source": RefSource.CONTAINER_REF}, {}, Reason.SELECTION_MISMATCH),
        ({"driver": DOCKER, "accelerator": MPS}, {}, Reason.SELECTION_MISMATCH),
        ({"accelerator": CUDA}, {}, Reason.SELECTION_MISMATCH),
        ({"accelerator": MPS}, {}, Reason.SELECTION_MISMATCH),
        ({}, {"resources": Resources(devices=("GPU-1",))}, Reason.SELECTION_MISMATCH),
        ({}, {"os": "darwin"}, Reason.SELECTION_MISMATCH),
        ({}, {"os": None}, Reason.SELECTION_MISMATCH),
        ({"name": "Not A Slug"}, {}, Reason.SELECTION_MISMATCH),
        ({"ref": ""}, {}, Reason.SELECTION_MISMATCH),
    ],
)
def test_the_agent_refuses_what_the_selection_would_not_give(
    changes: dict[str, Any], context: dict[str, Any], expected: Reason
) -> None:
    """Whatever the controller decided, a dispatch that breaks the rules is refused."""
    spec = dispatched(MAPPED, CPU, NATIVE).model_copy(update=changes)
    assert verdict(spec, **context) is expected


def test_on_a_mac_the_agent_wants_the_gpu_held_for_every_native_job() -> None:
    """A CPU notebook on a Mac may only start with the Metal reservation."""
    spec = dispatched(MAPPED, CPU, NATIVE)
    assert verdict(spec, os="darwin", resources=Resources(metal=True)) is None
