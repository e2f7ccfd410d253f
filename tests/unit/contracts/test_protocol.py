"""The agent link's messages: what goes over the wire comes back the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from fleet_contracts.protocol import (
    MAX_MESSAGE_BYTES,
    OLDEST_PROTOCOL,
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
from fleet_contracts.reasons import Explanation
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


def test_what_only_a_newer_peer_can_say_costs_its_words_and_not_its_deed() -> None:
    """A stop for a reason that nobody here knows is a stop all the same."""
    known = {"reason": "time_limit", "detail": "four hours"}
    for told, heard in (
        ({"reason": "of_next_year"}, None),
        ({**known, "colour": "red"}, Explanation(**known)),
        (known, Explanation(**known)),
        (None, None),
    ):
        text = json.dumps(
            {"type": "stop", "allocation": "a", "epoch": 1, "explanation": told}
        )
        assert decode_to_agent(text) == Stop(allocation="a", epoch=1, explanation=heard)
    report = {
        "type": "report",
        "allocation": "a",
        "epoch": 1,
        "seq": 1,
        "at": NOW.isoformat(),
        "event": "failed",
        "explanation": {"reason": "of_next_year"},
    }
    told_by_agent = decode_from_agent(json.dumps(report))
    assert isinstance(told_by_agent, Report)
    assert told_by_agent.event is AgentEvent.FAILED
    assert told_by_agent.explanation is None


@pytest.mark.parametrize(
    "told", ["time_limit", [], {}, {"reason": 1}, {"reason": ["time_limit"]}]
)
def test_what_is_no_explanation_is_no_message(told: object) -> None:
    """Another version's words are one thing, and nonsense is another."""
    text = json.dumps(
        {"type": "stop", "allocation": "a", "epoch": 1, "explanation": told}
    )
    with pytest.raises(ProtocolError, match="explanation"):
        decode_to_agent(text)


def test_the_first_agents_hello_is_still_understood() -> None:
    """An agent that was installed with the first version, and never since."""
    text = (
        '{"type":"hello","protocol":1,"agent_version":"0.1.0","boot_id":"b0",'
        '"ledger_id":"1234","platform":"linux","python":"3.11.7",'
        '"drivers":["native"],"capabilities":{},"highest_epoch":6,"inventory_size":4}'
    )
    hello = decode_from_agent(text)

    assert isinstance(hello, Hello)
    assert (hello.protocol, hello.highest_epoch) == (1, 6)
    assert max(1, PROTOCOL - 1) == OLDEST_PROTOCOL, "the one before its own is spoken"
