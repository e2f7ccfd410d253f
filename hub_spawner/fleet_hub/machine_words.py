"""How a machine's facts are put into words, for its page and for the command line.

A machine's word is a stranger's text: ``plain`` takes from it whatever could do
something to a page's layout or to a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    ContainerEngine,
    DeviceUsage,
    HostFacts,
    MemoryKind,
    Tool,
    TorchFacts,
    WorkerCapabilities,
)
from fleet_contracts.language import mark, say, say_many, translated
from fleet_contracts.sentences import say_cores
from fleet_contracts.support import SupportLevel, level
from fleet_contracts.workloads import Accelerator, DriverName


UNKNOWN: Final = mark("unknown")
_GIB: Final = 1 << 30
_LONGEST: Final = 300
_TELLS: Final = 8
SUPPORT: Final = {
    SupportLevel.TESTED: mark("tested"),
    SupportLevel.HARDWARE_VALIDATED: mark("validated on real hardware"),
    SupportLevel.IMPLEMENTED: mark("implemented, and not yet run on this hardware"),
    SupportLevel.DETECTION_ONLY: mark("detected only: nothing is placed on it"),
    SupportLevel.UNSUPPORTED: mark("not supported: nothing is placed on it"),
}
"""Each level as people read it; none of them promises more than the table does."""
_USABLE: Final = {
    True: mark("usable"),
    False: mark("not usable"),
    None: mark("not known to be usable"),
}
_HEALTH: Final = {
    True: mark("healthy"),
    False: mark("not healthy"),
    None: mark("health unknown"),
}


def plain(text: object, longest: int = _LONGEST) -> str:
    """Return *text* on one line: no control or direction characters, and not long."""
    kept = str(text)[: longest + 1]
    shown = "".join(
        sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in kept
    )
    return shown if len(shown) <= longest else shown[:longest] + "…"


def unknown() -> str:
    """Return what stands where nothing is known."""
    return translated(UNKNOWN)


def gib(amount: int | None) -> str:
    """Return bytes as GiB."""
    return unknown() if amount is None else f"{amount / _GIB:.1f} GiB"


def cores(milli: int | None) -> str:
    """Return thousandths of a core as cores."""
    return unknown() if milli is None else f"{milli / 1000:g}"


def yes_no(value: object) -> str:
    """Return a fact that is true, false or unknown."""
    if value is None:
        return unknown()
    return say("yes") if value is True else say("no")


def word(value: object) -> str:
    """Return any other fact."""
    return unknown() if value is None else plain(value)


def reason_of(code: str) -> str:
    """Return a reason's code as words, with a colon before; nothing for "ok"."""
    return "" if code == "ok" else f": {plain(code.replace('_', ' '))}"


def usable(value: object, reason: str) -> str:
    """Return whether something can be used, and why not."""
    known = _USABLE[None if value is None else value is True]
    return translated(known) + reason_of(reason)


def tool(item: Tool) -> str:
    """Return what is known of a program."""
    version = f" {plain(item.version)}" if item.version else ""
    text = f"{plain(item.name)}{version}: {usable(item.usable, item.reason)}"
    if isinstance(item, ContainerEngine):
        answer = yes_no(item.gpu_runtime)
        text = say("{tool}; can hand out GPUs: {answer}", tool=text, answer=answer)
    return text


def health(device: AcceleratorDevice) -> str:
    """Return whether a device's own tool calls it healthy."""
    return translated(_HEALTH[device.healthy])


def has_told(picture: WorkerCapabilities) -> bool:
    """Whether the machine has said anything of itself that was understood."""
    return picture.settled or picture.detected_at is not None


def none_of(picture: WorkerCapabilities) -> str:
    """Return what an empty list means: nothing while slow tools are still out."""
    return say("none was found") if picture.settled else say("not known yet")


def no_device(picture: WorkerCapabilities) -> str:
    """Return what no device means: only a tool that answered can say "none"."""
    is_none = any(report.devices_complete for report in picture.probes)
    if is_none:
        return say("none was found")
    if picture.settled:
        return say("unknown; the notes say why")
    return say("not known yet")


