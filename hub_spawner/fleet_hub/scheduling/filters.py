"""Can this machine ever run this request through this driver?  One check a function.

Each filter judges one machine by what does not change from minute to minute, and
returns an explanation with numbers, or None.  What nobody knows fails closed: an
unknown amount is neither zero need nor free capacity, and says so.  Yet no "not known"
hides a "never": what is known of a machine that has not told everything yet is said,
so that nobody is offered to wait for a machine that they may never use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fleet_contracts.amounts import describe_bytes, format_cores
from fleet_contracts.capabilities import DeviceKind
from fleet_contracts.catalog import OperatingSystem, Relation, TrustPolicy
from fleet_contracts.devices import MACOS
from fleet_contracts.placement_facts import PlacementFacts
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.support import is_scheduled
from fleet_contracts.trust import trust_refusal
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.device_filters import device_refusal, devices_of_kind
from fleet_hub.scheduling.snapshot import Sharing
from fleet_hub.scheduling.versions import is_older


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One request on one machine through one driver; state and holders aside."""

    request: Request
    driver: DriverName
    facts: PlacementFacts
    labels: Mapping[str, str]
    sharing: Sharing
    relation: Relation
    trust: TrustPolicy


Filter = Callable[[Candidate], Explanation | None]

NEVER_LOOKED_FOR: Final = "nothing on it looks for that"
"""What a machine says whose probes are done and know no such capability."""
_TORCH: Final = {"torch.cuda": DeviceKind.CUDA, "torch.mps": DeviceKind.MPS}
_OS_NAMES: Final = {OperatingSystem.LINUX: "linux", OperatingSystem.MACOS: MACOS}


def refusal_of(candidate: Candidate) -> Explanation | None:
    """Return why the machine can never run it, or what is not known; None: it can.

    Of a machine without facts only its record and the catalog are asked.
    """
    if candidate.facts.known:
        return surest(check(candidate) for check in FILTERS)
    return surest(check(candidate) for check in _OF_THE_RECORD) or _unknown("host")


def surest(answers: Iterable[Explanation | None]) -> Explanation | None:
    """Return the first "no" that is known, else the first that is not; None: no "no"."""
    unknown = None
    for found in answers:
        if found is None:
            continue
        if found.reason is not Reason.CAPABILITIES_UNKNOWN:
            return found
        unknown = unknown or found
    return unknown


def has_the_accelerator(candidate: Candidate) -> Explanation | None:
    """Reject a machine without any device of the class's kind."""
    wanted = candidate.request.chosen.accelerator
    if wanted is Accelerator.CPU:
        return None
    if devices_of_kind(candidate.facts, wanted):
        return None
    why = candidate.facts.unlisted.get(DeviceKind(wanted.value))
    if why is not None or not candidate.facts.settled:
        return _unknown(wanted.value, why)
    return Explanation(reason=Reason.ACCELERATOR_MISMATCH, subject=wanted.value)


def suits_the_system(candidate: Candidate) -> Explanation | None:
    """Reject a machine whose operating system the profile was not made for."""
    if runs_on(candidate.request, candidate.facts):
        return None
    systems = candidate.request.profile.requirements.os
    return Explanation(
        reason=Reason.OS_MISMATCH,
        subject=", ".join(system.value for system in systems),
        detail=f"this machine runs {candidate.facts.os}",
    )


def runs_on(request: Request, facts: PlacementFacts) -> bool:
    """Return whether a machine with *facts* has a system that the profile is made for."""
    systems = request.profile.requirements.os
    return not systems or facts.os in {_OS_NAMES[system] for system in systems}


def has_a_runtime(candidate: Candidate) -> Explanation | None:
    """Reject a driver that no runtime of the profile serves for this class."""
    return candidate.request.selections[candidate.driver].refusal


def is_supported(candidate: Candidate) -> Explanation | None:
    """Reject a combination that the support matrix does not let be scheduled."""
    accelerator = candidate.request.chosen.accelerator
    if is_scheduled(accelerator, candidate.driver):
        return None
    return Explanation(
        reason=Reason.SUPPORT_MISSING,
        subject=f"{accelerator.value} through the {candidate.driver.value} driver",
    )


