"""A machine's picture as sections of a page: short lines, and facts with their origin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    Fact,
    MemoryKind,
    Observed,
    Origin,
    WorkerCapabilities,
)
from fleet_contracts.language import mark, said, say, translated
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.telling import duration
from fleet_contracts.term_sentences import term_line
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
    unknown,
    usable,
    word,
    yes_no,
)


_MEMORY: Final = {
    MemoryKind.DEDICATED: mark("its own"),
    MemoryKind.UNIFIED: mark("the machine's"),
    MemoryKind.UNKNOWN: mark("unknown"),
}
_SEEN: Final = {
    True: mark("the sandbox was seen to keep CPU notebooks from the GPU"),
    False: mark("a CPU notebook can reach the GPU from its sandbox"),
    None: mark("nobody knows whether the sandbox keeps CPU notebooks from the GPU"),
}
_MOST: Final = 100
"""A machine that lists more of anything than this is shown the beginning of it."""
_ORIGINS: Final = {
    Origin.DETECTED: mark("{source} (seen by the machine)"),
    Origin.LABEL: mark("{source} (written by its operator)"),
    # Its source says so already.
    Origin.RECORD: "{source}",
}
_HOST: Final[tuple[tuple[str, str, Callable[[Any], str]], ...]] = (
    ("os", mark("Operating system"), word),
    ("os_version", mark("Version"), word),
    ("os_build", mark("Build"), word),
    ("kernel", mark("Kernel"), word),
    ("architecture", mark("Architecture"), word),
    ("process_architecture", mark("Architecture of the agent"), word),
    ("translated", mark("Agent runs translated"), yes_no),
    ("apple_silicon", mark("Apple Silicon"), yes_no),
    ("virtual_machine", mark("Virtual machine"), yes_no),
    ("container", mark("Container"), yes_no),
    ("cpu_name", mark("Processor"), word),
    ("cpu_emulated", mark("Processor is emulated"), yes_no),
    ("cores_physical", mark("Physical cores"), word),
    ("cores_logical", mark("Logical cores"), word),
    ("cores_visible", mark("Cores visible to the agent"), word),
    ("cores_allowed_milli", mark("Cores that may be used"), cores),
    ("memory_bytes", mark("Memory"), gib),
    ("memory_allowed_bytes", mark("Memory that may be used"), gib),
    ("disk_bytes", mark("Disk"), gib),
    ("disk_free_bytes", mark("Free disk"), gib),
    ("python", mark("Python of the agent"), word),
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
        source=say(
            _ORIGINS[observed.origin], source=translated(plain(observed.source))
        ),
        seen_at=observed.observed_at,
        age=age(observed.observed_at, now),
    )


def age(at: datetime, now: datetime) -> str:
    """Return how long ago; another machine's clock never makes it negative."""
    return say("%1 ago", duration(max(0.0, (now - at).total_seconds())))


def sections_of(picture: WorkerCapabilities, now: datetime) -> tuple[Section, ...]:
    """Return the machine's own word, in the order in which people look for it.

    A machine that has said nothing has no sections: none of them would be a fact.
    """
    if not has_told(picture):
        return ()
    return (
        _host(picture, now),
        *_accelerators(picture, now),
        *_fence(picture, now),
        _drivers(picture, now),
        _frameworks(picture, now),
        _tools(picture, now),
        _labels(picture, now),
        *_terms(picture, now),
        _notes(picture, now),
    )


def _terms(picture: WorkerCapabilities, now: datetime) -> Iterator[Section]:
    if not picture.terms:
        return
    kept = picture.terms[:_MOST]
    yield Section(
        title=say("Its owner's terms"),
        lines=tuple(plain(term_line(item)) for item in kept),
        facts=tuple(
            row(plain(item.name), plain(term_line(item)), item.observed, now)
            for item in kept
        ),
    )


def usage_of(picture: WorkerCapabilities, now: datetime) -> Section | None:
    """Return how busy the machine was when it last said so."""
    usage = picture.usage
    if usage is None:
        return None
    load = unknown() if usage.load_milli is None else f"{usage.load_milli / 1000:.2f}"
    lines = [
        say("memory free {free}", free=gib(usage.memory_available_bytes)),
        say("load of the last minute {load}", load=load),
        *map(busy_line, usage.devices[:_MOST]),
    ]
    return Section(
        title=say("Right now"),
        lines=tuple(lines),
        facts=(row(say("All of these"), say("as above"), usage.observed, now),),
    )


def _host(picture: WorkerCapabilities, now: datetime) -> Section:
    host = picture.host
    system = word(host.os_version.value or host.os.value)
    address = picture.network.advertise_address
    facts = [
        _fact(translated(label), getattr(host, name), tell, now)
        for name, label, tell in _HOST
    ]
    facts.append(_fact(say("Address that it names"), address, word, now))
    return Section(
        title=say("Host"),
        lines=(
            f"{system}, {word(host.architecture.value)}",
            said(
                mark("[{processor}: ]{allowed} of {all} cores may be used"),
                {
                    "allowed": cores(host.cores_allowed_milli.value),
                    "all": word(host.cores_logical.value),
                }
                | (
                    {"processor": word(host.cpu_name.value)}
                    if host.cpu_name.value
                    else {}
                ),
            ),
            say(
                "memory {amount}, of which {allowed} may be used",
                amount=gib(host.memory_bytes.value),
                allowed=gib(host.memory_allowed_bytes.value),
            ),
            disk_line(host),
        ),
        facts=tuple(facts),
    )


