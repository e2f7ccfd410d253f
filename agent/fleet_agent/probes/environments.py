"""What each workload environment has and can do here; torch is asked once per change."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fleet_agent.probes.answers import Answer, failed
from fleet_agent.probes.flights import Landed
from fleet_agent.probes.frameworks import FrameworkProbe, Package
from fleet_agent.probes.settings import DetectSettings, Environment
from fleet_agent.probes.torch.probe import TorchProbe
from fleet_contracts.capabilities import ProbeStatus, TorchFacts


_METADATA_SECONDS: Final = 15.0
_TORCH_SECONDS: Final = 120.0
_SETTLED: Final = (
    ProbeStatus.OK,
    ProbeStatus.OK_WITH_WARNINGS,
    ProbeStatus.TOOL_ABSENT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentFacts:
    """One environment's packages, and what its torch said; None was not asked."""

    environment: Environment
    packages: tuple[Package, ...] | None
    torch: Answer | None


async def environment_facts(
    settings: DetectSettings, *, driver_versions: tuple[str, ...]
) -> tuple[EnvironmentFacts, ...]:
    """Return the facts of each environment, one after the other.

    One at a time: each import of torch may take gigabytes.
    """
    return tuple(
        [await _one(settings, item, driver_versions) for item in settings.environments]
    )


async def _one(
    settings: DetectSettings, environment: Environment, driver_versions: tuple[str, ...]
) -> EnvironmentFacts:
    probe = FrameworkProbe(ask=settings.ask, interpreter=environment.interpreter)
    landed: Landed[Any] = await settings.memory.flights.run(
        f"packages {environment.interpreter}", probe.observe, seconds=_METADATA_SECONDS
    )
    packages: tuple[Package, ...] | None = landed.value
    torch = None
    if packages is not None and settings.torch:
        torch = await _torch(settings, environment, packages, driver_versions)
    return EnvironmentFacts(environment=environment, packages=packages, torch=torch)


async def _torch(
    settings: DetectSettings,
    environment: Environment,
    packages: tuple[Package, ...],
    driver_versions: tuple[str, ...],
) -> Answer | None:
    if not any(package.name == "torch" for package in packages):
        return _without_torch()
    stamp = await asyncio.to_thread(_stamp, environment.interpreter)
    key = (environment.interpreter, stamp, driver_versions)
    remembered: Answer | None = settings.memory.torch.get(key)
    if remembered is not None:
        return remembered
    if not settings.gpu_is_free():
        return None
    probe = TorchProbe(
        ask=settings.ask, interpreter=environment.interpreter, seconds=_TORCH_SECONDS
    )
    landed: Landed[Answer] = await settings.memory.flights.run(
        f"torch {environment.interpreter}", probe.observe, seconds=_TORCH_SECONDS + 10
    )
    answer = landed.value or failed(ProbeStatus.TIMEOUT, "tool_timeout")
    # A crash or a hang may pass; what torch said in peace stays true.
    if answer.status in _SETTLED:
        settings.memory.torch[key] = answer
    return answer


def _without_torch() -> Answer:
    facts = TorchFacts(
        status=ProbeStatus.TOOL_ABSENT,
        reason="torch_not_installed",
        cuda=False,
        mps=False,
    )
    return Answer(status=facts.status, reason=facts.reason, torch=facts)


def _stamp(interpreter: str) -> tuple[str, tuple[tuple[str, int, int], ...]]:
    """Return what changes when torch, its driver or the boot does."""
    prefix = Path(interpreter).parent.parent
    found = []
    for path in sorted(prefix.glob("[lL]ib*/**/site-packages/torch/version.py")):
        try:
            info = path.stat()
        except OSError:
            continue
        found.append((str(path), info.st_size, info.st_mtime_ns))
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        boot = ""
    return boot, tuple(found)
