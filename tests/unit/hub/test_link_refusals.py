"""What a link may say, and what ends it."""

from __future__ import annotations

import pytest
from fake_agent import FakeAgent, some_capabilities
from fleet_builders import NOON
from fleet_controller import Fleet, a_ready_server, allocation_of

from fleet_contracts.allocations import State
from fleet_contracts.protocol import (
    PROTOCOL,
    AgentEvent,
    CapabilitiesChanged,
    Forget,
    Goodbye,
    Hello,
    Inventory,
    InventoryItem,
    Report,
    Welcome,
)
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import enrolling, reconciling, stopping
from fleet_hub.controller.errors import LinkRefusedError


def test_foreign_inventory_is_shown_and_never_adopted() -> None:
    """Nobody here issued it: it is neither stopped nor counted nor forgotten."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    agent.ledger["theirs"] = InventoryItem(
        allocation="theirs", epoch=77, event=AgentEvent.SERVING, seq=3
    )
    agent.heard.clear()
    agent.connect()
    assert fleet.core.model.presence["box"].foreign == {("theirs", 77)}
    assert {item.type for item in agent.heard} == {"welcome"}
    assert fleet.core.model.workloads == {}


@pytest.mark.parametrize("lie", ["other machine", "other epoch", "unknown"])
def test_a_link_speaks_only_for_what_was_issued_to_its_machine(lie: str) -> None:
    """A report for anything else changes nothing and gets no acknowledgement."""
    fleet = Fleet()
    agent = fleet.machine("box")
    liar = fleet.machine("liar", owner="mallory")
    record = fleet.ask(class_name="whole")
    assert record.assignment is not None
    assert record.assignment.machine == "box"
    speaker = agent if lie == "other epoch" else liar
    speaker.heard.clear()
    speaker.say(
        Report(
            allocation="unknown" if lie == "unknown" else allocation_of(record),
            epoch=record.assignment.epoch + (lie == "other epoch"),
            seq=1,
            at=NOON,
            event=AgentEvent.ENDED,
        )
    )
    assert fleet.get(record) == record
    assert speaker.heard == []


def test_a_second_live_link_is_refused_and_the_first_goes_on() -> None:
    """Two agents with one token: the later one is told why."""
    fleet = Fleet()
    agent = fleet.machine()
    second = FakeAgent(fleet.core, fleet.registry, "box")
    with pytest.raises(LinkRefusedError) as caught:
        second.connect()
    assert caught.value.code == "duplicate_link"
    record = fleet.ask()
    assert allocation_of(record) in agent.launched
    assert second.launched == {}


@pytest.mark.parametrize("protocol", [0, PROTOCOL + 1, 99])
def test_another_protocol_is_refused_with_a_remedy(protocol: int) -> None:
    """Neither side guesses; the machine stays offline."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    with pytest.raises(LinkRefusedError, match="same version") as caught:
        agent.connect(protocol=protocol)
    assert caught.value.code == "protocol_unsupported"
    assert not fleet.registry.is_live("box")


def test_a_controller_still_speaks_the_protocol_before_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Upgraded first, it answers each agent in that agent's own protocol; no older one."""
    monkeypatch.setattr(reconciling, "PROTOCOL", PROTOCOL + 1)
    monkeypatch.setattr(reconciling, "OLDEST_PROTOCOL", PROTOCOL)
    fleet = Fleet()
    agent = fleet.machine()
    for protocol in (PROTOCOL, PROTOCOL + 1):
        agent.disconnect()
        agent.connect(protocol=protocol)
        [*_, welcome] = [it for it in agent.heard if isinstance(it, Welcome)]
        assert welcome.protocol == protocol
        assert fleet.registry.is_live("box")
    for protocol in (PROTOCOL - 1, PROTOCOL + 2):
        agent.disconnect()
        with pytest.raises(LinkRefusedError, match="speaks protocols"):
            agent.connect(protocol=protocol)


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", '{"type": "launch"}', '{"type": "report", "seq": 0}'],
)
def test_a_message_that_is_none_closes_the_link(text: str) -> None:
    """Nothing is guessed from a broken message."""
    fleet = Fleet()
    agent = fleet.machine()
    assert agent.session is not None
    with pytest.raises(LinkRefusedError):
        agent.session.receive(text)


def test_a_link_begins_with_hello() -> None:
    """Nothing else is heard before."""
    fleet = Fleet()
    agent = fleet.machine()
    session = agent.session
    assert session is not None
    session.greeted = False
    with pytest.raises(LinkRefusedError, match="begins with hello"):
        agent.say(Inventory())


