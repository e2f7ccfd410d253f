"""A machine's picture as lines that a person reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    ContainerEngine,
    Fact,
    MemoryKind,
    Tool,
    TorchFacts,
    WorkerCapabilities,
)


_GIB: Final = 1 << 30
_UNKNOWN: Final = "unknown"


def describe(picture: WorkerCapabilities) -> str:
    """Return the whole picture as text."""
    sections = (
        ("This computer", _host(picture)),
        ("Accelerators", _accelerators(picture)),
        ("Frameworks", _frameworks(picture)),
        ("Torch", _torch(picture)),
        ("Ways to run workloads", _drivers(picture)),
        ("Sandboxes", map(_tool, picture.sandboxes)),
        ("Containers", map(_engine, picture.container_engines)),
        ("Launchers", map(_tool, picture.launchers)),
        ("Labels", (f"{label.name} = {label.value}" for label in picture.labels)),
        ("Now", _usage(picture)),
        ("Notes", (note.text for note in picture.notes)),
    )
    blocks = []
    for title, lines in sections:
        text = [f"  {line}" for line in lines]
        if text:
            blocks.append("\n".join([title, *text]))
    return "\n\n".join(blocks) + "\n"


def _host(picture: WorkerCapabilities) -> Iterator[str]:
    host = picture.host
    system = _word(host.os_version) if host.os_version.value else _word(host.os)
    yield f"system      {system}, {_word(host.architecture)}{_translation(picture)}"
    yield f"kernel      {_word(host.kernel)}"
    allowed = host.cores_allowed_milli.value
    cores = _UNKNOWN if allowed is None else f"{allowed / 1000:g}"
    yield (
        f"processor   {_word(host.cpu_name)}, {cores} of "
        f"{_word(host.cores_logical)} cores may be used"
    )
    yield (
        f"memory      {_gib(host.memory_bytes)}, "
        f"{_gib(host.memory_allowed_bytes)} may be used"
    )
    yield f"disk        {_gib(host.disk_free_bytes)} free of {_gib(host.disk_bytes)}"
    yield f"Python      {_word(host.python)}"
    yield f"address     {_word(picture.network.advertise_address)}"
    kinds = [
        word
        for word, fact in (
            ("virtual", host.virtual_machine),
            ("container", host.container),
        )
        if fact.value
    ]
    if kinds:
        yield f"kind        {', '.join(kinds)}"


def _translation(picture: WorkerCapabilities) -> str:
    if not picture.host.translated.value:
        return ""
    own = _word(picture.host.process_architecture)
    return f" (this program runs translated, as {own})"


def _accelerators(picture: WorkerCapabilities) -> Iterator[str]:
    for device in picture.accelerators:
        yield _device(device)
    if not picture.accelerators:
        complete = any(report.devices_complete for report in picture.probes)
        yield "none" if complete else "unknown (see the notes)"


def _device(device: AcceleratorDevice) -> str:
    memory = _UNKNOWN if device.memory_mib is None else f"{device.memory_mib} MiB"
    unified = " unified" if device.memory_kind is MemoryKind.UNIFIED else ""
    parts = [
        f"{device.accelerator.value}  {device.name or 'name unknown'}",
        f"memory {memory}{unified}",
    ]
    if device.compute_capability:
        parts.append(f"compute capability {device.compute_capability}")
    if device.architecture:
        parts.append(device.architecture)
    if device.driver_version:
        parts.append(f"GPU driver {device.driver_version}")
    parts.append(_usability(device))
    if device.uuid:
        parts.append(device.uuid)
    return ", ".join(parts)


def _usability(device: AcceleratorDevice) -> str:
    if device.healthy is False:
        return "not healthy"
    return {
        True: "usable",
        False: "not usable: it is detected only",
        None: "not known to be usable",
    }[device.execution_supported]


def _frameworks(picture: WorkerCapabilities) -> Iterator[str]:
    for item in picture.frameworks:
        build = f" ({item.build})" if item.build else ""
        yield f"{item.name} {item.version or _UNKNOWN}{build} in {item.environment}"


def _torch(picture: WorkerCapabilities) -> Iterator[str]:
    for item in picture.torch:
        yield f"{item.environment}: {_torch_line(item)}"


def _torch_line(item: TorchFacts) -> str:
    backends = item.distributed_backends
    told = ", ".join(backends) if backends else "none" if backends == () else _UNKNOWN
    reason = "" if item.reason == "ok" else f" ({item.reason})"
    return (
        f"torch {item.version or _UNKNOWN}, torch.cuda {_yes_no(item.cuda)}, "
        f"torch.mps {_yes_no(item.mps)}, backends {told}{reason}"
    )


def _drivers(picture: WorkerCapabilities) -> Iterator[str]:
    for item in picture.drivers:
        reason = "" if item.reason == "ok" else f" ({item.reason})"
        yield f"{item.name.value}: usable {_yes_no(item.usable)}{reason}"


def _tool(item: Tool) -> str:
    version = f" {item.version}" if item.version else ""
    reason = "" if item.reason == "ok" else f" ({item.reason})"
    return f"{item.name}{version}: usable {_yes_no(item.usable)}{reason}"


def _engine(item: ContainerEngine) -> str:
    return f"{_tool(item)}, GPUs {_yes_no(item.gpu_runtime)}"


def _usage(picture: WorkerCapabilities) -> Iterable[str]:
    usage = picture.usage
    if usage is None:
        return
    if usage.memory_available_bytes is not None:
        yield f"memory available {usage.memory_available_bytes / _GIB:.1f} GiB"
    if usage.load_milli is not None:
        yield f"load {usage.load_milli / 1000:.2f}"
    for device in usage.devices:
        name = device.uuid or f"device {device.index}"
        free = device.memory_free_mib
        busy = device.utilisation_percent
        yield (
            f"{name}: {_UNKNOWN if free is None else free} MiB free, "
            f"{_UNKNOWN if busy is None else busy} % busy"
        )


def _word(fact: Fact[Any]) -> str:
    return _UNKNOWN if fact.value is None else str(fact.value)


def _gib(fact: Fact[int]) -> str:
    return _UNKNOWN if fact.value is None else f"{fact.value / _GIB:.1f} GiB"


def _yes_no(value: bool | None) -> str:  # noqa: FBT001 - a fact's value
    return {True: "yes", False: "no", None: _UNKNOWN}[value]
