"""Having the controller try this machine's address, over the link.

Done on each link whose welcome does not know the address yet, and when the machine is
asked to look at itself again: what a firewall kept out may be let in by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from fleet_agent.address_listener import listening
from fleet_agent.errors import SettingsError
from fleet_contracts.base import Message
from fleet_contracts.enrolment import LISTEN_SECONDS
from fleet_contracts.protocol import AddressVerdict, Welcome
from fleet_contracts.reasons import Reason
from fleet_contracts.sentences import remedy, sentence


AGAIN_SECONDS = 10.0
"""The controller tries nothing again at once."""
_MOST_TRIES = 5

_log = structlog.stdlib.get_logger("fleet_agent")


class AddressDesk:
    """Offers one address until it was tried."""

    def __init__(
        self,
        *,
        bind: str,
        advertise: str,
        send: Callable[[Message], None],
        again_seconds: float = AGAIN_SECONDS,
    ) -> None:
        """Offer *advertise*, at which what listens on *bind* is reached."""
        self._bind = bind
        self._advertise = advertise
        self._send = send
        self._again_seconds = again_seconds
        self._wanted = False
        self._verdict: asyncio.Future[AddressVerdict] | None = None
        self._task: asyncio.Task[None] | None = None

    def welcomed(self, welcome: Welcome) -> None:
        """Offer the address if the controller wants one and knows another."""
        self._wanted = (
            welcome.wants_address and welcome.approved_address != self._advertise
        )
        self.offer()

    def offer(self) -> None:
        """Offer the address, unless it is approved or offered already."""
        if self._wanted and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    def told(self, verdict: AddressVerdict) -> None:
        """Take the controller's word."""
        if self._verdict is not None and not self._verdict.done():
            self._verdict.set_result(verdict)

    async def close(self) -> None:
        """Listen no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        for _ in range(_MOST_TRIES):
            verdict = await self._once()
            why = verdict.explanation if verdict is not None else None
            if verdict is None or (why and why.reason is Reason.ADDRESS_UNKNOWN):
                await asyncio.sleep(self._again_seconds)
                continue
            if why is None:
                self._wanted = False
                _log.info("address approved", address=self._advertise)
            else:
                _log.error(
                    "the controller does not lead notebooks to this machine",
                    address=self._advertise,
                    why=sentence(why),
                    remedy=remedy(why.reason),
                )
            return

    async def _once(self) -> AddressVerdict | None:
        """Return what came of one offer; None: nothing, such as a broken link."""
        self._verdict = asyncio.get_running_loop().create_future()
        try:
            async with (
                asyncio.timeout(LISTEN_SECONDS),
                listening(bind=self._bind, advertise=self._advertise) as offer,
            ):
                self._send(offer)
                return await self._verdict
        except TimeoutError:
            return None
        except SettingsError as error:
            _log.error("the address cannot be offered", error=str(error))
            return None
