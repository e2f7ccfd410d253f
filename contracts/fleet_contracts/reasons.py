"""Why not: the codes that a refusal, a wait or a failure carries, with their numbers.

A "no" is a value.  Each code is of one *kind* - never, not now, busy or not allowed -
and those four must never look alike.  Codes travel; sentences are made where a person
reads (``sentences.py`` holds the English fallback).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

from pydantic import AwareDatetime, Field

from fleet_contracts.base import Contract, MachineName


class ReasonKind(StrEnum):
    """Which sort of "no" a code is."""

    NEVER = "never"
    """No machine of the fleet can ever run this as asked."""
    NOT_NOW = "not_now"
    """A machine could, but it is away, drained or unhealthy."""
    BUSY = "busy"
    """A machine could, once somebody else ends."""
    NOT_ALLOWED = "not_allowed"
    """Policy forbids it."""
    FAILED = "failed"
    """It was tried and went wrong."""
    INFO = "info"
    """Not a "no": says what happens, or who asked for it."""


class Reason(StrEnum):
    """The codes.  Public, stable: they are metric labels and translation keys."""

    # the request itself
    INVALID_REQUEST = "invalid_request"
    PROFILE_REQUIRED = "profile_required"
    PROFILE_UNKNOWN = "profile_unknown"
    CLASS_UNKNOWN = "class_unknown"
    OPTION_UNKNOWN = "option_unknown"
    FOREIGN_LINK = "foreign_link"
    RUNTIME_NONE_MATCHES = "runtime_none_matches"
    ENDPOINTS_NOT_BUILT = "endpoints_not_built"
    MODEL_INVALID = "model_invalid"
    EXCEEDS_ANY_MACHINE = "exceeds_any_machine"
    EXCEEDS_QUOTA_EVER = "exceeds_quota_ever"
    # policy
    ISOLATION_TOO_WEAK = "isolation_too_weak"
    NOT_IN_AUDIENCE = "not_in_audience"
    OWNER_FORBIDS = "owner_forbids"
    QUOTA_IN_USE = "quota_in_use"
    USER_LIMIT = "user_limit"
    # one machine, static
    DRIVER_UNAVAILABLE = "driver_unavailable"
    OS_MISMATCH = "os_mismatch"
    ACCELERATOR_MISMATCH = "accelerator_mismatch"
    RUNTIME_MISSING = "runtime_missing"
    SUPPORT_MISSING = "support_missing"
    CAPABILITY_MISSING = "capability_missing"
    DRIVER_TOO_OLD = "driver_too_old"
    DEVICE_MODEL_MISMATCH = "device_model_mismatch"
    COMPUTE_CAPABILITY_TOO_LOW = "compute_capability_too_low"
    VRAM_TOO_SMALL = "vram_too_small"
    GPU_COUNT_TOO_SMALL = "gpu_count_too_small"
    CPU_TOO_SMALL = "cpu_too_small"
    MEMORY_TOO_SMALL = "memory_too_small"
    DISK_TOO_SMALL = "disk_too_small"
    LABEL_MISMATCH = "label_mismatch"
    DATA_NOT_LOCAL = "data_not_local"
    COPY_NOT_OFFERED = "copy_not_offered"
    # one machine, its state
    OFFLINE = "offline"
    COPY_SOURCE_AWAY = "copy_source_away"
    DRAINING = "draining"
    OUTSIDE_HOURS = "outside_hours"
    OWNER_AT_WORK = "owner_at_work"
    PRESENCE_UNKNOWN = "presence_unknown"
    ON_BATTERY = "on_battery"
    OWNER_CLOSED = "owner_closed"
    UNHEALTHY = "unhealthy"
    FOREIGN_PROCESS = "foreign_process"
    DEVICE_LOST = "device_lost"
    SAME_DEVICE = "same_device"
    AGENT_TOO_OLD = "agent_too_old"
    KEEPS_NO_FILES = "keeps_no_files"
    QUARANTINED = "quarantined"
    LEASE_UNKNOWN = "lease_unknown"
    CAPABILITIES_UNKNOWN = "capabilities_unknown"
    CONTROLLER_RECOVERING = "controller_recovering"
    CONTROLLER_UNREACHABLE = "controller_unreachable"
    ADDRESS_UNKNOWN = "address_unknown"
    ADDRESS_REFUSED = "address_refused"
    ADDRESS_UNREACHABLE = "address_unreachable"
    NETWORK_NOT_TRUSTED = "network_not_trusted"
    # one machine, busy
    GPU_BUSY = "gpu_busy"
    METAL_BUSY = "metal_busy"
    CPU_BUSY = "cpu_busy"
    MEMORY_BUSY = "memory_busy"
    DISK_BUSY = "disk_busy"
    BEHIND = "behind"
    NOT_EVALUATED_YET = "not_evaluated_yet"
    NO_MACHINES = "no_machines"
    # the agent
    AGENT_REJECTED = "agent_rejected"
    EPOCH_STALE = "epoch_stale"
    SELECTION_MISMATCH = "selection_mismatch"
    SANDBOX_MISSING = "sandbox_missing"
    # it was tried and went wrong
    ENVIRONMENT_BROKEN = "environment_broken"
    ENVIRONMENT_HASH_MISMATCH = "environment_hash_mismatch"
    DISK_FULL = "disk_full"
    PREPARE_FAILED = "prepare_failed"
    PREPARE_TIMEOUT = "prepare_timeout"
    ACCELERATOR_NOT_USED = "accelerator_not_used"
    START_FAILED = "start_failed"
    START_TIMEOUT = "start_timeout"
    PORT_TAKEN = "port_taken"
    SERVER_EXITED = "server_exited"
    OUT_OF_MEMORY = "out_of_memory"
    MACHINE_REBOOTED = "machine_rebooted"
    MACHINE_LOST = "machine_lost"
    LEDGER_LOST = "ledger_lost"
    COPY_FAILED = "copy_failed"
    COPY_TIMEOUT = "copy_timeout"
    COPY_TOO_LARGE = "copy_too_large"
    # who or what ended it
    STOPPED_BY_USER = "stopped_by_user"
    STOPPED_BY_ADMIN = "stopped_by_admin"
    STOPPED_BY_HUB = "stopped_by_hub"
    LEFT_THE_LINE = "left_the_line"
    TIME_LIMIT = "time_limit"
    IDLE_LIMIT = "idle_limit"
    IDLE_SOON = "idle_soon"
    CUT_OFF = "cut_off"
    NOT_CLAIMED = "not_claimed"
    PLACE_KEPT = "place_kept"
    PLACE_MOVED = "place_moved"
    RELEASE_ASKED = "release_asked"
    RELEASE_WISHED = "release_wished"
    METAL_RESERVED = "metal_reserved"
    METAL_SHARED = "metal_shared"
    PROMISE_BROKEN = "promise_broken"
    RETIRED = "retired"
    FILES_COPIED = "files_copied"
    FILES_TO_COPY = "files_to_copy"
    DEVICE_RETURNED = "device_returned"
    # what may be done where a choice can never run beside the files
    KEEP_CLASS = "keep_class"
    COPY_FILES = "copy_files"
    FRESH_FOLDER = "fresh_folder"


class _Fact(NamedTuple):
    kind: ReasonKind
    tier: int


def _facts(kind: ReasonKind, tier: int, *reasons: Reason) -> dict[Reason, _Fact]:
    return {reason: _Fact(kind, tier) for reason in reasons}


_NEVER, _NOT_NOW, _BUSY = ReasonKind.NEVER, ReasonKind.NOT_NOW, ReasonKind.BUSY
_NOT_ALLOWED, _FAILED, _INFO = (
    ReasonKind.NOT_ALLOWED,
    ReasonKind.FAILED,
    ReasonKind.INFO,
)

FACTS: dict[Reason, _Fact] = {
    **_facts(
        _INFO,
        0,
        Reason.STOPPED_BY_USER,
        Reason.STOPPED_BY_ADMIN,
        Reason.STOPPED_BY_HUB,
        Reason.LEFT_THE_LINE,
        Reason.TIME_LIMIT,
        Reason.IDLE_LIMIT,
        Reason.IDLE_SOON,
        Reason.CUT_OFF,
        Reason.NOT_CLAIMED,
        Reason.PLACE_KEPT,
        Reason.PLACE_MOVED,
        Reason.RELEASE_ASKED,
        Reason.RELEASE_WISHED,
        Reason.METAL_RESERVED,
        Reason.METAL_SHARED,
        Reason.PROMISE_BROKEN,
        Reason.RETIRED,
        Reason.FILES_COPIED,
        Reason.FILES_TO_COPY,
        Reason.DEVICE_RETURNED,
        Reason.KEEP_CLASS,
        Reason.COPY_FILES,
        Reason.FRESH_FOLDER,
    ),
    **_facts(
        _NEVER,
        1,
        Reason.INVALID_REQUEST,
        Reason.PROFILE_REQUIRED,
        Reason.PROFILE_UNKNOWN,
        Reason.CLASS_UNKNOWN,
        Reason.OPTION_UNKNOWN,
        Reason.FOREIGN_LINK,
        Reason.RUNTIME_NONE_MATCHES,
        Reason.ENDPOINTS_NOT_BUILT,
        Reason.MODEL_INVALID,
    ),
    **_facts(_NEVER, 2, Reason.EXCEEDS_ANY_MACHINE, Reason.EXCEEDS_QUOTA_EVER),
    **_facts(
        _NOT_ALLOWED,
        3,
        Reason.ISOLATION_TOO_WEAK,
        Reason.NOT_IN_AUDIENCE,
        Reason.OWNER_FORBIDS,
    ),
    **_facts(_BUSY, 3, Reason.QUOTA_IN_USE, Reason.USER_LIMIT),
    **_facts(
        _NEVER,
        4,
        Reason.DRIVER_UNAVAILABLE,
        Reason.OS_MISMATCH,
        Reason.ACCELERATOR_MISMATCH,
        Reason.RUNTIME_MISSING,
        Reason.SUPPORT_MISSING,
        Reason.CAPABILITY_MISSING,
        Reason.DRIVER_TOO_OLD,
        Reason.DEVICE_MODEL_MISMATCH,
        Reason.COMPUTE_CAPABILITY_TOO_LOW,
        Reason.VRAM_TOO_SMALL,
        Reason.GPU_COUNT_TOO_SMALL,
        Reason.CPU_TOO_SMALL,
        Reason.MEMORY_TOO_SMALL,
        Reason.DISK_TOO_SMALL,
        Reason.LABEL_MISMATCH,
        Reason.DATA_NOT_LOCAL,
        Reason.COPY_NOT_OFFERED,
        Reason.SANDBOX_MISSING,
    ),
    **_facts(
        _NOT_NOW,
        5,
        Reason.OFFLINE,
        Reason.COPY_SOURCE_AWAY,
        Reason.DRAINING,
        Reason.OUTSIDE_HOURS,
        Reason.OWNER_AT_WORK,
        Reason.PRESENCE_UNKNOWN,
        Reason.ON_BATTERY,
        Reason.OWNER_CLOSED,
        Reason.UNHEALTHY,
        Reason.FOREIGN_PROCESS,
        Reason.DEVICE_LOST,
        Reason.SAME_DEVICE,
        Reason.AGENT_TOO_OLD,
        Reason.KEEPS_NO_FILES,
        Reason.QUARANTINED,
        Reason.LEASE_UNKNOWN,
        Reason.CAPABILITIES_UNKNOWN,
        Reason.CONTROLLER_RECOVERING,
        Reason.CONTROLLER_UNREACHABLE,
        Reason.ADDRESS_UNKNOWN,
        Reason.ADDRESS_REFUSED,
        Reason.ADDRESS_UNREACHABLE,
        Reason.NETWORK_NOT_TRUSTED,
        Reason.NO_MACHINES,
    ),
    **_facts(
        _BUSY,
        6,
        Reason.GPU_BUSY,
        Reason.METAL_BUSY,
        Reason.CPU_BUSY,
        Reason.MEMORY_BUSY,
        Reason.DISK_BUSY,
    ),
    **_facts(_BUSY, 7, Reason.BEHIND),
    **_facts(
        _NOT_NOW,
        8,
        Reason.AGENT_REJECTED,
        Reason.EPOCH_STALE,
        Reason.SELECTION_MISMATCH,
    ),
    **_facts(_NOT_NOW, 9, Reason.NOT_EVALUATED_YET),
    **_facts(
        _FAILED,
        8,
        Reason.ENVIRONMENT_BROKEN,
        Reason.ENVIRONMENT_HASH_MISMATCH,
        Reason.DISK_FULL,
        Reason.PREPARE_FAILED,
        Reason.PREPARE_TIMEOUT,
        Reason.ACCELERATOR_NOT_USED,
        Reason.START_FAILED,
        Reason.START_TIMEOUT,
        Reason.PORT_TAKEN,
        Reason.SERVER_EXITED,
        Reason.OUT_OF_MEMORY,
        Reason.MACHINE_REBOOTED,
        Reason.MACHINE_LOST,
        Reason.LEDGER_LOST,
        Reason.COPY_FAILED,
        Reason.COPY_TIMEOUT,
        Reason.COPY_TOO_LARGE,
    ),
}
"""Kind and tier of each code.

