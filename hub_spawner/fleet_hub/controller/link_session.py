"""One agent's link, without any I/O: which message may come when, and what it does.

The WebSocket hands over text and sends what it is given.  ``receive`` raises
``LinkRefusedError`` when the link must be closed, with what to say before.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from fleet_contracts.protocol import (
    PROTOCOL,
    AddressOffer,
    CapabilitiesChanged,
    FromAgent,
    Heartbeat,
    Hello,
    Inventory,
    ProtocolError,
    Report,
    ToAgent,
    decode_from_agent,
)
from fleet_hub.controller import machines, reconciling
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import LinkRefusedError


log = structlog.get_logger()


class LinkSession:
    """The controller's end of one link to *machine*."""

    def __init__(
        self,
        core: Core,
        machine: str,
        *,
        attach: Callable[[], bool],
        send: Callable[[ToAgent], None],
        offered: Callable[[AddressOffer], None] = lambda offer: None,
    ) -> None:
        """Speak with *machine*; ``attach`` claims its only link.

        ``offered`` has an address tried, which takes a while, and tells the agent.
        """
        self._core = core
        self.machine = machine
        self._attach = attach
        self._send = send
        self._offered = offered
        self.greeted = False

    def receive(self, text: str | bytes) -> None:
        """Take in one message.

        Raises:
            LinkRefusedError: the agent may not go on speaking.
            StoreWriteError: it could not be made durable; the agent must send it
                again on a new link.
        """
        try:
            message = decode_from_agent(text)
        except ProtocolError as error:
            raise LinkRefusedError(
                "protocol_unsupported", str(error), retry=True
            ) from error
        if isinstance(message, Hello):
            self._hello(message)
            return
        if not self.greeted:
            raise LinkRefusedError(
                "protocol_unsupported",
                f"A link begins with hello, protocol {PROTOCOL}.",
                retry=True,
            )
        self._core.model.presence[self.machine].heard_at = self._core.clock.now()
        self._take(message)

    def _hello(self, hello: Hello) -> None:
        if self.greeted:
            raise LinkRefusedError(
                "protocol_unsupported", "hello comes once per link.", retry=True
            )
        reconciling.check_protocol(hello)
        if not self._attach():
            log.warning("second link refused", machine=self.machine)
            raise LinkRefusedError(
                "duplicate_link",
                f"Another agent speaks for {self.machine} already. Stop it, or enrol "
                "this machine under a name of its own.",
                retry=True,
            )
        # From here on the link is this machine's: whatever fails ends in ``closed``.
        self.greeted = True
        welcome = reconciling.greet(self._core, self.machine, hello)
        # Who uses its devices is known before anything is placed there.
        machines.observe(self._core, self.machine, hello.capabilities.get("usage"))
        self._send(welcome)
        log.info(
            "machine linked",
            machine=self.machine,
            protocol=hello.protocol,
            agent=hello.agent_version,
            inventory=hello.inventory_size,
        )

    def _take(self, message: FromAgent) -> None:
        if isinstance(message, Inventory):
            reconciling.take_inventory(self._core, self.machine, message)
        elif isinstance(message, Report):
            reconciling.take_report(self._core, self.machine, message)
        elif isinstance(message, CapabilitiesChanged):
            reconciling.update_capabilities(
                self._core, self.machine, message.capabilities
            )
        elif isinstance(message, AddressOffer):
            self._offered(message)
        elif isinstance(message, Heartbeat):
            reconciling.catch_up(self._core, self.machine)
            machines.observe(self._core, self.machine, message.usage)

    def closed(self) -> None:
        """The link is gone: nothing is freed."""
        if self.greeted:
            self.greeted = False
            reconciling.lose(self._core, self.machine)
            log.info("machine unlinked", machine=self.machine)
