"""``fleet-agent resume``: let this computer take new work again, after ``drain``."""

from __future__ import annotations

from collections.abc import Sequence

from fleet_agent.commands.drain import carry_out


def main(argv: Sequence[str]) -> int:
    """Take the wish back, which a running agent sees within seconds."""
    return carry_out("resume", argv)
