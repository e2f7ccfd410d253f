"""Files between machines through the real service: who may, and what it holds of them.

The machines are played: each holds its own token, and may try whatever it likes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fleet_controller import an_ask
from fleet_service import Service, a_service
from scripted_agent import ScriptedAgent
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection

from fleet_contracts.protocol import AgentEvent, Launch, SendFiles, Stop
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Choice
from fleet_hub.admission import Ask, OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

PART = 256 * 1024


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service whose user alice has two machines, and bob one."""
    async with a_service(tmp_path) as running:
        running.hub.add_user("alice")
        running.hub.add_user("bob")
        yield running


@dataclass
class Copying:
    """A start that begins with a copy, as far as its launch."""

    service: Service
    near: ScriptedAgent
    far: ScriptedAgent
    other: ScriptedAgent
    launch: Launch
    start: AttendedStart

    async def dial(
        self, agent: ScriptedAgent | None, end: str, **changes: int | str
    ) -> WebSocketClientConnection:
        """Return *agent*'s *end* of a transfer."""
        values = {"allocation": self.launch.allocation, "epoch": self.launch.epoch}
        values |= changes
        base = self.service.url.replace("http", "ws", 1)
        url = f"{base}agent/files/{values['allocation']}/{values['epoch']}/{end}"
        headers = {"Authorization": f"Bearer {agent.token}"} if agent else {}
        return await self.service.dial(HTTPRequest(url, headers=headers))

    async def refused(
        self, agent: ScriptedAgent | None, end: str, **changes: int | str
    ) -> int:
        """Return the status with which an end is refused."""
        with pytest.raises(HTTPClientError) as refusal:
            await self.dial(agent, end, **changes)
        return int(refusal.value.code)

    async def both(self) -> tuple[WebSocketClientConnection, WebSocketClientConnection]:
        """Return the two ends that belong together, the receiver first."""
        receiver = await self.dial(self.far, "receive")
        await self.near.until(lambda: bool(orders(self.near)))
        return receiver, await self.dial(self.near, "send")

    async def ended(self, link: WebSocketClientConnection) -> bool:
        """Return whether the next word of *link* is its last."""
        is_over = await link.read_message() is None
        self.service.over(link)
        return is_over


def orders(agent: ScriptedAgent) -> list[SendFiles]:
    """Return what *agent* was told to send."""
    return [message for message in agent.heard if isinstance(message, SendFiles)]


@pytest_asyncio.fixture
async def copying(service: Service) -> Copying:
    """Return a start on far whose files are on near."""
    near = ScriptedAgent(service, await service.enrol("near", "alice"), cores=2)
    await near.connect()
    first = await AttendedStart(service, an_ask(class_name="small")).open()
    assert (await first.ended()).kind is OutcomeKind.READY
    await service.json("internal/servers/1-1/stop?wait=60", method="POST")
    far = ScriptedAgent(service, await service.enrol("far", "alice"))
    far.is_automatic = False
    await far.connect()
    other = ScriptedAgent(service, await service.enrol("other", "bob"))
    await other.connect()
    start = await AttendedStart(service, a_copy("second")).open()
    launch = await far.launched()
    await far.report(launch, AgentEvent.ACCEPTED)
    return Copying(service, near, far, other, launch, start)


def a_copy(attempt: str) -> Ask:
    """Return an ask for what only far can run, with a copy of the files on near."""
    choice = {"profile": "jupyter", "class": "whole", "files": "copy"}
    return an_ask(attempt=attempt, choice=Choice.model_validate(choice))


async def test_what_one_end_says_the_other_hears_and_nobody_else_may(
    copying: Copying,
) -> None:
    """Each end is for one machine and one allocation; the order names the old folder."""
    spec = copying.launch.spec
    assert spec.copy_order is not None
    for agent in (copying.near, copying.other):
        assert await copying.refused(agent, "receive") == 403
    for agent in (copying.far, copying.other):
        assert await copying.refused(agent, "send") == 403
    for end in ("send", "receive"):
        assert await copying.refused(None, end) == 401
        for wrong in ({"epoch": copying.launch.epoch + 1}, {"allocation": "x"}):
            for agent in (copying.near, copying.far):
                assert await copying.refused(agent, end, **wrong) == 403
    assert await copying.refused(copying.near, "send") == 409, "nobody waits yet"

    receiver, sender = await copying.both()
    (order,) = orders(copying.near)
    assert order.notebook != spec.notebook
    assert (order.owner, order.driver) == ("alice", spec.runtime.driver)
    assert await copying.refused(copying.near, "send") == 409, "one is enough"
    parts = [os.urandom(PART) for _ in range(8)]
    for part in parts:
        await sender.write_message(part, binary=True)
        assert await receiver.read_message() == part
    await receiver.write_message("arrived")
    assert await copying.ended(sender)
    assert await copying.ended(receiver)
    assert orders(copying.other) == orders(copying.far) == []


