"""The Spawner's side: status, stop, leave, retire, and offers."""

from __future__ import annotations

from typing_extensions import override

from fleet_contracts.allocations import ENDED, State
from fleet_contracts.workloads import ServerKey
from fleet_hub.admission import (
    OffersRequest,
    OpenedRequest,
    StopRequest,
    ValidateRequest,
)
from fleet_hub.controller import offering, opening, stopping
from fleet_hub.controller.records import Workload
from fleet_hub.service.base import SpawnerHandler
from fleet_hub.service.timeline import TimelineAnswers
from fleet_hub.service.waiting import wait_until


SETTLED = ENDED | {State.READY}
KEY = r"(?P<user_id>[0-9]{1,18})-(?P<server_id>[0-9]{1,18})"


class ServerHandler(SpawnerHandler):
    """Shared by everything below ``internal/servers/<user id>-<server id>``."""

    def key(self) -> ServerKey:
        """Return the server that the path names."""
        return ServerKey(
            user_id=int(self.path_kwargs["user_id"]),
            server_id=int(self.path_kwargs["server_id"]),
        )

    def known(self) -> Workload | None:
        """Return the server's workload, if the controller has heard of it."""
        return self.core.model.by_key(self.key())

    def answer_status(self) -> None:
        """Finish with the server's status as of now."""
        self.answer(self.context.status(self.key()))


class StatusHandler(ServerHandler):
    """What the controller knows about one server."""

    @override
    async def get(self, user_id: str, server_id: str) -> None:
        """Answer at once, or once it has settled."""
        record = self.known()
        settles = self.get_query_argument("until", "") == "settled"
        if record is not None and settles:
            record = await wait_until(
                self.core,
                record.id,
                lambda now: now is None or now.state in SETTLED,
                wait_seconds=self.wait_seconds(),
            )
            if record is not None and record.state is State.READY:
                # A Hub that asks this way has just been started.
                self.context.runner.routes.expect()
        self.answer_status()

    @override
    async def delete(self, user_id: str, server_id: str) -> None:
        """Give everything back and forget the key."""
        record = self.known()
        if record is not None:
            stopping.retire(self.core, record)
        self.answer_status()


class StopHandler(ServerHandler):
    """The end of one server."""

    @override
    async def post(self, user_id: str, server_id: str) -> None:
        """Record the wish, then wait for the machine's word."""
        request = self.body(StopRequest)
        record = self.known()
        if record is not None:
            stopping.stop(self.core, record, by=request.by, now=request.now)
            await wait_until(
                self.core,
                record.id,
                lambda now: now is None or now.state in ENDED,
                wait_seconds=self.wait_seconds(),
            )
        self.answer_status()


class OpenedHandler(ServerHandler):
    """Whether anybody came for a server that was started in their absence."""

    @override
    async def post(self, user_id: str, server_id: str) -> None:
        """Take in the Hub's word; what nobody opened in time is given back."""
        request = self.body(OpenedRequest)
        record = self.known()
        if record is not None:
            opening.tell(self.core, record, opened=request.opened)
        self.answer_status()


class LeaveHandler(ServerHandler):
    """Leaving the line."""

    @override
    async def post(self, user_id: str, server_id: str) -> None:
        """Leave; what is ready has to be stopped instead."""
        record = self.known()
        if record is not None:
            stopping.leave(self.core, record)
        self.answer_status()


class ServerTimelineHandler(TimelineAnswers, ServerHandler):
    """The timeline, for the Hub's progress stream."""

    @override
    async def get(self, user_id: str, server_id: str) -> None:
        """Answer at once, or once there is something new."""
        record = self.known()
        await self.answer_timeline(record.id if record is not None else None)


class OffersHandler(SpawnerHandler):
    """What a principal could start."""

    @override
    def post(self) -> None:
        """Answer with every profile and class that they may see."""
        request = self.body(OffersRequest)
        self.answer(offering.offers_for(self.core, request.principal, request.key))


class ValidateHandler(SpawnerHandler):
    """Whether a choice may be asked for."""

    @override
    def post(self) -> None:
        """Answer with the normalised choice, or why not."""
        request = self.body(ValidateRequest)
        self.answer(offering.validate(self.core, request.principal, request.options))
