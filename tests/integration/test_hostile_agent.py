"""A machine's owner may run any agent: what a lying one achieves against each rule.

It holds a token of its own machine, and tries to reach beyond it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import Service, a_service
from hostile_agent import BOB, HOSTILE, a_hostile_one, a_report, an_honest_one, shown
from rich_machine import a_rich_picture
from scripted_agent import ScriptedAgent
from small_hub import SECRET
from tornado.httpclient import HTTPClientError

from fleet_contracts.protocol import (
    MAX_MESSAGE_BYTES,
    AgentEvent,
    CapabilitiesChanged,
    Goodbye,
    Hello,
    Inventory,
    InventoryItem,
    Stop,
    encode,
)
from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_hub.admission import OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with two users and an admin."""
    async with a_service(tmp_path) as running:
        running.hub.add_user("alice")
        running.hub.add_user("bob")
        running.hub.add_user("root", admin=True)
        yield running


# ------------------------------------------------------------ whom it speaks for
async def test_it_speaks_for_no_other_machine(service: Service) -> None:
    """Another machine's allocation neither ends, nor moves, nor is stopped by it."""
    honest, hostile = await an_honest_one(service), await a_hostile_one(service)
    (launch,) = honest.launches
    before = await service.status()
    for event in AgentEvent:
        await hostile.say(a_report(launch, event, url="http://127.0.0.1:1/stolen/"))
    item = InventoryItem(
        allocation=launch.allocation,
        epoch=launch.epoch,
        event=AgentEvent.ENDED,
        seq=99,
    )
    await hostile.say(Inventory(items=(item,), last=True))
    await hostile.settle()
    await honest.settle()
    assert await service.status() == before
    assert not any(isinstance(message, Stop) for message in honest.heard)
    foreign = (await shown(service))["foreign_allocations"]
    assert foreign == [{"allocation": launch.allocation, "epoch": launch.epoch}]
    assert (await shown(service, "honest"))["foreign_allocations"] == []


async def test_what_nobody_issued_is_shown_and_never_adopted(service: Service) -> None:
    """It holds nothing, serves nobody, and is never told to stop."""
    hostile = await a_hostile_one(service)
    items = tuple(
        InventoryItem(
            allocation=f"foreign-{number}",
            epoch=number,
            event=AgentEvent.SERVING,
            seq=1,
            url="http://127.0.0.1:8081/hub/api/",
        )
        for number in range(1, 4)
    )
    await hostile.say(Inventory(items=items, last=True))
    await hostile.settle()
    machine = await shown(service)
    assert len(machine["foreign_allocations"]) == 3
    assert machine["holds"] == []
    assert not any(isinstance(message, Stop) for message in hostile.heard)
    page = await service.fetch("machines/hostile", token="token hub-token-of-bob")
    assert "It also runs 3 that this controller did not ask for." in page.body.decode()


async def test_an_earlier_epoch_of_its_own_counts_for_nothing(service: Service) -> None:
    """A replay of what was true once."""
    hostile = await a_hostile_one(service)
    start = await AttendedStart(service, an_ask(principal=BOB)).open()
    await start.until("placed")
    launch = await hostile.launched()
    for wrong in (launch.epoch - 1, launch.epoch + 1):
        old = launch.model_copy(update={"epoch": wrong})
        await hostile.say(a_report(old, AgentEvent.ENDED))
    await hostile.settle()
    assert (await service.status("2-1"))["state"] == "placed"


# -------------------------------------------------------------- what it claims to be
async def test_it_names_itself_neither_owner_nor_provider_nor_labels(
    service: Service,
) -> None:
    """The record decides who it is; a label of its own opens no class."""
    service.edit_catalog(
        service.catalog.read_text().replace(
            "- {name: small, title: Small,",
            "- {name: small, labels: {room: b12}, title: Small,",
        )
    )
    await service.stop()
    await service.start()
    hostile = await a_hostile_one(service)
    picture = a_rich_picture(datetime.now(UTC)).model_dump(mode="json", by_alias=True)
    lie = {"value": "alice"}
    picture["identity"] = {"name": lie, "owner": lie, "provider": lie}
    assert any(label["value"] == "b12" for label in picture["labels"])
    await hostile.say(CapabilitiesChanged(capabilities=picture))
    await hostile.settle()
    machine = await shown(service)
    told = machine["capabilities"]["identity"]
    assert told["name"]["value"] == "hostile"
    assert told["owner"]["value"] == "bob"
    assert told["provider"]["value"] == "local"
    assert machine["owner"] == "bob"
    for principal, key in ((BOB, "2-1"), (a_principal(), "1-1")):
        ask = an_ask(principal=principal, class_name="small")
        start = await AttendedStart(service, ask).open()
        assert (await start.ended()).kind is OutcomeKind.REFUSED
        assert (await service.status(key))["holds"] is False
    assert hostile.launches == []


