"""Which devices of a machine suit a class, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fleet_contracts.capabilities import DeviceKind
from fleet_contracts.catalog import ResourceClass
from fleet_contracts.placement_facts import PlaceableDevice, PlacementFacts
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.support import CUDA_DRIVERS
from fleet_contracts.workloads import Accelerator
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.versions import is_older, version_key


Narrow = Callable[[PlaceableDevice, ResourceClass], bool]


def devices_of_kind(
    facts: PlacementFacts, accelerator: Accelerator
) -> tuple[PlaceableDevice, ...]:
    """Return the machine's devices of this kind, whatever their health."""
    if accelerator is Accelerator.CPU:
        return ()
    kind = DeviceKind(accelerator.value)
    return tuple(device for device in facts.devices if device.accelerator is kind)


def suits(device: PlaceableDevice, chosen: ResourceClass) -> bool:
    """Return whether *device* is all that *chosen* asks of one; health aside."""
    return all(judge(device, chosen) for judge in (is_named, computes, is_large))


def serving(
    facts: PlacementFacts, chosen: ResourceClass
) -> tuple[PlaceableDevice, ...]:
    """Return the machine's devices that serve *chosen*, once they are healthy."""
    return tuple(
        device
        for device in devices_of_kind(facts, chosen.accelerator)
        if suits(device, chosen) and _is_whole(device, chosen)
    )


def device_refusal(facts: PlacementFacts, request: Request) -> Explanation | None:
    """Return why the machine's devices can never serve *request*; None: they can.

    Where there may be more than are listed, "never" would be a guess.
    """
    if request.chosen.accelerator is Accelerator.CPU:
        return None
    refusal = _refusal(facts, request)
    kind = request.chosen.accelerator
    why = facts.unlisted.get(DeviceKind(kind.value))
    if refusal is None or why is None:
        return refusal
    return _unknown(kind.value, why)


def _refusal(facts: PlacementFacts, request: Request) -> Explanation | None:
    chosen = request.chosen
    devices = devices_of_kind(facts, chosen.accelerator)
    if len(devices) < chosen.devices:
        return _too_few(facts, chosen, len(devices))
    for narrow, explain in _STEPS:
        left = tuple(device for device in devices if narrow(device, chosen))
        if len(left) < chosen.devices:
            return explain(devices, chosen)
        devices = left
    return _old_gpu_driver(devices, request)


def is_named(device: PlaceableDevice, chosen: ResourceClass) -> bool:
    """Return whether the device's model is one that the class names, or it names none.

    ``A100`` covers ``NVIDIA A100-SXM4-80GB``: the words of the wanted name, in order.
    """
    if not chosen.device_models:
        return True
    words = _words(device.name or "")
    return any(_contains(words, _words(model)) for model in chosen.device_models)


def computes(device: PlaceableDevice, chosen: ResourceClass) -> bool:
    """Return whether the device has the compute capability that the class asks for."""
    least = chosen.compute_capability
    return least is None or not is_older(device.compute_capability or "", least)


def is_large(device: PlaceableDevice, chosen: ResourceClass) -> bool:
    """Return whether the device has the memory that the class asks for."""
    least = chosen.device_memory_bytes
    return not least or (device.memory_bytes or 0) >= least


def _is_whole(device: PlaceableDevice, chosen: ResourceClass) -> bool:
    """Return whether it could be handed out, once it is known to be healthy."""
    return device.usable or device.healthy is not True


def _other_model(
    devices: Sequence[PlaceableDevice], chosen: ResourceClass
) -> Explanation:
    if _might_do(devices, chosen, is_named, lambda device: device.name):
        return _unknown("device_model")
    names = sorted({device.name for device in devices if device.name is not None})
    suitable = sum(is_named(device, chosen) for device in devices)
    if suitable:
        return _few(chosen, suitable, f"it has {', '.join(names)}")
    return Explanation(
        reason=Reason.DEVICE_MODEL_MISMATCH,
        subject=", ".join(chosen.device_models),
        requested=chosen.devices,
        detail=f"it has {', '.join(names)}",
    )


