"""How far each way of computing is supported: what placement consults, and nothing else.

The table is edited by hand, on purpose: every change of what the project claims is a
deliberate act, and ``docs/support-evidence.yaml`` must name what the claim rests on.
``implemented`` is scheduled, and never advertised as tested.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from fleet_contracts.workloads import Accelerator, DriverName


class SupportLevel(StrEnum):
    """What the project can say about a combination."""

    TESTED = "tested"
    """Continuous integration runs it."""
    HARDWARE_VALIDATED = "hardware-validated"
    """A person ran its hardware test on the real thing, and the run is recorded."""
    IMPLEMENTED = "implemented"
    """An executable path exists; it has not run on this hardware."""
    DETECTION_ONLY = "detection-only"
    """Seen and shown, and nothing is placed on it."""
    UNSUPPORTED = "unsupported"


class Scope(StrEnum):
    """How many machines or processes one workload spans."""

    INDEPENDENT = "independent"
    """One workload on one machine."""
    DISTRIBUTED = "distributed"
    """One workload over several processes or machines."""


SCHEDULED: Final = frozenset(
    {SupportLevel.TESTED, SupportLevel.HARDWARE_VALIDATED, SupportLevel.IMPLEMENTED}
)
"""The levels at which placement may choose a combination."""

_TESTED, _IMPLEMENTED = SupportLevel.TESTED, SupportLevel.IMPLEMENTED
_DETECTION, _UNSUPPORTED = SupportLevel.DETECTION_ONLY, SupportLevel.UNSUPPORTED
_CPU, _CUDA = Accelerator.CPU, Accelerator.CUDA
_MPS, _ROCM = Accelerator.MPS, Accelerator.ROCM
_NATIVE, _DOCKER = DriverName.NATIVE, DriverName.DOCKER
_SIMULATION, _KUBERNETES = DriverName.SIMULATION, DriverName.KUBERNETES

INDEPENDENT: Final[dict[Accelerator, dict[DriverName, SupportLevel]]] = {
    _CPU: {
        _NATIVE: _TESTED,
        _DOCKER: _TESTED,
        _SIMULATION: _TESTED,
        _KUBERNETES: _UNSUPPORTED,
    },
    _CUDA: {
        _NATIVE: _IMPLEMENTED,
        _DOCKER: _IMPLEMENTED,
        _SIMULATION: _TESTED,
        _KUBERNETES: _UNSUPPORTED,
    },
    _MPS: {
        _NATIVE: _IMPLEMENTED,
        # Containers on a Mac run in a virtual machine without Metal.
        _DOCKER: _UNSUPPORTED,
        _SIMULATION: _TESTED,
        _KUBERNETES: _UNSUPPORTED,
    },
    _ROCM: {
        _NATIVE: _DETECTION,
        _DOCKER: _DETECTION,
        _SIMULATION: _DETECTION,
        _KUBERNETES: _DETECTION,
    },
}
"""One workload on one machine.  Nothing distributed is built: all of that is unsupported."""

CUDA_DRIVERS: Final = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
"""The oldest Linux GPU driver that runs each major CUDA version (NVIDIA's table)."""


def level(
    accelerator: Accelerator | str,
    driver: DriverName | str,
    scope: Scope | str = Scope.INDEPENDENT,
) -> SupportLevel:
    """Return how far *accelerator* through *driver* is supported; unknown words are not."""
    if scope != Scope.INDEPENDENT:
        return SupportLevel.UNSUPPORTED
    if accelerator not in list(Accelerator) or driver not in list(DriverName):
        return SupportLevel.UNSUPPORTED
    return INDEPENDENT[Accelerator(accelerator)][DriverName(driver)]


def is_scheduled(
    accelerator: Accelerator | str,
    driver: DriverName | str,
    scope: Scope | str = Scope.INDEPENDENT,
) -> bool:
    """Whether placement may choose this combination."""
    return level(accelerator, driver, scope) in SCHEDULED
