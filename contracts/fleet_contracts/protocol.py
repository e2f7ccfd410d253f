"""The agent link: versioned JSON messages over one WebSocket, without any I/O.

The agent dials out.  It says ``hello`` with its capabilities and the inventory of
what really runs; the controller answers ``welcome`` or ``goodbye``.  Everything is
idempotent by (allocation, epoch): a repeated ``launch`` or ``stop`` changes nothing.
Reports carry a per-allocation ``seq`` and are sent again until acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BeforeValidator, Field, TypeAdapter, ValidationError

from fleet_contracts.base import Message
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import DriverName, WorkloadSpec


PROTOCOL: Final = 2
"""The version this code speaks."""
OLDEST_PROTOCOL: Final = 1
"""The oldest version of an agent that the controller still understands."""
COPYING_PROTOCOL: Final = 2
"""The first version whose agents copy files; see ``SendFiles``."""
MAX_MESSAGE_BYTES: Final = 1024 * 1024
INVENTORY_PAGE: Final = 200
"""Allocations per inventory message; a longer inventory is paged."""


Id = Annotated[str, Field(min_length=1, max_length=100)]
Words = Annotated[str, Field(max_length=200)]
Url = Annotated[str, Field(max_length=4096)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""As large as a database's integers."""


def _understood(told: Any) -> Any:
    """Return *told* as far as this version understands it.

    A peer of another release may know more reasons and more of what goes with one.
    What it does counts all the same: only its words are lost.
    """
    if not isinstance(told, Mapping):
        return told
    if isinstance(told.get("reason"), str) and told["reason"] not in _REASONS:
        return None
    return {name: told[name] for name in Explanation.model_fields if name in told}


_REASONS: Final = frozenset(Reason)
Why = Annotated[Explanation | None, BeforeValidator(_understood)]
"""Why something happened; None: no reason, or one that only a newer peer knows."""


class ProtocolError(ValueError):
    """A message that this version does not understand, or that is too large."""


class AgentEvent(StrEnum):
    """What an agent reports about an allocation."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    PROGRESS = "progress"
    PREPARED = "prepared"
    SERVING = "serving"
    STOPPING = "stopping"
    ENDED = "ended"
    FAILED = "failed"
    NOTE = "note"


class Report(Message):
    """One fact about one allocation; *seq* counts per allocation from 1."""

    type: Literal["report"] = "report"
    allocation: Id
    epoch: Count
    seq: Annotated[int, Field(ge=1, lt=1 << 63)]
    at: AwareDatetime
    event: AgentEvent
    url: Url | None = None
    """Where the Hub's proxy reaches the server, once serving."""
    progress: Progress | None = None
    explanation: Why = None


class InventoryItem(Message):
    """One allocation in the agent's durable ledger, as it is now."""

    allocation: Id
    epoch: Count
    event: AgentEvent
    """The last event that changed its state: how far it is."""
    seq: Count
    """The last report's number; older ones may be fetched by resending."""
    url: Url | None = None
    explanation: Why = None


class Hello(Message):
    """The agent's first message on a new link."""

    type: Literal["hello"] = "hello"
    protocol: int
    agent_version: Words
    boot_id: Words
    ledger_id: Words
    """Made with the ledger: a new one means that the old one is lost."""
    platform: Words = ""
    python: Words = ""
    drivers: Annotated[tuple[Words, ...], Field(max_length=50)] = ()
    capabilities: dict[str, Any] = Field(default_factory=dict)
    highest_epoch: Count = 0
    inventory_size: Count = 0


class Inventory(Message):
    """A page of the agent's ledger; *last* marks the final page."""

    type: Literal["inventory"] = "inventory"
    items: tuple[InventoryItem, ...] = ()
    last: bool = True


class Heartbeat(Message):
    """Sent at the interval that ``welcome`` asked for."""

    type: Literal["heartbeat"] = "heartbeat"
    sent_at: AwareDatetime
    usage: dict[str, Any] | None = None
    """How busy the machine was, as ``capabilities.Usage``: an observation, no fact."""


class CapabilitiesChanged(Message):
    """The whole picture again, after a detection that found a change."""

    type: Literal["capabilities"] = "capabilities"
    capabilities: dict[str, Any]


class AddressOffer(Message):
    """The agent listens at *address* and *port* for a moment: the controller may try.

    Sent when ``welcome`` asked for addresses and knows another one than ours.
    """

    type: Literal["address"] = "address"
    address: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]{1,255}$")]
    port: Annotated[int, Field(ge=1, le=65535)]
    key: Annotated[str, Field(min_length=16, max_length=200, repr=False)]
    """With it the answer to the controller's nonce is made; see ``enrolment``."""


