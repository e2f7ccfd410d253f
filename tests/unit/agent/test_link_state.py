"""The agent's side of the link, without a network: what it hears, says and waits."""

from __future__ import annotations

import pytest
from agent_support import AT
from hypothesis import given, strategies as st

from fleet_agent.link_state import (
    LONGEST_DELAY,
    RESEND_SECONDS,
    SHORTEST_DELAY,
    SLOW_DELAY,
    Conversation,
    Ending,
    Phase,
    Resend,
    ViolationError,
    next_delay,
    pages,
)
from fleet_contracts.protocol import (
    INVENTORY_PAGE,
    PROTOCOL,
    AgentEvent,
    Forget,
    Goodbye,
    InventoryItem,
    Report,
    Welcome,
    decode_from_agent,
    encode,
)


WELCOME = encode(Welcome(protocol=PROTOCOL, machine="box"))
FORGET = encode(Forget(allocation="a", epoch=1))


def test_a_welcome_makes_the_link_live() -> None:
    """Before it nothing may be asked of the agent, after it everything."""
    conversation = Conversation()
    with pytest.raises(ViolationError, match="forget came before welcome"):
        Conversation().hear(FORGET)
    conversation.hear(WELCOME)
    assert conversation.phase is Phase.LIVE
    assert conversation.hear(FORGET) == Forget(allocation="a", epoch=1)


def test_a_second_welcome_is_a_violation() -> None:
    """A link is greeted once."""
    conversation = Conversation()
    conversation.hear(WELCOME)
    with pytest.raises(ViolationError, match="twice"):
        conversation.hear(WELCOME)


def test_a_welcome_in_another_protocol_says_what_to_do() -> None:
    """The agent never goes on in a protocol that it does not speak."""
    welcome = encode(Welcome(protocol=PROTOCOL + 1, machine="box"))
    with pytest.raises(ViolationError, match="same release"):
        Conversation().hear(welcome)


@pytest.mark.parametrize("text", ["", "[]", '{"type": "no"}', '{"type": "forget"}'])
def test_what_is_not_understood_is_a_violation(text: str) -> None:
    """No message is half understood."""
    conversation = Conversation()
    conversation.hear(WELCOME)
    with pytest.raises(ViolationError):
        conversation.hear(text)


@pytest.mark.parametrize(
    ("goodbye", "ending"),
    [
        (None, Ending.LOST),
        (Goodbye(code="duplicate_link", message="."), Ending.LOST),
        (Goodbye(code="shutting_down", message="."), Ending.LOST),
        (Goodbye(code="protocol_unsupported", message="."), Ending.POSTPONED),
        (
            Goodbye(code="protocol_unsupported", message=".", retry=False),
            Ending.DISMISSED,
        ),
        (Goodbye(code="revoked", message=".", retry=False), Ending.DISMISSED),
    ],
)
def test_a_goodbye_says_what_comes_next(
    goodbye: Goodbye | None, ending: Ending
) -> None:
    """It may come before or after the welcome."""
    for greeted in (False, True):
        conversation = Conversation()
        if greeted:
            conversation.hear(WELCOME)
        if goodbye is not None:
            conversation.hear(encode(goodbye))
        assert conversation.ending() is ending


@given(
    failures=st.integers(1, 10_000),
    ending=st.sampled_from(Ending),
    chance=st.floats(0, 1),
)
def test_every_delay_is_bounded(failures: int, ending: Ending, chance: float) -> None:
    """Nobody hammers the controller, and nobody stays away for long."""
    delay = next_delay(failures, ending, chance=chance)
    longest = LONGEST_DELAY if ending is Ending.LOST else SLOW_DELAY
    assert SHORTEST_DELAY <= delay <= longest


def test_delays_grow_and_are_spread() -> None:
    """Agents that lost one controller do not come back in step."""
    lost = [next_delay(count, Ending.LOST, chance=0.5) for count in range(1, 9)]
    assert lost == sorted(lost)
    assert lost[0] < 0.5
    assert next_delay(9, Ending.LOST, chance=0) < next_delay(9, Ending.LOST, chance=1)
    assert next_delay(1, Ending.DENIED, chance=0) > LONGEST_DELAY


@pytest.mark.parametrize("count", [0, 1, INVENTORY_PAGE, INVENTORY_PAGE + 1, 999])
def test_pages_hold_everything_once_and_only_the_last_says_so(count: int) -> None:
    """An empty inventory is one empty page: silence would mean nothing."""
    items = [
        InventoryItem(allocation=f"a{n}", epoch=n, event=AgentEvent.SERVING, seq=1)
        for n in range(count)
    ]
    cut = list(pages(items))
    assert [item for page in cut for item in page.items] == items
    assert [page.last for page in cut] == [False] * (len(cut) - 1) + [True]
    assert all(len(page.items) <= INVENTORY_PAGE for page in cut)
    assert all(decode_from_agent(encode(page)) == page for page in cut)


def _report(seq: int) -> Report:
    return Report(allocation="a", epoch=1, seq=seq, at=AT, event=AgentEvent.NOTE)


def test_only_a_report_that_stays_open_is_sent_again() -> None:
    """Progress of the acknowledgements resets the patience."""
    resend = Resend()
    assert not resend.is_due([], now=0)
    assert not resend.is_due([_report(1)], now=1)
    assert not resend.is_due([_report(1)], now=RESEND_SECONDS)
    assert resend.is_due([_report(1), _report(2)], now=1 + RESEND_SECONDS)
    assert not resend.is_due([_report(1)], now=2 + RESEND_SECONDS)
    assert not resend.is_due([_report(2)], now=2 + 2 * RESEND_SECONDS)
    assert not resend.is_due([], now=3 + 2 * RESEND_SECONDS)
    assert not resend.is_due([_report(2)], now=3 + 3 * RESEND_SECONDS)
