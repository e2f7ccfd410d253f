"""The controller's machines as lines that a person reads in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fleet_contracts.capabilities import WorkerCapabilities
from fleet_contracts.term_sentences import term_line
from fleet_contracts.workloads import Accelerator, Resources
from fleet_hub.machine_words import (
    busy_line,
    cores,
    device_line,
    device_name,
    disk_line,
    driver_names,
    gib,
    has_told,
    no_device,
    plain,
    resources_line,
    support_lines,
    tool,
    torch_line,
    usable,
    word,
)


def describe_machines(machines: Iterable[dict[str, Any]]) -> str:
    """Return all *machines*, as ``service.machine_document`` writes them."""
    blocks = ["\n".join(_machine(document)) for document in machines]
    if not blocks:
        return "No machine has been enrolled yet.\n"
    return "\n\n".join(blocks) + "\n"


def _machine(document: dict[str, Any]) -> Iterator[str]:
    state = "online" if document["online"] else "offline"
    yield f"{plain(document['name'])}: {state} since {plain(document['since'])}"
    yield (
        f"  record      owner {plain(document['owner'])}, "
        f"provider {plain(document['provider'])}"
    )
    labels = [f"{plain(key)}={plain(item)}" for key, item in document["labels"].items()]
    yield from _named("labels", labels)
    if document["draining_by"] is not None:
        yield f"  draining    {plain(document['draining_by'])}"
    if document["set_aside_until"] is not None:
        yield f"  set aside   until {plain(document['set_aside_until'])}"
    yield from _named("holds", map(_held, document["holds"]))
    yield f"  agent       {word(document['agent_version'])}"
    picture = WorkerCapabilities.model_validate(document["capabilities"])
    if not has_told(picture):
        yield "  It has not said yet what it can do, so all of it is unknown."
        return
    yield "  By the machine's own word:"
    yield from _picture(picture)


def _held(held: dict[str, Any]) -> str:
    server = plain(held["server"] or "default")
    text = f"{plain(held['user'])} / {server}, {plain(held['state'])}"
    if held["resources"] is None:
        return text
    return f"{text}: {resources_line(Resources.model_validate(held['resources']))}"


def _picture(picture: WorkerCapabilities) -> Iterator[str]:
    host = picture.host
    system = word(host.os_version.value or host.os.value)
    yield f"  system      {system}, {word(host.architecture.value)}"
    yield (
        f"  processor   {word(host.cpu_name.value)}, "
        f"{cores(host.cores_allowed_milli.value)} cores may be used"
    )
    yield f"  memory      {gib(host.memory_allowed_bytes.value)} may be used"
    yield f"  {disk_line(host).replace(' ', '        ', 1)}"
    drivers = driver_names(picture)
    yield from _named("accelerator", _devices(picture))
    yield from _named(
        "driver",
        (
            f"{item.name.value}: {usable(item.usable, item.reason)}"
            for item in picture.drivers
        ),
    )
    yield from _named("processor", support_lines(Accelerator.CPU, drivers))
    yield from _named(
        "framework",
        (
            f"{plain(item.name)} {word(item.version)} in {plain(item.environment)}"
            for item in picture.frameworks
        ),
    )
    yield from _named("torch", map(torch_line, picture.torch))
    tools = (*picture.sandboxes, *picture.container_engines, *picture.launchers)
    yield from _named("tool", map(tool, tools))
    yield from _named(
        "own label",
        (f"{plain(item.name)}={plain(item.value)}" for item in picture.labels),
    )
    yield from _named("term", (plain(term_line(item)) for item in picture.terms))
    yield from _named("note", (plain(note.text) for note in picture.notes))
    yield from _usage(picture)


def _devices(picture: WorkerCapabilities) -> Iterator[str]:
    drivers = driver_names(picture)
    for device in picture.accelerators:
        support = "; ".join(support_lines(device.accelerator.value, drivers))
        yield f"{device_name(device)}, {device_line(device)}; {support}"
    if not picture.accelerators:
        yield no_device(picture)


def _usage(picture: WorkerCapabilities) -> Iterator[str]:
    usage = picture.usage
    if usage is None:
        return
    yield f"  Observed at {usage.observed.observed_at.isoformat()}, and no capacity:"
    yield f"  memory      {gib(usage.memory_available_bytes)} free"
    yield from _named("device", map(busy_line, usage.devices))


def _named(name: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {name:<11} {line}"