class Welcome(Message):
    """The controller accepted the link and will listen to the inventory."""

    type: Literal["welcome"] = "welcome"
    protocol: int
    machine: str
    """The machine's name, from the controller's record."""
    heartbeat_seconds: float = 10.0
    hub_api_url: str | None = None
    """The Hub's API as this machine reaches it; None: as in the environment."""
    wants_address: bool = False
    """Notebook traffic needs an address that the controller has tried."""
    approved_address: str | None = None
    """The one that it tried with success, as the agent had told it."""


class Launch(Message):
    """Run this allocation; repeated until the agent reports on it."""

    type: Literal["launch"] = "launch"
    allocation: Id
    epoch: Count
    spec: WorkloadSpec


class Stop(Message):
    """End this allocation; the agent reports ``ended`` once nothing of it runs."""

    type: Literal["stop"] = "stop"
    allocation: Id
    epoch: Count
    now: bool = False
    explanation: Why = None


class Forget(Message):
    """The controller has recorded the end: the ledger may drop the allocation."""

    type: Literal["forget"] = "forget"
    allocation: Id
    epoch: Count


class Acknowledge(Message):
    """Reports of this allocation up to *seq* are durable at the controller."""

    type: Literal["acknowledge"] = "acknowledge"
    allocation: Id
    epoch: Count
    seq: int


class Redetect(Message):
    """Detect the capabilities again, now."""

    type: Literal["redetect"] = "redetect"


class SendFiles(Message):
    """Send a notebook folder to the allocation that is to begin with a copy of it.

    The agent dials ``files/<allocation>/<epoch>/send``; see ``copying`` there.
    """

    type: Literal["send_files"] = "send_files"
    allocation: Id
    epoch: Count
    """Of the copy's allocation, which is mostly another machine's."""
    driver: DriverName
    """Whose folder it is here."""
    notebook: Annotated[str, Field(max_length=200)]
    owner: str
    owner_id: int
    limit_bytes: Count


class AddressVerdict(Message):
    """What came of trying the offered address."""

    type: Literal["address_verdict"] = "address_verdict"
    address: str
    explanation: Why = None
    """None: it is approved."""


class Goodbye(Message):
    """The controller closes the link and says why."""

    type: Literal["goodbye"] = "goodbye"
    code: str
    """protocol_unsupported, duplicate_link, revoked or shutting_down."""
    message: str
    retry: bool = True


FromAgent = Annotated[
    Hello | Inventory | Heartbeat | CapabilitiesChanged | Report | AddressOffer,
    Field(discriminator="type"),
]
ToAgent = Annotated[
    Welcome
    | Launch
    | Stop
    | Forget
    | Acknowledge
    | Redetect
    | SendFiles
    | AddressVerdict
    | Goodbye,
    Field(discriminator="type"),
]

_FROM_AGENT: TypeAdapter[FromAgent] = TypeAdapter(FromAgent)
_TO_AGENT: TypeAdapter[ToAgent] = TypeAdapter(ToAgent)


def encode(message: Message) -> str:
    """Return *message* as it goes over the wire.

    Raises:
        ProtocolError: it would be larger than ``MAX_MESSAGE_BYTES``.
    """
    text = message.model_dump_json(exclude_none=True)
    if len(text.encode()) > MAX_MESSAGE_BYTES:
        raise ProtocolError(f"the message is larger than {MAX_MESSAGE_BYTES} bytes")
    return text


def _decode(adapter: TypeAdapter[Any], text: str | bytes) -> Any:
    if len(text) > MAX_MESSAGE_BYTES:
        raise ProtocolError(f"the message is larger than {MAX_MESSAGE_BYTES} bytes")
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        # The input is left out: it may hold a secret.
        where = ", ".join(
            ".".join(str(part) for part in fault["loc"]) or fault["type"]
            for fault in error.errors(include_input=False, include_url=False)[:5]
        )
        raise ProtocolError(f"the message is not understood: {where}") from None


def decode_from_agent(text: str | bytes) -> FromAgent:
    """Return what an agent said.

    Raises:
        ProtocolError: it is too large, no JSON, or no message of this protocol.
    """
    message: FromAgent = _decode(_FROM_AGENT, text)
    return message


def decode_to_agent(text: str | bytes) -> ToAgent:
    """Return what the controller said.

    Raises:
        ProtocolError: it is too large, no JSON, or no message of this protocol.
    """
    message: ToAgent = _decode(_TO_AGENT, text)
    return message
