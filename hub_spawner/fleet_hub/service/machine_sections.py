"""A machine's picture as sections of a page: short lines, and facts with their origin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    Fact,
    Observed,
    Origin,
    WorkerCapabilities,
)
from fleet_contracts.workloads import Accelerator
from fleet_hub.machine_words import (
    busy_line,
    cores,
    device_line,
    device_name,
    disk_line,
    driver_names,
    gib,
    has_told,
    health,
    no_device,
    none_of,
    plain,
    support_lines,
    tool,
    torch_line,
    usable,
    word,
    yes_no,
)
from fleet_hub.service.views import spoken


_MOST: Final = 100
"""A machine that lists more of anything than this is shown the beginning of it."""
_ORIGINS: Final = {
    Origin.DETECTED: " (seen by the machine)",
    Origin.LABEL: " (written by its operator)",
    # Its source says so already.
    Origin.RECORD: "",
}
_HOST: Final[tuple[tuple[str, str, Callable[[Any], str]], ...]] = (
    ("os", "Operating system", word),
    ("os_version", "Version", word),
    ("kernel", "Kernel", word),
    ("architecture", "Architecture", word),
    ("process_architecture", "Architecture of the agent", word),
    ("translated", "Agent runs translated", yes_no),
    ("apple_silicon", "Apple Silicon", yes_no),
    ("virtual_machine", "Virtual machine", yes_no),
    ("container", "Container", yes_no),
    ("cpu_name", "Processor", word),
    ("cpu_emulated", "Processor is emulated", yes_no),
    ("cores_physical", "Physical cores", word),
    ("cores_logical", "Logical cores", word),
    ("cores_visible", "Cores visible to the agent", word),
    ("cores_allowed_milli", "Cores that may be used", cores),
    ("memory_bytes", "Memory", gib),
    ("memory_allowed_bytes", "Memory that may be used", gib),
    ("disk_bytes", "Disk", gib),
    ("disk_free_bytes", "Free disk", gib),
    ("python", "Python of the agent", word),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """One fact with its origin and its age."""

    label: str
    value: str
    source: str
    seen_at: datetime | None
    age: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of a machine's picture."""

    title: str
    lines: tuple[str, ...] = ()
    facts: tuple[FactRow, ...] = ()


def row(label: str, value: str, observed: Observed | None, now: datetime) -> FactRow:
    """Return one fact; what nothing has looked at yet has neither source nor age."""
    if observed is None:
        return FactRow(label=label, value=value, source="—", seen_at=None, age="—")
    return FactRow(
        label=label,
        value=value,
        source=f"{plain(observed.source)}{_ORIGINS[observed.origin]}",
        seen_at=observed.observed_at,
        age=age(observed.observed_at, now),
    )


def age(at: datetime, now: datetime) -> str:
    """Return how long ago; another machine's clock never makes it negative."""
    return f"{spoken(max(0.0, (now - at).total_seconds()))} ago"


def sections_of(picture: WorkerCapabilities, now: datetime) -> tuple[Section, ...]:
    """Return the machine's own word, in the order in which people look for it.

    A machine that has said nothing has no sections: none of them would be a fact.
    """
    if not has_told(picture):
        return ()
    return (
        _host(picture, now),
        *_accelerators(picture, now),
        _drivers(picture, now),
        _frameworks(picture, now),
        _tools(picture, now),
        _labels(picture, now),
        _notes(picture, now),
    )


def usage_of(picture: WorkerCapabilities, now: datetime) -> Section | None:
    """Return how busy the machine was when it last said so."""
    usage = picture.usage
    if usage is None:
        return None
    load = "unknown" if usage.load_milli is None else f"{usage.load_milli / 1000:.2f}"
    lines = [
        f"memory free {gib(usage.memory_available_bytes)}",
        f"load of the last minute {load}",
        *map(busy_line, usage.devices[:_MOST]),
    ]
    return Section(
        title="Right now",
        lines=tuple(lines),
        facts=(row("All of these", "as above", usage.observed, now),),
    )


def _host(picture: WorkerCapabilities, now: datetime) -> Section:
    host = picture.host
    system = word(host.os_version.value or host.os.value)
    address = picture.network.advertise_address
    facts = [_fact(label, getattr(host, name), say, now) for name, label, say in _HOST]
    facts.append(_fact("Address that it names", address, word, now))
    return Section(
        title="Host",
        lines=(
            f"{system}, {word(host.architecture.value)}",
            (
                f"{word(host.cpu_name.value)}: {cores(host.cores_allowed_milli.value)} of "
                f"{word(host.cores_logical.value)} cores may be used"
            ),
            (
                f"memory {gib(host.memory_bytes.value)}, of which "
                f"{gib(host.memory_allowed_bytes.value)} may be used"
            ),
            disk_line(host),
        ),
        facts=tuple(facts),
    )