def has_the_driver(candidate: Candidate) -> Explanation | None:
    """Reject a machine on which the driver cannot be used."""
    usable = candidate.facts.drivers.get(candidate.driver)
    if usable:
        return None
    fault = candidate.facts.driver_faults.get(candidate.driver)
    told = fault and fault.replace("_", " ")
    if usable is None and (
        candidate.driver in candidate.facts.drivers or not candidate.facts.settled
    ):
        # While the probes run there is nothing to be said of their tools.
        why = told if candidate.facts.settled else None
        return _unknown(candidate.driver.value, why)
    if fault == Reason.SANDBOX_MISSING:
        return Explanation(reason=Reason.SANDBOX_MISSING)
    return Explanation(
        reason=Reason.DRIVER_UNAVAILABLE, subject=candidate.driver.value, detail=told
    )


def knows_the_environment(candidate: Candidate) -> Explanation | None:
    """Reject a machine that said which environments it has, and has not this one."""
    known = candidate.facts.driver_environments.get(candidate.driver)
    ref = candidate.request.selections[candidate.driver].ref
    if known is None or ref in known:
        return None
    return Explanation(
        reason=Reason.CAPABILITY_MISSING, subject="the profile's environment"
    )


def hands_out_devices(candidate: Candidate) -> Explanation | None:
    """Reject a container engine that cannot give a container the class's devices."""
    wanted = candidate.request.chosen.accelerator
    if candidate.driver is not DriverName.DOCKER or wanted is Accelerator.CPU:
        return None
    capability = "container.docker.gpu"
    known = candidate.facts.has(capability)
    if known is None:
        return _unknown(capability)
    if known:
        return None
    return Explanation(reason=Reason.CAPABILITY_MISSING, subject=capability)


def has_the_capabilities(candidate: Candidate) -> Explanation | None:
    """Reject a machine that lacks a capability which runtime or profile requires."""
    selection = candidate.request.selections[candidate.driver]
    runtime = selection.runtime
    required = dict.fromkeys(candidate.request.profile.requirements.capabilities)
    # Without a runtime this is not asked: see the order of ``FILTERS``.
    required |= dict.fromkeys(runtime.requires if runtime is not None else ())
    return surest(
        _judge_capability(candidate, capability, selection.ref)
        for capability in required
    )


def has_the_frameworks(candidate: Candidate) -> Explanation | None:
    """Reject an environment that is known to hold an older framework.

    An environment that is not built yet is unknown: it may be prepared, and is
    verified before the start.
    """
    requirements = candidate.request.profile.requirements
    wanted = dict(requirements.frameworks)
    if requirements.interpreter is not None:
        wanted["python"] = requirements.interpreter
    ref = candidate.request.selections[candidate.driver].ref
    installed = candidate.facts.frameworks.get(ref or "", {})
    for name, least in wanted.items():
        version = installed.get(name)
        if version is not None and is_older(version, least):
            return Explanation(
                reason=Reason.CAPABILITY_MISSING,
                subject=f"{name} {least}",
                detail=f"the environment has {name} {version}",
            )
    return None


def has_suitable_devices(candidate: Candidate) -> Explanation | None:
    """Reject a machine whose devices are too few, too small, too old or others."""
    return device_refusal(candidate.facts, candidate.request)


def is_large_enough(candidate: Candidate) -> Explanation | None:
    """Reject a machine that is too small even when nothing else runs on it."""
    chosen, facts = candidate.request.chosen, candidate.facts
    cores = _too_small(
        Reason.CPU_TOO_SMALL, chosen.cpu_milli, facts.cores_milli, "milli_cores"
    )
    memory = _too_small(
        Reason.MEMORY_TOO_SMALL, chosen.memory_bytes, facts.memory_bytes, "bytes"
    )
    return surest(
        (
            cores and as_lent(cores, facts.whole_cores_milli),
            memory and as_lent(memory, facts.whole_memory_bytes),
        )
    )


def has_the_labels(candidate: Candidate) -> Explanation | None:
    """Reject a machine whose record lacks a label, or has another value for it."""
    lacking = {
        name: value
        for name, value in candidate.request.chosen.labels.items()
        if candidate.labels.get(name) != value
    }
    if not lacking:
        return None
    return Explanation(
        reason=Reason.LABEL_MISMATCH,
        subject=", ".join(f"{name}={value}" for name, value in lacking.items()),
        detail=_instead_of(lacking, candidate.labels),
    )


