"""How busy this machine is now: cheap enough to be asked all the time, and no fact."""

from __future__ import annotations

from typing import Final

from fleet_agent.probes.flights import Landed
from fleet_agent.probes.host.probe import HostProbe
from fleet_agent.probes.nvidia.probe import NvidiaProbe, NvidiaSighting
from fleet_agent.probes.settings import DetectSettings
from fleet_contracts.capabilities import (
    DeviceKind,
    DeviceUsage,
    Usage,
    WorkerCapabilities,
)


_HOST_SECONDS: Final = 5.0
_NVIDIA_SECONDS: Final = 20.0
_MOST_DEVICES: Final = 256
"""What no machine exceeds: an observation travels with each heartbeat."""


async def look_at_devices(settings: DetectSettings) -> NvidiaSighting | None:
    """Return what nvidia-smi says now of the devices; None: it did not say in time."""
    flights = settings.memory.flights
    landed: Landed[NvidiaSighting] = await flights.run(
        "nvidia usage", NvidiaProbe(ask=settings.ask).look, seconds=_NVIDIA_SECONDS
    )
    return landed.value


async def observe(
    settings: DetectSettings, picture: WorkerCapabilities
) -> Usage | None:
    """Return how busy the machine of *picture* is; None: it did not say in time.

    A tool is asked only about devices that are known and well: nvidia-smi starts up
    the cards that it looks at, and a broken one is left to detection.
    """
    probe = HostProbe(ask=settings.ask, state_dir=settings.state_dir, now=settings.now)
    flights = settings.memory.flights
    host: Landed[Usage] = await flights.run(
        "host usage", probe.usage, seconds=_HOST_SECONDS
    )
    if host.value is None:
        return None
    if not _has_nvidia(picture):
        return host.value
    seen = await look_at_devices(settings)
    return with_devices(host.value, (seen.usage if seen else ())[:_MOST_DEVICES])


def with_devices(host: Usage, busy: tuple[DeviceUsage, ...]) -> Usage:
    """Return *host* with what nvidia-smi told of the devices, and that it did."""
    if not busy:
        return host
    source = f"{host.observed.source}, nvidia-smi"
    observed = host.observed.model_copy(update={"source": source})
    return host.model_copy(update={"devices": busy, "observed": observed})


def _has_nvidia(picture: WorkerCapabilities) -> bool:
    return any(
        device.accelerator is DeviceKind.CUDA and device.healthy is not False
        for device in picture.accelerators
    )