Among reasons of the workload itself the lowest tier is the headline; among machines
the highest tier is (the nearest miss): nine CPU machines must not hide the one busy
GPU.
"""

INSTEAD: frozenset[Reason] = frozenset(
    {Reason.KEEP_CLASS, Reason.COPY_FILES, Reason.FRESH_FOLDER}
)
"""What may be done where a choice can never run beside the files: notes of a refusal."""

Number = Annotated[int, Field(ge=0)]


class LikelyEnd(Contract):
    """Half of those that held on for as long were done by *early*, nine of ten by *late*."""

    early: AwareDatetime
    late: AwareDatetime
    samples: Annotated[int, Field(ge=1)]
    """How many earlier ones of its class that is said from."""


class Holder(Contract):
    """Who holds what a workload waits for."""

    workload: str
    """Where names are hidden and it is not the reader's own, a handle that says nothing."""
    owner: str | None = None
    """None where the privacy setting hides other people's names."""
    own: bool = False
    """It is whoever waits themselves."""
    promised: bool = False
    """It holds nothing yet: it waits too, and was promised what would be free."""
    title: str | None = None
    amount: Number | None = None
    """How much of it, in the unit of the explanation."""
    since: AwareDatetime | None = None
    ends_by: AwareDatetime | None = None
    """The latest end that the agent enforces; None: no end is known."""
    idle_since: AwareDatetime | None = None
    """Since when its machine saw all its GPUs at rest, or under an idle limit nothing
    computed at all; None: nobody knows, or not yet for ten minutes."""
    idle_ends: AwareDatetime | None = None
    """When its idle limit ends it if it stays so; None: it has none, or is at work."""
    likely_end: LikelyEnd | None = None
    """None: too few of its class held on for longer so far, or it ends soon anyway; of one
    among many machines, only whoever ends first there has one."""
    handle: str | None = None
    """By this whoever waits can ask for what it holds; None: nobody would be asked."""
    asked_at: AwareDatetime | None = None
    """When the reader asked for it; None: they have not."""


class Explanation(Contract):
    """One code with its numbers: everything a sentence needs."""

    reason: Reason
    machine: MachineName | None = None
    subject: str | None = None
    """What the code is about: an option, a profile, a capability, a resource."""
    requested: Number | None = None
    capacity: Number | None = None
    free: Number | None = None
    unit: str | None = None
    position: Number | None = None
    holders: tuple[Holder, ...] = ()
    detail: str | None = None
    """A plain English addition for people; never a driver's ref or raw tool output."""

    @property
    def kind(self) -> ReasonKind:
        """Which sort of "no" this is."""
        return FACTS[self.reason].kind
