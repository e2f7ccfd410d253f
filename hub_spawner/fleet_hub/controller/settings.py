"""The controller's deadlines and switches, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final


HEARTBEAT_SECONDS: Final = 10.0


def heartbeat_within(silence_seconds: float) -> float:
    """Return how often agents speak, where so long a silence ends their link.

    Often enough that one late word, or a lost one, is no silence.
    """
    return min(HEARTBEAT_SECONDS, silence_seconds / 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the composition root decides; the defaults suit a small fleet."""

    service_url: str = "http://127.0.0.1:8000/services/fleet/"
    """Where notebooks find the service; each agent puts its own address in place."""
    hub_api_url: str | None = None
    """The Hub's API as remote machines reach it; None: as the Hub itself says."""
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    silence_seconds: float = 30.0
    """A link that is away longer makes what runs there ``unknown``; nothing is freed."""
    recovery_seconds: float = 30.0
    """How long after its start the controller expects agents to come back."""
    claim_seconds: float = 120.0
    """How long a place is held for a start that the Hub has promised."""
    open_seconds: float = 900.0
    """How long a server that came up for somebody absent waits to be opened; 0: ever."""
    rejection_rest_seconds: float = 60.0
    """How long a machine that rejected a workload is not tried for it again."""
    trusted_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Where nobody listens between the Hub and its machines, by the admin's word."""
    code_seconds: float = 900.0
    """How long an enrolment code is valid."""
    copy_limit_bytes: int = 50 << 30
    """The most files that a start may begin with a copy of; 0: nothing is copied."""
    names_visible: bool = True
    """Whether a user may read who holds what they wait for."""
