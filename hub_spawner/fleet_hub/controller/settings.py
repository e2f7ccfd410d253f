"""The controller's deadlines and switches, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the composition root decides; the defaults suit a small fleet."""

    service_url: str = "http://127.0.0.1:8000/services/fleet/"
    """Where notebooks find the service; each agent puts its own address in place."""
    hub_api_url: str | None = None
    """The Hub's API as remote machines reach it; None: as the Hub itself says."""
    heartbeat_seconds: float = 10.0
    silence_seconds: float = 30.0
    """A link that is away longer makes what runs there ``unknown``; nothing is freed."""
    recovery_seconds: float = 30.0
    """How long after its start the controller expects agents to come back."""
    claim_seconds: float = 120.0
    """How long a place is held for a start that the Hub has promised."""
    rejection_rest_seconds: float = 60.0
    """How long a machine that rejected a workload is not tried for it again."""
    names_visible: bool = True
    """Whether a user may read who holds what they wait for."""