def is_trusted(candidate: Candidate) -> Explanation | None:
    """Reject a machine that may not serve this principal through this driver."""
    return trust_refusal(
        candidate.relation,
        candidate.driver,
        policy=candidate.trust,
        admin_allows=candidate.sharing.admin_allows,
        owner_allows=candidate.sharing.owner_allows,
    )


_OF_THE_RECORD: Final[tuple[Filter, ...]] = (
    has_a_runtime,
    is_supported,
    has_the_labels,
    is_trusted,
)
"""What needs no word of the machine itself."""

FILTERS: Final[tuple[Filter, ...]] = (
    has_the_accelerator,
    suits_the_system,
    has_a_runtime,
    has_the_driver,
    knows_the_environment,
    is_supported,
    hands_out_devices,
    has_the_capabilities,
    has_the_frameworks,
    has_suitable_devices,
    is_large_enough,
    has_the_labels,
    # Last, so that "not allowed" is said of machines that could run it, and of no
    # other: what a guest may not use anyway does not hide a machine that is missing.
    is_trusted,
)
"""What every machine of one signature answers alike, in the order of asking."""


def _too_small(
    reason: Reason, wanted: int, capacity: int | None, unit: str
) -> Explanation | None:
    if wanted and capacity is None:
        return _unknown(reason.value.removesuffix("_too_small"))
    if capacity is None or wanted <= capacity:
        return None
    return Explanation(reason=reason, requested=wanted, capacity=capacity, unit=unit)


def _instead_of(lacking: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Return what a machine with *labels* has instead of those that are *lacking*."""
    if len(lacking) == 1:
        value = labels.get(next(iter(lacking)))
        return "it has no such label" if value is None else f"it has {value}"
    there = [f"{name}={labels[name]}" for name in lacking if name in labels]
    absent = [f"no label called {name}" for name in lacking if name not in labels]
    return f"it has {', '.join(there + absent)}"


def as_lent(found: Explanation, whole: int | None) -> Explanation:
    """Return *found* with whose word it is, where the machine itself is large enough."""
    if whole is None or whole < (found.requested or 0):
        return found
    is_memory = found.unit == "bytes"
    has = describe_bytes(whole) if is_memory else f"{format_cores(whole)} cores"
    return found.model_copy(
        update={"detail": f"the machine has {has}, and its owner lends no more"}
    )


def _judge_capability(
    candidate: Candidate, capability: str, ref: str | None
) -> Explanation | None:
    if capability.startswith("torch.") and candidate.driver is not DriverName.NATIVE:
        # What a container's torch can do is not told by any torch of the machine.
        return None
    known = candidate.facts.has(capability, environment=ref)
    if known:
        return None
    if known is None and capability.startswith("torch."):
        # A fact of (machine, environment): unknown until the environment is built.
        return None
    if capability in _TORCH and _is_out_of_order(candidate.facts, _TORCH[capability]):
        # Torch reaches no device of that kind either, for now.
        kind = _TORCH[capability]
        return _unknown(kind.value, candidate.facts.unlisted.get(kind))
    if known is None and not _is_never_told(candidate.facts, capability, ref):
        return _unknown(capability)
    return Explanation(
        reason=Reason.CAPABILITY_MISSING,
        subject=capability,
        detail=NEVER_LOOKED_FOR if known is None else None,
    )


def _is_out_of_order(facts: PlacementFacts, kind: DeviceKind) -> bool:
    """Return whether devices of *kind* are there, and none of them works now."""
    found = [device for device in facts.devices if device.accelerator is kind]
    broken = [device for device in found if device.healthy is False]
    return kind in facts.unlisted or bool(found and found == broken)


def _is_never_told(facts: PlacementFacts, capability: str, ref: str | None) -> bool:
    """Return whether every probe is done, and none of them knows such a capability.

    What is told of environments is not known of one that is yet to be built.
    """
    if capability in facts.capabilities or not facts.settled:
        return False
    if not capability.startswith("distributed."):
        return True
    return capability not in facts.environments.get(ref or "", {capability: None})


def _unknown(subject: str, why: str | None = None) -> Explanation:
    return Explanation(reason=Reason.CAPABILITIES_UNKNOWN, subject=subject, detail=why)
