"""The live links to agents, one per machine at most."""

from __future__ import annotations

from typing import Protocol

import structlog

from fleet_contracts.protocol import Goodbye, ProtocolError, ToAgent, encode


log = structlog.get_logger()


class Connection(Protocol):
    """One WebSocket to an agent."""

    def send(self, text: str) -> None:
        """Queue *text*; raises nothing."""

    def dismiss(self, goodbye: Goodbye) -> None:
        """Say *goodbye* and close; raises nothing."""

    def probe(self) -> None:
        """Ask for a sign of life, and close the connection if none comes."""


class LinkRegistry:
    """Who can be spoken to right now; the controller's port to its agents."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._connections: dict[str, Connection] = {}

    def attach(self, machine: str, connection: Connection) -> bool:
        """Make *connection* the link of *machine*; False: it has a live one.

        The live one is asked for a sign of life, so that one that is dead without
        knowing it makes room for the agent's next try.
        """
        earlier = self._connections.get(machine)
        if earlier is not None and earlier is not connection:
            earlier.probe()
            return False
        self._connections[machine] = connection
        return True

    def detach(self, machine: str, connection: Connection) -> bool:
        """Forget *connection*; False: it was not the link of *machine*."""
        if self._connections.get(machine) is not connection:
            return False
        del self._connections[machine]
        return True

    def is_live(self, machine: str) -> bool:
        """Whether *machine* has a link."""
        return machine in self._connections

    def send(self, machine: str, message: ToAgent) -> bool:
        """Queue *message* for *machine*; False: there is no live link."""
        connection = self._connections.get(machine)
        if connection is None:
            return False
        try:
            text = encode(message)
        except ProtocolError as error:
            log.error(  # noqa: TRY400 - the message says all; no traceback helps
                "message too large", machine=machine, fault=str(error)
            )
            return False
        connection.send(text)
        return True

    def dismiss(self, machine: str, goodbye: Goodbye) -> None:
        """Say *goodbye* to the link of *machine*, if it has one, and close it."""
        connection = self._connections.get(machine)
        if connection is not None:
            connection.dismiss(goodbye)

    def machines(self) -> tuple[str, ...]:
        """Return the machines that have a link."""
        return tuple(self._connections)
