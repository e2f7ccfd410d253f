"""Puts the probes' answers together into one picture of this machine.

``detect_fast`` returns in well under a second with what needs no slow tool: the host,
its sandboxes, its address, and a Mac's GPU.  The agent says hello with it, so that
registration waits for nothing; ``settled`` is False, and what is missing is unknown.
``detect`` asks everything and may take minutes where torch or a driver is slow;
``pictures`` yields each better picture on the way.  Call them again periodically and
on demand, always with the same ``settings.memory``, and report a picture only when
``same_facts`` says that it differs from the last one::

    settings = DetectSettings(state_dir=str(state_dir), memory=Memory())
    hello(await detect_fast(settings))
    async for picture in pictures(settings):
        if not same_facts(picture, last):
            report(picture)

None of them raises for anything that a tool does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from fleet_agent.probes.amd.probe import AmdProbe
from fleet_agent.probes.apple.probe import AppleProbe
from fleet_agent.probes.assemble import Seen, assemble
from fleet_agent.probes.containers import ContainerProbe
from fleet_agent.probes.environments import environment_facts
from fleet_agent.probes.flights import Landed
from fleet_agent.probes.host.probe import HostProbe, HostSighting
from fleet_agent.probes.launchers import LauncherProbe
from fleet_agent.probes.network import NetworkProbe
from fleet_agent.probes.nvidia.probe import NvidiaProbe
from fleet_agent.probes.sandbox import SandboxProbe
from fleet_agent.probes.settings import DetectSettings
from fleet_contracts.capabilities import WorkerCapabilities


# A probe bounds its own tools; these bound the probe, whatever it waits for.
_HOST_SECONDS: Final = 16.0
_FAST_SECONDS: Final = 12.0
_NVIDIA_SECONDS: Final = 100.0
_AMD_SECONDS: Final = 80.0
_SLOW_SECONDS: Final = 40.0


async def detect_fast(settings: DetectSettings) -> WorkerCapabilities:
    """Return what can be known at once; everything else is unknown, not absent."""
    return assemble(settings, await _look_fast(settings), settled=False)


async def detect(settings: DetectSettings) -> WorkerCapabilities:
    """Return the whole picture, once every probe has answered or given up."""
    return [picture async for picture in pictures(settings)][-1]


async def pictures(settings: DetectSettings) -> AsyncIterator[WorkerCapabilities]:
    """Yield the picture as it grows; only the last one is ``settled``."""
    settings = await _with_built_environments(settings)
    seen = await _look_fast(settings)
    yield assemble(settings, seen, settled=False)
    seen = await _look_at_hardware(settings, seen)
    if settings.environments:
        yield assemble(settings, seen, settled=False)
        seen = seen.with_environments(
            await environment_facts(settings, driver_versions=seen.driver_versions())
        )
    yield assemble(settings, seen, settled=True)


async def _with_built_environments(settings: DetectSettings) -> DetectSettings:
    if settings.find_environments is None:
        return settings
    try:
        built = await settings.find_environments()
    except Exception:  # noqa: BLE001 - what torch can do is then unknown, and nothing else
        return settings
    return replace(settings, environments=(*settings.environments, *built))


async def _look_fast(settings: DetectSettings) -> Seen:
    ask, flights = settings.ask, settings.memory.flights
    host: Landed[HostSighting] = await flights.run(
        "host",
        HostProbe(ask=ask, state_dir=settings.state_dir, now=settings.now).observe,
        seconds=_HOST_SECONDS,
    )
    system = host.value.facts.os.value if host.value else None
    sandbox, network = await asyncio.gather(
        flights.run(
            "sandbox",
            SandboxProbe(ask=ask, system=system).observe,
            seconds=_FAST_SECONDS,
        ),
        flights.run("network", NetworkProbe(ask=ask).observe, seconds=_FAST_SECONDS),
    )
    return Seen(at=settings.now(), host=host, sandbox=sandbox, network=network)


async def _look_at_hardware(settings: DetectSettings, seen: Seen) -> Seen:
    ask, flights = settings.ask, settings.memory.flights
    context = seen.context()
    nvidia = NvidiaProbe(ask=ask, pci_ids=seen.pci_ids, files=seen.gpu_files("nvidia"))
    amd_probe = AmdProbe(ask=ask, files=seen.gpu_files("kfd"))
    apple = AppleProbe(ask=ask, context=context)
    on_mac = context.get("os") == "darwin"
    interpreters = tuple(item.interpreter for item in settings.environments)
    nvidia_seen, amd, containers, launchers, apple_seen = await asyncio.gather(
        flights.run("nvidia", nvidia.observe, seconds=_NVIDIA_SECONDS),
        flights.run("amd", amd_probe.observe, seconds=_AMD_SECONDS),
        flights.run(
            "containers",
            ContainerProbe(
                ask=ask, host=settings.engine_host, can_keep_in=settings.can_keep_in
            ).observe,
            seconds=_SLOW_SECONDS,
        ),
        flights.run(
            "launchers",
            LauncherProbe(ask=ask, interpreters=interpreters).observe,
            seconds=_SLOW_SECONDS,
        ),
        flights.run(
            "apple", apple.observe if on_mac else _nothing, seconds=_SLOW_SECONDS
        ),
    )
    return seen.with_hardware(
        at=settings.now(),
        nvidia=nvidia_seen,
        amd=amd,
        containers=containers,
        launchers=launchers,
        apple=apple_seen,
    )


def _nothing() -> None:
    """Stand for a probe that this system has no use for."""
