"""Who may hold which device: whole GPUs by UUID, and a Mac's GPU by one at a time.

The Metal rule: every native workload on macOS holds the Mac's GPU exclusively,
whatever class it asked for, from ``placed`` until its stop is confirmed.  The sandbox
cannot take Metal away from a user's code, so a CPU notebook could compute beside a GPU
notebook, and two Metal processes can bring the whole Mac down.  Containers on a Mac
run in a virtual machine without Metal and hold nothing of it.

One exception, off by default: where the machine's owner allows it, and a probe saw on
this very build of macOS that the sandbox does keep CPU notebooks from the GPU
(``placement_facts``), a CPU notebook holds nothing of it.  Unknown is as good as no.

The controller asks before it places, and the agent asks again before it accepts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Accelerator, DriverName, Resources


MACOS: Final = "darwin"
"""What a Mac's agent reports as its operating system."""


def reserves_metal(
    *,
    os: str | None,
    driver: DriverName,
    accelerator: Accelerator,
    fenced: bool = False,
) -> bool:
    """Return whether such a workload holds the Mac's GPU, asked for or not.

    An unknown operating system may be a Mac's: it counts as one.  *fenced*: CPU
    notebooks of this Mac were seen to be kept from its GPU, and its owner lets them
    share.
    """
    if accelerator is Accelerator.MPS:
        return True
    if driver is not DriverName.NATIVE or os not in {MACOS, None}:
        return False
    return not (fenced and os == MACOS and accelerator is Accelerator.CPU)


def held_here(
    resources: Resources, *, os: str | None, driver: DriverName, fenced: bool
) -> Resources:
    """Return *resources* as a machine of this *os* must count them now.

    A notebook that was started behind a fence that is not known to hold any more may
    compute on the GPU: it counts as a holder until it ends.
    """
    if resources.metal or os != MACOS:
        return resources
    # What asked for the GPU holds it by name; the rest asked for CPU.
    metal = reserves_metal(
        os=os, driver=driver, accelerator=Accelerator.CPU, fenced=fenced
    )
    return resources.model_copy(update={"metal": True}) if metal else resources


def device_conflict(wanted: Resources, held: Iterable[Resources]) -> Explanation | None:
    """Return why *wanted* cannot be held beside *held*; None: it can.

    Only devices are judged: they are exclusive, amounts add up.
    """
    for other in held:
        if wanted.metal and other.metal:
            return Explanation(reason=Reason.METAL_BUSY)
        taken = set(wanted.devices) & set(other.devices)
        if taken:
            return Explanation(
                reason=Reason.GPU_BUSY, requested=len(wanted.devices), unit="devices"
            )
    return None


def visible_devices(resources: Resources) -> str:
    """Return the value of ``CUDA_VISIBLE_DEVICES``: UUIDs, or empty for none.

    It is always set, so that a CPU job cannot take a GPU by accident, and so that the
    agent's own value does not leak into a job.
    """
    return ",".join(resources.devices)