def _low_capability(
    devices: Sequence[PlaceableDevice], chosen: ResourceClass
) -> Explanation:
    if _might_do(devices, chosen, computes, lambda device: device.compute_capability):
        return _unknown("compute_capability")
    suitable = sum(computes(device, chosen) for device in devices)
    if suitable:
        return _few(chosen, suitable, "the others have a lower compute capability")
    known = (device.compute_capability or "" for device in devices)
    best = max(known, key=lambda text: version_key(text) or (0,))
    return Explanation(
        reason=Reason.COMPUTE_CAPABILITY_TOO_LOW,
        subject=chosen.compute_capability,
        requested=chosen.devices,
        detail=f"it has {best}",
    )


def _little_memory(
    devices: Sequence[PlaceableDevice], chosen: ResourceClass
) -> Explanation:
    if _might_do(devices, chosen, is_large, lambda device: device.memory_bytes):
        return _unknown("device_memory")
    known = sorted((device.memory_bytes or 0 for device in devices), reverse=True)
    return Explanation(
        reason=Reason.VRAM_TOO_SMALL,
        requested=chosen.device_memory_bytes,
        # What the weakest of the best devices has: all of them must be large enough.
        capacity=known[chosen.devices - 1],
        unit="bytes",
    )


def _not_whole(
    devices: Sequence[PlaceableDevice], chosen: ResourceClass
) -> Explanation:
    whole = [device for device in devices if _is_whole(device, chosen)]
    return _few(chosen, len(whole), "the others cannot be handed out whole")


def _might_do(
    devices: Sequence[PlaceableDevice],
    chosen: ResourceClass,
    suits_it: Narrow,
    told: Callable[[PlaceableDevice], object],
) -> bool:
    """Return whether enough suit, if those that do not tell turned out to."""
    possible = sum(
        told(device) is None or suits_it(device, chosen) for device in devices
    )
    return possible >= chosen.devices


_STEPS: Final[
    tuple[
        tuple[
            Narrow,
            Callable[[Sequence[PlaceableDevice], ResourceClass], Explanation],
        ],
        ...,
    ]
] = (
    (is_named, _other_model),
    (computes, _low_capability),
    (is_large, _little_memory),
    (_is_whole, _not_whole),
)


def _too_few(facts: PlacementFacts, chosen: ResourceClass, found: int) -> Explanation:
    if not facts.settled:
        return _unknown(chosen.accelerator.value)
    return _few(chosen, found)


def _few(chosen: ResourceClass, found: int, detail: str | None = None) -> Explanation:
    return Explanation(
        reason=Reason.GPU_COUNT_TOO_SMALL,
        requested=chosen.devices,
        capacity=found,
        unit="devices",
        detail=detail,
    )


def cuda_floor(request: Request) -> str | None:
    """Return the oldest GPU driver that runs the profile's CUDA; None: nobody knows."""
    cuda = request.profile.requirements.cuda or ""
    return CUDA_DRIVERS.get((version_key(cuda) or (0,))[0])


def _old_gpu_driver(
    devices: Sequence[PlaceableDevice], request: Request
) -> Explanation | None:
    cuda = request.profile.requirements.cuda
    if cuda is None or request.chosen.accelerator is not Accelerator.CUDA:
        return None
    floor = cuda_floor(request)
    if floor is None:
        return _unknown(f"cuda {cuda}")
    versions = {device.driver_version for device in devices}
    if None in versions:
        return _unknown("gpu_driver")
    old = sorted(
        version for version in versions if version and is_older(version, floor)
    )
    if not old:
        return None
    return Explanation(
        reason=Reason.DRIVER_TOO_OLD,
        subject=f"cuda {cuda}",
        detail=f"CUDA {cuda} needs GPU driver {floor}; it has {old[0]}",
    )


def _words(text: str) -> list[str]:
    return text.lower().replace("-", " ").replace("_", " ").split()


def _contains(words: list[str], wanted: list[str]) -> bool:
    length = len(wanted)
    return bool(wanted) and any(
        words[start : start + length] == wanted
        for start in range(len(words) - length + 1)
    )


def _unknown(subject: str, why: str | None = None) -> Explanation:
    return Explanation(reason=Reason.CAPABILITIES_UNKNOWN, subject=subject, detail=why)