def _fact(
    label: str, fact: Fact[Any], tell: Callable[[Any], str], now: datetime
) -> FactRow:
    return row(label, tell(fact.value), fact.observed, now)


def _accelerators(picture: WorkerCapabilities, now: datetime) -> Iterator[Section]:
    drivers = driver_names(picture)
    for device in picture.accelerators[:_MOST]:
        support = support_lines(device.accelerator.value, drivers)
        yield Section(
            title=say("Accelerator: {device}", device=device_name(device)),
            lines=(device_line(device), *support),
            facts=tuple(_device_facts(device, now)),
        )
    if not picture.accelerators:
        yield Section(title=say("Accelerators"), lines=(no_device(picture),))


def _fence(picture: WorkerCapabilities, now: datetime) -> Iterator[Section]:
    """Say whether CPU notebooks share a Mac, and why not."""
    fence = picture.metal_fence
    if fence is None:
        return
    shared = placement_facts(picture).metal_fenced
    seen = translated(_SEEN[fence.holds])
    because = "" if fence.holds else f" ({word(fence.reason)})"
    yield Section(
        title=say("CPU notebooks and the Mac's GPU"),
        lines=(
            say("CPU notebooks run beside other work")
            if shared
            else say("native notebooks run one at a time"),
            f"{seen}{because}",
        ),
        facts=(
            row(
                say("Its owner lets them share"),
                yes_no(fence.consent),
                fence.observed,
                now,
            ),
            row(
                say("The sandbox keeps them from it"),
                yes_no(fence.holds),
                fence.observed,
                now,
            ),
            row(say("Seen on build"), word(fence.os_build), fence.observed, now),
        ),
    )


def _device_facts(device: AcceleratorDevice, now: datetime) -> Iterator[FactRow]:
    slices = ", ".join(plain(item.uuid or item.name) for item in device.mig_instances)
    memory = None if device.memory_mib is None else f"{device.memory_mib} MiB"
    for name, label, value in (
        ("vendor", mark("Vendor"), word(device.vendor)),
        ("index", mark("Number by its tool"), word(device.index)),
        ("uuid", mark("UUID"), word(device.uuid)),
        ("memory_mib", mark("Memory"), word(memory)),
        (
            "memory_kind",
            mark("Kind of memory"),
            translated(_MEMORY[device.memory_kind]),
        ),
        (
            "compute_capability",
            mark("Compute capability"),
            word(device.compute_capability),
        ),
        ("architecture", mark("Architecture"), word(device.architecture)),
        ("driver_version", mark("GPU driver"), word(device.driver_version)),
        ("healthy", mark("Health"), health(device)),
        (
            "execution_supported",
            mark("Can be used"),
            yes_no(device.execution_supported),
        ),
        ("mig_enabled", mark("Cut into MIG slices"), yes_no(device.mig_enabled)),
        ("mig_instances", mark("MIG slices"), slices or say("none told")),
    ):
        yield row(
            translated(label), value, device.sources.get(name, device.observed), now
        )


def _drivers(picture: WorkerCapabilities, now: datetime) -> Section:
    rows = [
        row(item.name.value, usable(item.usable, item.reason), item.observed, now)
        for item in picture.drivers
    ]
    lines = [f"{item.label}: {item.value}" for item in rows]
    lines += [
        say(
            "{driver}: nothing keeps a workload to the cores and the memory of its class",
            driver=item.name.value,
        )
        for item in picture.drivers
        if item.limits is False
    ]
    lines += [
        say("a workload on the processor, {line}", line=line)
        for line in support_lines(Accelerator.CPU, driver_names(picture))
    ]
    return Section(
        title=say("Ways to run workloads"), lines=tuple(lines), facts=tuple(rows)
    )


def _frameworks(picture: WorkerCapabilities, now: datetime) -> Section:
    rows = []
    for item in picture.frameworks[:_MOST]:
        build = f" ({plain(item.build)})" if item.build else ""
        value = say(
            "{version} in {place}",
            version=f"{word(item.version)}{build}",
            place=plain(item.environment),
        )
        rows.append(row(plain(item.name), value, item.observed, now))
    lines = [f"{item.label} {item.value}" for item in rows]
    for torch in picture.torch[:_MOST]:
        lines.append(torch_line(torch))
        rows.append(
            row(say("What torch can do"), torch_line(torch), torch.observed, now)
        )
    return Section(
        title=say("Frameworks in workload environments"),
        lines=tuple(lines) or (none_of(picture),),
        facts=tuple(rows),
    )


def _tools(picture: WorkerCapabilities, now: datetime) -> Section:
    tools = (*picture.sandboxes, *picture.container_engines, *picture.launchers)
    kept = tools[:_MOST]
    return Section(
        title=say("Sandboxes, containers and launchers"),
        lines=tuple(map(tool, kept)) or (none_of(picture),),
        facts=tuple(
            row(plain(item.name), tool(item), item.observed, now) for item in kept
        ),
    )


def _labels(picture: WorkerCapabilities, now: datetime) -> Section:
    kept = picture.labels[:_MOST]
    return Section(
        title=say("Labels of its configuration"),
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
        title=say("Notes"),
        lines=_or_none(plain(item.text) for item in kept),
        facts=tuple(
            row(plain(item.probe), plain(item.reason), seen.get(item.probe), now)
            for item in kept
        ),
    )


def _or_none(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(lines) or (say("none"),)