async def test_a_transfer_is_over_with_the_start_that_it_is_for(
    copying: Copying,
) -> None:
    """Whoever goes on sending and receiving all the same is cut off."""
    receiver, sender = await copying.both()
    await sender.write_message(b"x" * PART, binary=True)
    assert await receiver.read_message() is not None
    await copying.service.json("internal/servers/1-1/leave", method="POST")
    await copying.far.until(lambda: isinstance(copying.far.heard[-1], Stop))
    await sender.write_message(b"y" * PART, binary=True)
    assert await copying.ended(receiver)
    assert await copying.ended(sender)
    assert await copying.refused(copying.far, "receive") == 403
    assert await copying.refused(copying.near, "send") == 403


async def test_one_end_that_dies_ends_the_other_and_it_can_begin_anew(
    copying: Copying,
) -> None:
    """Either one, or the controller itself."""
    receiver, sender = await copying.both()
    sender.close()
    await copying.service.heard_out(sender)
    assert await copying.ended(receiver)
    copying.near.heard.clear()
    receiver, sender = await copying.both()
    receiver.close()
    await copying.service.heard_out(receiver)
    assert await copying.ended(sender)
    copying.near.heard.clear()
    receiver, sender = await copying.both()
    await copying.service.kill_child()
    assert await copying.ended(receiver)
    assert await copying.ended(sender)
    await copying.near.gone()
    await copying.far.gone()
    await copying.near.connect()
    await copying.far.connect()
    copying.near.heard.clear()
    receiver, sender = await copying.both()
    await sender.write_message(b"once more", binary=True)
    assert await receiver.read_message() == b"once more"


async def test_a_machine_with_the_files_that_is_away_is_told_at_once(
    copying: Copying,
) -> None:
    """The receiver need not wait to find out."""
    await copying.near.hang_up()
    receiver = await copying.dial(copying.far, "receive")
    assert await copying.ended(receiver)
    assert receiver.close_reason == "the machine with the files is away"


async def test_what_begins_with_a_copy_waits_for_the_machine_with_the_files(
    copying: Copying,
) -> None:
    """It holds no machine meanwhile, says which one is away, and starts as it is back."""
    service, near, far = copying.service, copying.near, copying.far
    await far.end(copying.launch)
    assert (await copying.start.ended()).kind is OutcomeKind.STOPPED
    await near.hang_up()
    await service.offline("near")
    start = await AttendedStart(service, a_copy("third")).open()
    waits = (await start.until("waiting")).event.explanation
    assert waits is not None
    assert (waits.reason, waits.subject) == (Reason.COPY_SOURCE_AWAY, "near")
    assert len(far.launches) == 1
    await near.connect()
    launch = await far.launched(2)
    assert launch.spec.copy_order is not None


async def test_a_text_among_the_files_ends_the_transfer(copying: Copying) -> None:
    """Nothing else is ever said there."""
    receiver, sender = await copying.both()
    await sender.write_message("words")
    assert await copying.ended(receiver)


async def test_much_passes_and_little_is_held(copying: Copying) -> None:
    """The service's memory grows by a fraction of what went through it."""
    receiver, sender = await copying.both()
    before = peak(copying.service.child())
    part = os.urandom(PART)

    async def send() -> None:
        for _ in range(512):
            await sender.write_message(part, binary=True)

    sending = asyncio.create_task(send())
    for _ in range(512):
        assert await receiver.read_message() == part
    await sending
    grown = peak(copying.service.child()) - before
    assert grown < 512 * PART // 4


def peak(pid: int) -> int:
    """Return the most memory that a process ever held, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
