"""The WebSocket that a start of the Hub is attended through."""

from __future__ import annotations

import asyncio

import structlog
from pydantic import TypeAdapter, ValidationError
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler
from typing_extensions import override

from fleet_hub.admission import Ask, FromSpawner
from fleet_hub.controller.attendance import Attendance
from fleet_hub.controller.errors import StoreError
from fleet_hub.service.context import Context
from fleet_hub.service.tokens import same


log = structlog.get_logger()

_FROM_SPAWNER: TypeAdapter[FromSpawner] = TypeAdapter(FromSpawner)


class AttendSocket(WebSocketHandler):
    """One attended start.  That it closes never gives anything back."""

    _attendance: Attendance | None = None
    _pump: asyncio.Task[None] | None = None

    @override
    def initialize(self, *, context: Context) -> None:
        self._context = context

    @override
    def prepare(self) -> None:
        presented = self.request.headers.get("Authorization", "")
        if not same(presented, f"Bearer {self._context.spawner_secret}"):
            raise HTTPError(401, log_message="wrong spawner secret")

    @override
    def open(self, *args: str, **kwargs: str) -> None:
        self.set_nodelay(value=True)

    @override
    def on_message(self, message: str | bytes) -> None:
        try:
            request = _FROM_SPAWNER.validate_json(message)
        except ValidationError:
            # The input is left out: it holds the environment.
            self.close(1008, "the message is not understood")
            return
        if isinstance(request, Ask) and self._attendance is None:
            self._attendance = Attendance(self._context.core, request)
            self._pump = asyncio.create_task(self._run(self._attendance))
        elif self._attendance is not None and not isinstance(request, Ask):
            self._attendance.park()
        else:
            self.close(1008, "one ask per link, and it comes first")

    async def _run(self, attendance: Attendance) -> None:
        messages = attendance.messages()
        try:
            async for message in messages:
                await self.write_message(message.model_dump_json(by_alias=True))
            self.close()
        except WebSocketClosedError:
            log.debug("start unattended")
        except StoreError as error:
            log.error(  # noqa: TRY400 - the message says all; no traceback helps
                "start not stored", fault=str(error)
            )
            self.close(1011, "the store cannot be written")
        except Exception:
            log.exception("attended start failed")
            self.close(1011, "internal error")
        finally:
            await messages.aclose()

    @override
    def on_close(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