async def test_it_gets_no_work_of_others_whatever_it_offers(service: Service) -> None:
    """Weak isolation is its owner's, also when an admin and the owner lend it."""
    for deed in ("audience", "lending"):
        await service.enrol("hostile", "bob")
        await service.json(
            f"internal/machines/hostile/{deed}", method="POST", body={"choice": "guest"}
        )
    hostile = await a_hostile_one(service)
    start = await AttendedStart(service, an_ask()).open()
    assert (await start.ended()).kind is OutcomeKind.REFUSED
    assert hostile.launches == []


async def test_its_words_reach_no_further_than_its_own_work(service: Service) -> None:
    """No holder, no other machine, no flood of text, and no impossible time."""
    hostile = await a_hostile_one(service)
    start = await AttendedStart(service, an_ask(principal=BOB)).open()
    await start.until("placed")
    launch = await hostile.launched()
    lie = Explanation(
        reason=Reason.GPU_BUSY,
        machine="honest",
        subject=HOSTILE,
        detail=HOSTILE,
        holders=(Holder(workload="w1", owner="alice", title="secret"),),
    )
    moments = [
        datetime.min.replace(tzinfo=UTC),
        datetime.now(UTC) + timedelta(days=4000),
        datetime.fromisoformat("0001-01-01T00:00:00+14:00"),
    ]
    for number, at in enumerate(moments, start=1):
        await hostile.say(
            a_report(launch, AgentEvent.NOTE, seq=number, at=at, explanation=lie)
        )
    await hostile.say(a_report(launch, AgentEvent.FAILED, explanation=lie))
    outcome = await start.ended()
    assert outcome.kind is OutcomeKind.FAILED
    timeline = await service.json("internal/servers/2-1/timeline")
    text = json.dumps(timeline)
    assert len(text) < 20_000
    assert "\\u001b" not in text
    assert "honest" not in text
    assert "alice" not in text
    now = datetime.now(UTC)
    for event in timeline["events"]:
        assert abs(datetime.fromisoformat(event["at"]) - now) < timedelta(minutes=5)
    workload = (await service.status("2-1"))["workload"]
    page = await service.fetch(f"workloads/{workload}", token="token hub-token-of-bob")
    assert page.code == 200


# ------------------------------------------------------------------ floods and noise
async def test_an_endless_inventory_ends_the_link_and_nothing_else(
    service: Service,
) -> None:
    """Page after page without a last one."""
    honest, hostile = await an_honest_one(service), await a_hostile_one(service)
    for page in range(60):
        if hostile.link is None:
            break
        items = tuple(
            InventoryItem(
                allocation=f"a-{page}-{number}",
                epoch=1,
                event=AgentEvent.SERVING,
                seq=1,
            )
            for number in range(200)
        )
        await hostile.say(Inventory(items=items, last=False))
    goodbye = await hostile.dismissed()
    assert goodbye is not None
    assert goodbye.code == "inventory_too_long"
    await honest.settle()
    assert (await service.status())["state"] == "ready"


def an_item(allocation: str, epoch: int) -> str:
    """Return an inventory of one item, as text: no model would make it."""
    item = {"allocation": allocation, "epoch": epoch, "event": "ended", "seq": 1}
    return json.dumps({"type": "inventory", "items": [item]})


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"type": "report"}',
        '{"type": "become_admin"}',
        '{"type": "hello"}',
        '{"type": "heartbeat", "sent_at": "yesterday"}',
        an_item("a", 2**70),
        an_item("x" * 101, 1),
        "x" * (MAX_MESSAGE_BYTES + 1),
    ],
    ids=[
        "noise",
        "list",
        "half",
        "unknown",
        "hello",
        "time",
        "number",
        "name",
        "giant",
    ],
)
async def test_noise_ends_the_link_and_nothing_else(
    service: Service, text: str
) -> None:
    """It is told where the limit allows it, and may come again."""
    honest, hostile = await an_honest_one(service), await a_hostile_one(service)
    assert hostile.link is not None
    await hostile.link.write_message(text)
    goodbye = await hostile.dismissed()
    if len(text) <= MAX_MESSAGE_BYTES:
        assert goodbye is not None
        assert goodbye.code == "protocol_unsupported"
    await hostile.connect()
    assert hostile.link is not None
    await honest.settle()
    assert (await service.status())["state"] == "ready"
    assert "Traceback" not in service.log.read_text()