def test_a_store_that_went_back_in_time_issues_above_what_a_machine_has_seen() -> None:
    """A restored backup can never reuse an epoch."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    agent.highest_epoch = (50 << 32) + 7
    agent.connect()
    record = fleet.ask()
    assert record.assignment is not None
    assert record.assignment.epoch > agent.highest_epoch - 1
    assert record.assignment.epoch >> 32 == 51


def test_a_picture_that_is_not_understood_fits_nothing() -> None:
    """Fail closed: a machine that cannot be read gets nothing placed on it."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.say(CapabilitiesChanged(capabilities={"host": "large"}))
    record = fleet.ask()
    assert record.state is State.QUEUED
    assert record.explanation is not None
    assert record.explanation.reason is Reason.CAPABILITIES_UNKNOWN
    agent.say(CapabilitiesChanged(capabilities=some_capabilities()))
    fleet.cycle()
    assert fleet.get(record).state is State.PLACED


def test_the_agents_own_end_of_a_server_is_told_as_such() -> None:
    """A time limit that the agent enforces passes through."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    limit = Explanation(reason=Reason.TIME_LIMIT)
    agent.report(allocation_of(record), AgentEvent.STOPPING, explanation=limit)
    assert fleet.get(record).state is State.STOPPING
    assert fleet.get(record).holds
    agent.report(allocation_of(record), AgentEvent.ENDED, explanation=limit)
    ended = fleet.get(record)
    assert ended.state is State.STOPPED
    assert ended.explanation == limit


def test_an_ended_allocation_is_forgotten_on_both_sides() -> None:
    """Neither ledger grows for ever."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    stopping.stop(fleet.core, fleet.get(record))
    agent.report(allocation_of(record), AgentEvent.ENDED)
    assert [item.allocation for item in agent.heard if isinstance(item, Forget)] == [
        allocation_of(record)
    ]
    assert agent.ledger == {}
    assert fleet.core.model.issued == {}


def test_a_lost_forget_is_repeated_at_the_next_hello() -> None:
    """An agent that still knows an ended allocation is told to forget it."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    stopping.stop(fleet.core, fleet.get(record))
    kept = agent.ledger[allocation_of(record)].model_copy(
        update={"event": AgentEvent.ENDED, "seq": 4}
    )
    stopping.declare_lost(fleet.core, "box")
    agent.disconnect()
    agent.ledger[allocation_of(record)] = kept
    agent.connect()
    assert agent.ledger == {}
    assert fleet.core.model.issued == {}


def test_enrolling_again_sends_the_earlier_agent_away() -> None:
    """Its token is void, so its link is too; what runs there is still held."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    enrolling.enrol(fleet.core, name="box", owner="alice", local=True)
    goodbye = agent.heard[-1]
    assert isinstance(goodbye, Goodbye)
    assert (goodbye.code, goodbye.retry) == ("revoked", False)
    assert not fleet.registry.is_live("box")
    assert fleet.get(record).holds


def test_a_server_at_a_forbidden_address_is_ended() -> None:
    """Nobody is led there: it is stopped at once, and the timeline says why."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.report(allocation_of(record), AgentEvent.ACCEPTED)
    agent.report(allocation_of(record), AgentEvent.PREPARED)
    agent.report(
        allocation_of(record), AgentEvent.SERVING, url="http://169.254.169.254:80/"
    )
    sent_away = fleet.get(record)
    assert sent_away.state is State.STOPPING
    assert sent_away.url is None
    (stop,) = agent.stops()
    assert stop.now
    agent.report(allocation_of(record), AgentEvent.ENDED)
    ended = fleet.get(record)
    assert ended.explanation is not None
    assert ended.explanation.reason is Reason.START_FAILED


def test_an_endless_inventory_closes_the_link() -> None:
    """A machine cannot fill the controller's memory."""
    fleet = Fleet()
    agent = fleet.machine()
    pages = [
        Inventory(
            items=tuple(
                InventoryItem(
                    allocation=f"{page}-{number}",
                    epoch=1,
                    event=AgentEvent.SERVING,
                    seq=1,
                )
                for number in range(200)
            ),
            last=False,
        )
        for page in range(51)
    ]
    for page in pages[:50]:
        agent.say(page)
    with pytest.raises(LinkRefusedError, match="at most"):
        agent.say(pages[50])


def test_hello_twice_is_refused() -> None:
    """A link is one agent's life."""
    fleet = Fleet()
    agent = fleet.machine()
    with pytest.raises(LinkRefusedError, match="once per link"):
        agent.say(Hello(protocol=1, agent_version="1", boot_id="b", ledger_id="l"))
    assert not any(isinstance(item, Goodbye) for item in agent.heard)