def _fact(
    label: str, fact: Fact[Any], say: Callable[[Any], str], now: datetime
) -> FactRow:
    return row(label, say(fact.value), fact.observed, now)


def _accelerators(picture: WorkerCapabilities, now: datetime) -> Iterator[Section]:
    drivers = driver_names(picture)
    for device in picture.accelerators[:_MOST]:
        support = support_lines(device.accelerator.value, drivers)
        yield Section(
            title=f"Accelerator: {device_name(device)}",
            lines=(device_line(device), *support),
            facts=tuple(_device_facts(device, now)),
        )
    if not picture.accelerators:
        yield Section(title="Accelerators", lines=(no_device(picture),))


def _device_facts(device: AcceleratorDevice, now: datetime) -> Iterator[FactRow]:
    slices = ", ".join(plain(item.uuid or item.name) for item in device.mig_instances)
    memory = None if device.memory_mib is None else f"{device.memory_mib} MiB"
    for name, label, value in (
        ("vendor", "Vendor", word(device.vendor)),
        ("index", "Number by its tool", word(device.index)),
        ("uuid", "UUID", word(device.uuid)),
        ("memory_mib", "Memory", word(memory)),
        ("memory_kind", "Kind of memory", device.memory_kind.value),
        ("compute_capability", "Compute capability", word(device.compute_capability)),
        ("architecture", "Architecture", word(device.architecture)),
        ("driver_version", "GPU driver", word(device.driver_version)),
        ("healthy", "Health", health(device)),
        ("execution_supported", "Can be used", yes_no(device.execution_supported)),
        ("mig_enabled", "Cut into MIG slices", yes_no(device.mig_enabled)),
        ("mig_instances", "MIG slices", slices or "none told"),
    ):
        yield row(label, value, device.sources.get(name, device.observed), now)


def _drivers(picture: WorkerCapabilities, now: datetime) -> Section:
    rows = [
        row(item.name.value, usable(item.usable, item.reason), item.observed, now)
        for item in picture.drivers
    ]
    lines = [f"{item.label}: {item.value}" for item in rows]
    lines += [
        f"a workload on the processor, {line}"
        for line in support_lines(Accelerator.CPU, driver_names(picture))
    ]
    return Section(title="Ways to run workloads", lines=tuple(lines), facts=tuple(rows))


def _frameworks(picture: WorkerCapabilities, now: datetime) -> Section:
    rows = []
    for item in picture.frameworks[:_MOST]:
        build = f" ({plain(item.build)})" if item.build else ""
        value = f"{word(item.version)}{build} in {plain(item.environment)}"
        rows.append(row(plain(item.name), value, item.observed, now))
    lines = [f"{item.label} {item.value}" for item in rows]
    for torch in picture.torch[:_MOST]:
        lines.append(torch_line(torch))
        rows.append(row("What torch can do", torch_line(torch), torch.observed, now))
    return Section(
        title="Frameworks in workload environments",
        lines=tuple(lines) or (none_of(picture),),
        facts=tuple(rows),
    )


def _tools(picture: WorkerCapabilities, now: datetime) -> Section:
    tools = (*picture.sandboxes, *picture.container_engines, *picture.launchers)
    kept = tools[:_MOST]
    return Section(
        title="Sandboxes, containers and launchers",
        lines=tuple(map(tool, kept)) or (none_of(picture),),
        facts=tuple(
            row(plain(item.name), tool(item), item.observed, now) for item in kept
        ),
    )


def _labels(picture: WorkerCapabilities, now: datetime) -> Section:
    kept = picture.labels[:_MOST]
    return Section(
        title="Labels of its configuration",
        lines=_or_none(f"{plain(item.name)} = {plain(item.value)}" for item in kept),
        facts=tuple(
            row(plain(item.name), plain(item.value), item.observed, now)
            for item in kept
        ),
    )


def _notes(picture: WorkerCapabilities, now: datetime) -> Section:
    seen = {report.probe: report.observed for report in picture.probes}
    kept = picture.notes[:_MOST]
    return Section(
        title="Notes",
        lines=_or_none(plain(item.text) for item in kept),
        facts=tuple(
            row(plain(item.probe), plain(item.reason), seen.get(item.probe), now)
            for item in kept
        ),
    )


def _or_none(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(lines) or ("none",)
