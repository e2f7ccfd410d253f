"""Why did a notebook server end?  Pure: from its exit code and the end of its log."""

from __future__ import annotations

from enum import Enum

from fleet_agent.drivers.common import server_logs
from fleet_agent.drivers.common.reaching import DETAIL, UNREACHED
from fleet_contracts.reasons import Explanation, Reason


_KNOWN: tuple[server_logs.Words, ...] = (
    (
        "bwrap: ",
        Reason.START_FAILED,
        "The sandbox for the notebook could not be set up on this machine.",
    ),
    (UNREACHED, Reason.ACCELERATOR_NOT_USED, DETAIL),
)


class Memory(Enum):
    """Whether the kernel has ended anything of a workload for lack of memory."""

    ENOUGH = "enough"
    CLASS_RAN_OUT = "class_ran_out"
    """The workload used all that its class has."""
    MACHINE_RAN_OUT = "machine_ran_out"


_RAN_OUT = {
    Memory.CLASS_RAN_OUT: "The notebook used all the memory of its class, and the "
    "kernel ended it. The files are kept.",
    Memory.MACHINE_RAN_OUT: "The machine ran out of memory and its kernel ended the "
    "notebook. The files are kept.",
}


def why_it_ended(exit_code: int | None, log: str, *, memory: Memory) -> Explanation:
    """Return why a server that nobody stopped is gone."""
    if exit_code == server_logs.KILLED and memory in _RAN_OUT:
        return Explanation(reason=Reason.OUT_OF_MEMORY, detail=_RAN_OUT[memory])
    return server_logs.why_it_ended(exit_code, log, _KNOWN)
