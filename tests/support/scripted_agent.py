"""An agent that speaks the link over a real WebSocket, and runs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fake_agent import some_capabilities
from patience import PATIENCE
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection

from fleet_contracts.protocol import (
    PROTOCOL,
    Acknowledge,
    AgentEvent,
    Forget,
    Goodbye,
    Heartbeat,
    Hello,
    Inventory,
    InventoryItem,
    Launch,
    Report,
    Stop,
    ToAgent,
    decode_to_agent,
    encode,
)


if TYPE_CHECKING:
    from fleet_service import Service


class ScriptedAgent:
    """An agent that speaks the protocol over a real WebSocket, and runs nothing.

    Its ledger outlives its links, as a real agent's does.
    """

    def __init__(self, service: Service, token: str, *, cores: int = 4) -> None:
        """Speak with *token*."""
        self.service = service
        self.token = token
        self.cores = cores
        self.more: dict[str, Any] = {}
        """What it says of itself beside the usual."""
        self.ledger: dict[str, InventoryItem] = {}
        self.outbox: list[Report] = []
        self.launches: list[Launch] = []
        self.heard: list[ToAgent] = []
        self.link: WebSocketClientConnection | None = None
        self.ledger_id = "ledger-1"
        self.boot_id = "boot-1"
        self.news = asyncio.Event()
        self.is_automatic = True
        """It serves what it is told to launch, and ends what it is told to stop."""
        self._reader: asyncio.Task[None] | None = None

    _greeted = False

    async def connect(self, *, protocol: int = PROTOCOL) -> None:
        """Dial, say hello, and tell the ledger and what was not acknowledged.

        Returns once the controller has taken it in, or closed the link.
        """
        self._greeted = False
        url = self.service.url.replace("http", "ws", 1) + "agent"
        request = HTTPRequest(url, headers={"Authorization": f"Bearer {self.token}"})
        self.link = await self.service.dial(request)
        self.service.agents.append(self)
        await self.say(
            Hello(
                protocol=protocol,
                agent_version="1.0",
                boot_id=self.boot_id,
                ledger_id=self.ledger_id,
                drivers=("native",),
                capabilities=some_capabilities(self.cores) | self.more,
                highest_epoch=max(
                    (launch.epoch for launch in self.launches), default=0
                ),
                inventory_size=len(self.ledger),
            )
        )
        self._reader = asyncio.create_task(self._read(self.link))
        await self.until(lambda: self._greeted or self.link is None)
        if self.link is not None:
            await self.settle()

    async def settle(self) -> None:
        """Return once the controller has taken in everything said so far."""
        assert self.link is not None
        answered = asyncio.Event()
        self.link.on_pong = lambda data: answered.set()  # type: ignore[method-assign]
        self.link.ping(b"settle")
        await asyncio.wait_for(answered.wait(), PATIENCE)

    async def greet(self) -> None:
        """Tell the inventory, then the outbox, then a heartbeat: as agents do."""
        await self.say(Inventory(items=tuple(self.ledger.values()), last=True))
        for report in list(self.outbox):
            await self.say(report)
        await self.beat()

    async def beat(self) -> None:
        """Say that it lives."""
        from datetime import UTC, datetime  # noqa: PLC0415

        await self.say(Heartbeat(sent_at=datetime.now(UTC)))

    async def say(self, message: Any) -> None:
        """Send *message*."""
        assert self.link is not None
        await self.link.write_message(encode(message))

    async def _read(self, link: WebSocketClientConnection) -> None:
        while (text := await link.read_message()) is not None:
            message = decode_to_agent(text)
            self.heard.append(message)
            await self._act(message)
            self.news.set()
        self.service.over(link)
        self.link = None
        self.news.set()

    async def _act(self, message: ToAgent) -> None:
        if message.type == "welcome":
            await self.greet()
            self._greeted = True
        elif isinstance(message, Acknowledge):
            self.outbox = [
                report
                for report in self.outbox
                if report.allocation != message.allocation or report.seq > message.seq
            ]
        elif isinstance(message, Forget):
            self.ledger.pop(message.allocation, None)
        elif isinstance(message, Launch):
            self.launches.append(message)
            if self.is_automatic:
                await self.serve(message)
        elif isinstance(message, Stop) and self.is_automatic:
            await self.end(message)

    async def serve(self, launch: Launch) -> None:
        """Take an allocation to a ready server."""
        if launch.allocation in self.ledger:
            return
        await self.report(launch, AgentEvent.ACCEPTED)
        await self.report(launch, AgentEvent.PREPARED)
        await self.report(
            launch, AgentEvent.SERVING, url=f"http://127.0.0.1:9/{launch.allocation}/"
        )

    async def end(self, stop: Stop | Launch) -> None:
        """Say that nothing runs any more."""
        await self.report(stop, AgentEvent.ENDED)

    async def report(
        self, about: Launch | Stop, event: AgentEvent, **more: Any
    ) -> None:
        """Note *event* durably, then report it."""
        from datetime import UTC, datetime  # noqa: PLC0415

        known = self.ledger.get(about.allocation)
        seq = (known.seq if known else 0) + 1
        report = Report(
            allocation=about.allocation,
            epoch=about.epoch,
            seq=seq,
            at=datetime.now(UTC),
            event=event,
            **more,
        )
        if event in {AgentEvent.PROGRESS, AgentEvent.NOTE} and known is not None:
            self.ledger[about.allocation] = known.model_copy(update={"seq": seq})
        else:
            self.ledger[about.allocation] = InventoryItem(
                allocation=about.allocation,
                epoch=about.epoch,
                event=event,
                seq=seq,
                url=more.get("url"),
                explanation=more.get("explanation"),
            )
        self.outbox.append(report)
        if self.link is not None:
            await self.say(report)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Return once *is_so*, judged after each message."""
        async with asyncio.timeout(PATIENCE):
            while not is_so():
                self.news.clear()
                await self.news.wait()

    async def launched(self, count: int = 1) -> Launch:
        """Return the latest launch once there are *count*."""
        await self.until(lambda: len(self.launches) >= count)
        return self.launches[-1]

    async def dismissed(self) -> Goodbye | None:
        """Return what the controller said before it closed the link."""
        await self.until(lambda: self.link is None)
        return next(
            (item for item in reversed(self.heard) if isinstance(item, Goodbye)), None
        )

    async def gone(self) -> None:
        """Return once the link has closed, from whichever side."""
        await self.until(lambda: self.link is None)

    async def hang_up(self) -> None:
        """Close the link."""
        if self.link is not None:
            self.link.close()
        if self._reader is not None:
            await self._reader
        self.link = None