async def test_it_uses_up_nobodys_epochs(service: Service) -> None:
    """An order that nobody can have given ends its link; others are placed on."""
    honest = await an_honest_one(service)
    hostile = ScriptedAgent(service, await service.enrol("hostile", "bob"))
    for epoch in (2**63 - 1, 2**45, 2**34):
        await hostile.connect()
        await hostile.hang_up()
        link = await hostile_link(hostile, highest_epoch=epoch)
        goodbye = link.goodbye
        if epoch == 2**34:
            assert goodbye is None, "as after a restore from a backup"
        else:
            assert goodbye is not None
            assert goodbye.code == "epoch_implausible"
    start = await AttendedStart(service, an_ask(2)).open()
    assert (await start.ended()).kind is OutcomeKind.READY
    assert honest.launches[-1].epoch < 2**36


class hostile_link:  # noqa: N801 - reads as what it opens
    """One link with a hello of the test's own."""

    def __init__(self, agent: ScriptedAgent, **claims: Any) -> None:
        """Say hello as *agent*, with *claims*."""
        self._agent, self._claims = agent, claims
        self.goodbye: Goodbye | None = None

    def __await__(self) -> Any:
        """Dial, and hear what comes of it."""
        return self._open().__await__()

    async def _open(self) -> hostile_link:
        agent = self._agent
        agent.heard.clear()
        claims = self._claims
        say = agent.say

        async def lie(message: Any) -> None:
            if isinstance(message, Hello):
                message = message.model_copy(update=claims)
            await say(message)

        agent.say = lie  # type: ignore[method-assign]
        try:
            await agent.connect()
        finally:
            agent.say = say  # type: ignore[method-assign]
        self.goodbye = next(
            (item for item in agent.heard if isinstance(item, Goodbye)), None
        )
        await agent.hang_up()
        return self


# --------------------------------------------------------------------- its secrets
async def test_a_code_buys_one_token_however_often_it_is_sent(service: Service) -> None:
    """At once, again, and after the machine was revoked."""
    code = (
        await service.json(
            "internal/codes", method="POST", body={"name": "far", "owner": "bob"}
        )
    )["code"]
    answers = await asyncio.gather(
        *(
            service.fetch("api/enrol", method="POST", token=None, body={"code": code})
            for _ in range(8)
        )
    )
    assert sorted(answer.code for answer in answers) == [200] + [403] * 7
    await service.json("internal/machines/far/revoke", method="POST")
    again = await service.fetch(
        "api/enrol", method="POST", token=None, body={"code": code}
    )
    assert again.code == 403


async def test_a_revoked_agent_is_heard_no_more(service: Service) -> None:
    """Not on the link that it has, not on another one, and its work is kept."""
    hostile = await a_hostile_one(service)
    start = await AttendedStart(service, an_ask(principal=BOB)).open()
    await start.until("placed")
    launch = await hostile.launched()
    await service.json("internal/machines/hostile/revoke", method="POST")
    goodbye = await hostile.dismissed()
    assert goodbye is not None
    assert (goodbye.code, goodbye.retry) == ("revoked", False)
    with pytest.raises(HTTPClientError) as caught:
        await hostile.connect()
    assert caught.value.code == 401
    assert (await service.status("2-1"))["state"] == "placed"
    assert launch.allocation


async def test_it_reads_neither_pages_nor_other_peoples_secrets(
    service: Service,
) -> None:
    """A launch has its own workload's environment, and the token opens one door."""
    honest, hostile = await an_honest_one(service), await a_hostile_one(service)
    start = await AttendedStart(service, an_ask(principal=BOB)).open()
    await start.until("placed")
    launch = await hostile.launched()
    heard = "".join(encode(message) for message in hostile.heard)
    assert "alice" not in heard
    for value in honest.launches[0].spec.environment.values():
        assert (
            value == service.url
            or value not in heard
            or value == (launch.spec.environment.get("JUPYTERHUB_API_TOKEN"))
        )
    for path in ("api/machines", "internal/machines", "api/timeline", "machines"):
        answer = await service.fetch(path, token=f"Bearer {hostile.token}")
        assert answer.code in {302, 401, 403}, path
    assert SECRET not in heard
