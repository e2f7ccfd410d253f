"""Can what was started reach the GPUs that it was given?

An environment that cannot falls back to the CPU, and says nothing.  So the driver's own
library is asked, where the notebook will run and before anybody is told that it does:
that needs no framework, and proves that device files, library and kernel's driver are
there and fit.
"""

from __future__ import annotations

from typing import Final

from fleet_agent.drivers.base import DriverError
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Resources


UNREACHED: Final = "fleet: the GPU cannot be reached"
"""What the script's last words begin with."""
UNREACHED_STATUS: Final = 71
"""With which the script ends then; another one is a failure of the script."""

_SCRIPT: Final = f"""
import ctypes, sys

def reached():
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0, "there is no libcuda.so.1"
    status = cuda.cuInit(0)
    if status:
        return 0, "cuInit says %d" % status
    count = ctypes.c_int()
    status = cuda.cuDeviceGetCount(ctypes.byref(count))
    if status:
        return 0, "cuDeviceGetCount says %d" % status
    return count.value, "%d found" % count.value

count, why = reached()
if count < int(sys.argv[1]):
    sys.stderr.write("{UNREACHED}: %s of %s asked for\\n" % (why, sys.argv[1]))
    sys.exit({UNREACHED_STATUS})
"""

DETAIL: Final = (
    "The GPU driver's library inside finds fewer GPUs than were asked for. Tell the "
    "person who runs this machine."
)


def check_of(resources: Resources) -> tuple[str, ...]:
    """Return what a Python inside is to run; empty: there is nothing to reach."""
    if not resources.devices:
        return ()
    return ("-I", "-c", _SCRIPT, str(len(resources.devices)))


def not_used(why: str) -> DriverError:
    """Return that the devices cannot be reached, with *why* for the operator."""
    return DriverError(Reason.ACCELERATOR_NOT_USED, why, detail=DETAIL)


def not_known(why: str) -> DriverError:
    """Return that nobody can tell whether they can: what is unknown is no yes."""
    return DriverError(Reason.CAPABILITIES_UNKNOWN, why, subject="GPU")