def disk_line(host: HostFacts) -> str:
    """Return how much disk there is."""
    free, size = host.disk_free_bytes.value, host.disk_bytes.value
    if free is None and size is None:
        return say("disk unknown")
    return say("disk {free} free of {size}", free=gib(free), size=gib(size))


def device_name(device: AcceleratorDevice) -> str:
    """Return what a device is called."""
    name = plain(device.name) if device.name else say("device of unknown name")
    return f"{name} ({device.accelerator.value})"


def device_line(device: AcceleratorDevice) -> str:
    """Return the parts of a device that a person looks for first."""
    memory = unknown() if device.memory_mib is None else f"{device.memory_mib} MiB"
    is_unified = device.memory_kind is MemoryKind.UNIFIED
    parts = [
        say("memory {amount}, unified", amount=memory)
        if is_unified
        else say("memory {amount}", amount=memory),
        health(device),
        translated(_USABLE[device.execution_supported]),
    ]
    if device.driver_version:
        version = plain(device.driver_version)
        parts.append(say("GPU driver {version}", version=version))
    return ", ".join(parts)


def support_lines(
    accelerator: Accelerator | str, drivers: Iterable[DriverName]
) -> list[str]:
    """Return how far *accelerator* is supported through each of *drivers*."""
    return [
        say(
            "through {driver}: {level}",
            driver=driver.value,
            level=translated(SUPPORT[level(accelerator, driver)]),
        )
        for driver in drivers
    ]


def driver_names(picture: WorkerCapabilities) -> tuple[DriverName, ...]:
    """Return the drivers that the machine offers; native where it did not say."""
    return tuple(item.name for item in picture.drivers) or (DriverName.NATIVE,)


def torch_line(item: TorchFacts) -> str:
    """Return what torch in one environment said."""
    told = item.distributed_backends
    backends = unknown() if told is None else ", ".join(map(plain, told)) or say("none")
    text = say(
        "torch {version} in {place}: torch.cuda {cuda}, torch.mps {mps}, "
        "backends {backends}",
        version=word(item.version),
        place=word(item.environment),
        cuda=yes_no(item.cuda),
        mps=yes_no(item.mps),
        backends=backends,
    )
    return text + reason_of(item.reason)


def busy_line(device: DeviceUsage) -> str:
    """Return how busy a device was."""
    name = device.uuid or say("device {number}", number=word(device.index))
    free, busy = device.memory_free_mib, device.utilisation_percent
    text = say(
        "{device}: memory free {free}, utilisation {busy}",
        device=f"{device.accelerator.value} {plain(name)}",
        free=unknown() if free is None else f"{free} MiB",
        busy=unknown() if busy is None else f"{busy} %",
    )
    if not device.foreign_mib:
        return text
    return say(
        "{use}; programs outside the fleet use {used}, so it is given to nobody",
        use=text,
        used=f"{device.foreign_mib} MiB",
    )


def _devices_line(devices: Sequence[str]) -> str:
    """Return which devices these are; of several, as much as tells them apart."""
    if len(devices) == 1:
        return say("GPU {name}", name=plain(devices[0]).removeprefix("GPU-"))
    names = ", ".join(plain(name).removeprefix("GPU-")[:_TELLS] for name in devices)
    return say_many("%1 GPU: %2", "%1 GPUs: %2", len(devices), names)


def counted(names: Iterable[str]) -> str:
    """Return *names* in their order, each once, with how many there are of it."""
    found = Counter(names)
    return ", ".join(
        name if count == 1 else f"{count} \N{MULTIPLICATION SIGN} {name}"
        for name, count in found.items()
    )


def resources_line(resources: Any) -> str:
    """Return what an allocation holds."""
    parts = [say_cores(resources.cpu_milli), gib(resources.memory_bytes)]
    if resources.devices:
        parts.append(_devices_line(resources.devices))
    if resources.metal:
        parts.append(say("the Mac's GPU"))
    return ", ".join(parts)
