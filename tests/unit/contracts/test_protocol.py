"""The agent link's messages: what goes over the wire comes back the same."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fleet_contracts.protocol import (
    MAX_MESSAGE_BYTES,
    PROTOCOL,
    Acknowledge,
    AgentEvent,
    CapabilitiesChanged,
    Forget,
    Goodbye,
    Heartbeat,
    Hello,
    Inventory,
    InventoryItem,
    Launch,
    ProtocolError,
    Redetect,
    Report,
    Stop,
    Welcome,
    decode_from_agent,
    decode_to_agent,
    encode,
)
from fleet_contracts.workloads import (
    Accelerator,
    DriverName,
    Resources,
    RuntimeSpec,
    WorkloadSpec,
)


NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)

SPEC = WorkloadSpec(
    owner="ada",
    owner_id=1,
    notebook="n-1",
    profile="cpu-small",
    class_name="cpu-small",
    runtime=RuntimeSpec(
        name="jupyter",
        driver=DriverName.NATIVE,
        ref="jupyter",
        accelerator=Accelerator.CPU,
        catalog_digest="d",
    ),
    resources=Resources(cpu_milli=1000, memory_bytes=2**30),
    environment={"JUPYTERHUB_API_TOKEN": "secret-value"},
)

UP = [
    Hello(
        protocol=PROTOCOL,
        agent_version="1",
        boot_id="b",
        ledger_id="l",
        highest_epoch=3,
    ),
    Inventory(
        items=(InventoryItem(allocation="a", epoch=1, event=AgentEvent.SERVING, seq=4),)
    ),
    Heartbeat(sent_at=NOW),
    Heartbeat(sent_at=NOW, usage={"memory_available_bytes": 1}),
    CapabilitiesChanged(capabilities={"host": {"os": "linux"}}),
    Report(allocation="a", epoch=1, seq=1, at=NOW, event=AgentEvent.ACCEPTED),
]
DOWN = [
    Welcome(protocol=PROTOCOL, machine="mac-07"),
    Launch(allocation="a", epoch=1, spec=SPEC),
    Stop(allocation="a", epoch=1),
    Forget(allocation="a", epoch=1),
    Acknowledge(allocation="a", epoch=1, seq=2),
    Redetect(),
    Goodbye(code="revoked", message="enrol again", retry=False),
]


@pytest.mark.parametrize("message", UP, ids=lambda message: message.type)
def test_what_an_agent_says_is_understood(message: Hello) -> None:
    """Each message of the agent survives the wire."""
    assert decode_from_agent(encode(message)) == message


@pytest.mark.parametrize("message", DOWN, ids=lambda message: message.type)
def test_what_the_controller_says_is_understood(message: Welcome) -> None:
    """Each message of the controller survives the wire."""
    assert decode_to_agent(encode(message)) == message


def test_fields_of_a_newer_peer_are_ignored() -> None:
    """A newer agent may say more than this version knows."""
    text = '{"type": "heartbeat", "sent_at": "2026-11-29T12:00:00Z", "mood": "fine"}'
    assert decode_from_agent(text) == Heartbeat(sent_at=NOW)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"type": "surrender"}', '{"type": "report"}', b"\xff\xfe"]
)
def test_what_is_no_message_is_a_protocol_error(text: str | bytes) -> None:
    """Whatever arrives, the link gets one kind of error."""
    with pytest.raises(ProtocolError):
        decode_from_agent(text)


def test_an_error_does_not_repeat_a_secret() -> None:
    """A malformed launch is reported by its fields, never by their values."""
    text = '{"type": "launch", "allocation": 7, "epoch": "x", "spec": {"environment": {"A": 1, "T": "hush"}}}'
    with pytest.raises(ProtocolError) as caught:
        decode_to_agent(text)
    assert "hush" not in str(caught.value)


def test_a_message_that_is_too_large_is_refused_on_both_sides() -> None:
    """The sender learns of it, instead of a socket that closes without a word."""
    large = Launch(
        allocation="a",
        epoch=1,
        spec=SPEC.model_copy(update={"environment": {"A": "x" * MAX_MESSAGE_BYTES}}),
    )
    with pytest.raises(ProtocolError, match="larger"):
        encode(large)
    with pytest.raises(ProtocolError, match="larger"):
        decode_to_agent("x" * (MAX_MESSAGE_BYTES + 1))


def test_a_spec_does_not_print_its_environment() -> None:
    """A log line that shows a spec shows no token."""
    assert "secret-value" not in repr(SPEC)
