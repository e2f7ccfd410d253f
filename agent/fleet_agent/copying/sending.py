"""Sending a notebook folder of this machine to where the controller says.

Only a folder of the owner whom the order names is read, only while nothing here uses
it, and only for the transfer that the order is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import structlog
from tornado.httpclient import HTTPClientError
from tornado.iostream import StreamClosedError
from tornado.websocket import (
    WebSocketClientConnection,
    WebSocketClosedError,
    WebSocketError,
)

from fleet_agent.copying.errors import CopyError
from fleet_agent.copying.frames import Writer
from fleet_agent.copying.lines import STALL_SECONDS, Dial
from fleet_agent.copying.reading import Source, frames
from fleet_agent.drivers.base import Driver, DriverError
from fleet_agent.drivers.common.accounts import HOME
from fleet_agent.drivers.common.threads import to_its_end
from fleet_agent.ledger_entry import Entry, Key
from fleet_contracts.protocol import SendFiles
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName


_BATCH_BYTES: Final = 256 * 1024
_AT_ONCE: Final = 4
"""Transfers that this machine sends at the same time; others wait."""

_log = structlog.stdlib.get_logger("fleet_agent.copying")


class Sending:
    """Every transfer that this machine sends."""

    def __init__(
        self,
        *,
        dial: Dial,
        drivers: Mapping[DriverName, Driver],
        entries: Callable[[], Iterable[Entry]],
    ) -> None:
        """Read the folders of *drivers*; *entries* is what runs here."""
        self._dial = dial
        self._drivers = drivers
        self._entries = entries
        self._sends: dict[Key, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def send(self, order: SendFiles) -> None:
        """Begin to send; an order that is repeated takes the place of the earlier."""
        key = Key(order.allocation, order.epoch)
        earlier = self._sends.pop(key, None)
        if earlier is not None:
            earlier.cancel()
        task = asyncio.create_task(self._send(key, order))
        self._sends[key] = task
        task.add_done_callback(lambda done: self._drop(key, done))

    async def close(self) -> None:
        """Send nothing any more."""
        tasks = list(self._sends.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _drop(self, key: Key, task: asyncio.Task[None]) -> None:
        if self._sends.get(key) is task:
            del self._sends[key]

    async def _send(self, key: Key, order: SendFiles) -> None:
        try:
            async with self._turns:
                connection = await self._dial(key, "send")
                try:
                    await self._stream(connection, order)
                finally:
                    connection.close()
        except (
            *(HTTPClientError, WebSocketError, WebSocketClosedError),
            *(StreamClosedError, TimeoutError, OSError),
        ) as error:
            # Whoever receives asks again.
            _log.warning(
                "files were not sent", **key._asdict(), fault=str(error) or repr(error)
            )
        except Exception:  # noqa: BLE001 - it must not end the agent
            _log.exception("files were not sent", **key._asdict())

    async def _stream(
        self, connection: WebSocketClientConnection, order: SendFiles
    ) -> None:
        told = self._frames(order)
        try:
            while part := await to_its_end(told.next_batch):
                async with asyncio.timeout(STALL_SECONDS):
                    await connection.write_message(part, binary=True)
        finally:
            await to_its_end(told.close)
        # It is over once the other side has all of it, and says so by hanging up.
        async with asyncio.timeout(STALL_SECONDS):
            while await connection.read_message() is not None:
                pass

    def _frames(self, order: SendFiles) -> Frames:
        try:
            return Frames(frames(self._source(order)))
        except DriverError as error:
            detail = error.explanation.detail or "the folder cannot be used"
            reason = (
                error.reason if isinstance(error, CopyError) else Reason.COPY_FAILED
            )
            writer = Writer()
            return Frames(iter((writer.begin(), writer.refused(reason, detail))))

    def _source(self, order: SendFiles) -> Source:
        """Return the folder that *order* is about, if it may be read.

        Raises:
            DriverError: it may not.
        """
        driver = self._drivers.get(order.driver)
        folder = (
            None
            if driver is None
            else driver.notebook(order.notebook, order.owner_id, order.owner)
        )
        if folder is None:
            raise CopyError("no driver", detail="its driver is not offered any more")
        for entry in self._entries():
            spec = entry.spec
            is_used = (
                spec is not None
                and (spec.notebook, spec.runtime.driver)
                == (order.notebook, order.driver)
                and (entry.key != (order.allocation, order.epoch))
            )
            if entry.holds and is_used:
                raise CopyError(
                    "in use",
                    reason=Reason.COPY_SOURCE_AWAY,
                    detail="a server still uses the files there",
                )
        return Source(
            path=folder.path,
            uid=folder.uid,
            seen_as=HOME,
            limit_bytes=order.limit_bytes,
        )


class Frames:
    """The frames of one stream, taken in threads one after the other."""

    def __init__(self, told: Iterator[bytes]) -> None:
        """Take them from *told*."""
        self._told = told

    def next_batch(self) -> bytes:
        """Return some frames; empty: there are no more."""
        first = next(self._told, None)
        if first is None:
            return b""
        parts, size = [first], len(first)
        while size < _BATCH_BYTES:
            part = next(self._told, None)
            if part is None:
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Hold no file open any more."""
        close = getattr(self._told, "close", None)
        if close is not None:
            close()
