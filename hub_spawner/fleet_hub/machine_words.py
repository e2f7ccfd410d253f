"""How a machine's facts are put into words, for its page and for the command line.

A machine's word is a stranger's text: ``plain`` takes from it whatever could do
something to a page's layout or to a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
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
from fleet_contracts.support import SupportLevel, level
from fleet_contracts.workloads import Accelerator, DriverName


UNKNOWN: Final = "unknown"
_GIB: Final = 1 << 30
_CORE: Final = 1000
_LONGEST: Final = 300
SUPPORT: Final = {
    SupportLevel.TESTED: "tested",
    SupportLevel.HARDWARE_VALIDATED: "validated on real hardware",
    SupportLevel.IMPLEMENTED: "implemented, and not yet run on this hardware",
    SupportLevel.DETECTION_ONLY: "detected only: nothing is placed on it",
    SupportLevel.UNSUPPORTED: "not supported: nothing is placed on it",
}
"""Each level as people read it; none of them promises more than the table does."""


def plain(text: object, longest: int = _LONGEST) -> str:
    """Return *text* on one line: no control or direction characters, and not long."""
    kept = str(text)[: longest + 1]
    shown = "".join(
        sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in kept
    )
    return shown if len(shown) <= longest else shown[:longest] + "…"


def gib(amount: int | None) -> str:
    """Return bytes as GiB."""
    return UNKNOWN if amount is None else f"{amount / _GIB:.1f} GiB"


def cores(milli: int | None) -> str:
    """Return thousandths of a core as cores."""
    return UNKNOWN if milli is None else f"{milli / 1000:g}"


def yes_no(value: object) -> str:
    """Return a fact that is true, false or unknown."""
    return UNKNOWN if value is None else "yes" if value is True else "no"


def word(value: object) -> str:
    """Return any other fact."""
    return UNKNOWN if value is None else plain(value)


def reason_of(code: str) -> str:
    """Return a reason's code as words, with a colon before; nothing for "ok"."""
    return "" if code == "ok" else f": {plain(code.replace('_', ' '))}"


def usable(value: object, reason: str) -> str:
    """Return whether something can be used, and why not."""
    known = {True: "usable", False: "not usable"}
    text = "not known to be usable" if value is None else known[value is True]
    return text + reason_of(reason)


def tool(item: Tool) -> str:
    """Return what is known of a program."""
    version = f" {plain(item.version)}" if item.version else ""
    text = f"{plain(item.name)}{version}: {usable(item.usable, item.reason)}"
    if isinstance(item, ContainerEngine):
        text += f"; can hand out GPUs: {yes_no(item.gpu_runtime)}"
    return text


def health(device: AcceleratorDevice) -> str:
    """Return whether a device's own tool calls it healthy."""
    return {True: "healthy", False: "not healthy", None: "health unknown"}[
        device.healthy
    ]


def has_told(picture: WorkerCapabilities) -> bool:
    """Whether the machine has said anything of itself that was understood."""
    return picture.settled or picture.detected_at is not None


def none_of(picture: WorkerCapabilities) -> str:
    """Return what an empty list means: nothing while slow tools are still out."""
    return "none was found" if picture.settled else "not known yet"


def no_device(picture: WorkerCapabilities) -> str:
    """Return what no device means: only a tool that answered can say "none"."""
    is_none = any(report.devices_complete for report in picture.probes)
    if is_none:
        return "none was found"
    return "unknown; the notes say why" if picture.settled else "not known yet"


def disk_line(host: HostFacts) -> str:
    """Return how much disk there is."""
    free, size = host.disk_free_bytes.value, host.disk_bytes.value
    if free is None and size is None:
        return f"disk {UNKNOWN}"
    return f"disk {gib(free)} free of {gib(size)}"


def device_name(device: AcceleratorDevice) -> str:
    """Return what a device is called."""
    return (
        f"{plain(device.name or 'device of unknown name')} ({device.accelerator.value})"
    )


def device_line(device: AcceleratorDevice) -> str:
    """Return the parts of a device that a person looks for first."""
    memory = UNKNOWN if device.memory_mib is None else f"{device.memory_mib} MiB"
    unified = ", unified" if device.memory_kind is MemoryKind.UNIFIED else ""
    executes = {True: "usable", False: "not usable", None: "not known to be usable"}
    parts = [
        f"memory {memory}{unified}",
        health(device),
        executes[device.execution_supported],
    ]
    if device.driver_version:
        parts.append(f"GPU driver {plain(device.driver_version)}")
    return ", ".join(parts)


def support_lines(
    accelerator: Accelerator | str, drivers: Iterable[DriverName]
) -> list[str]:
    """Return how far *accelerator* is supported through each of *drivers*."""
    return [
        f"through {driver.value}: {SUPPORT[level(accelerator, driver)]}"
        for driver in drivers
    ]


def driver_names(picture: WorkerCapabilities) -> tuple[DriverName, ...]:
    """Return the drivers that the machine offers; native where it did not say."""
    return tuple(item.name for item in picture.drivers) or (DriverName.NATIVE,)


def torch_line(item: TorchFacts) -> str:
    """Return what torch in one environment said."""
    told = item.distributed_backends
    backends = UNKNOWN if told is None else ", ".join(map(plain, told)) or "none"
    return (
        f"torch {word(item.version)} in {word(item.environment)}: "
        f"torch.cuda {yes_no(item.cuda)}, torch.mps {yes_no(item.mps)}, "
        f"backends {backends}{reason_of(item.reason)}"
    )


def busy_line(device: DeviceUsage) -> str:
    """Return how busy a device was."""
    name = device.uuid or f"device {word(device.index)}"
    free, busy = device.memory_free_mib, device.utilisation_percent
    return (
        f"{device.accelerator.value} {plain(name)}: "
        f"memory free {UNKNOWN if free is None else f'{free} MiB'}, "
        f"utilisation {UNKNOWN if busy is None else f'{busy} %'}"
    )


def resources_line(resources: Any) -> str:
    """Return what an allocation holds."""
    unit = "core" if resources.cpu_milli == _CORE else "cores"
    parts = [f"{cores(resources.cpu_milli)} {unit}", gib(resources.memory_bytes)]
    if resources.devices:
        parts.append("GPU " + ", ".join(map(plain, resources.devices)))
    if resources.metal:
        parts.append("the Mac's GPU")
    return ", ".join(parts)
