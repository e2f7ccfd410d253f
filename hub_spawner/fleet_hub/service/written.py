"""What settings of the controller write in words: networks and amounts."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network

from fleet_contracts.amounts import AmountError, parse_bytes
from fleet_hub.errors import ConfigurationError


def networks_of(texts: Sequence[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks that *texts* name.

    Raises:
        ConfigurationError: one is none.
    """
    try:
        return tuple(ip_network(text) for text in texts)
    except ValueError as error:
        raise ConfigurationError(
            f"trusted_networks: {error}. Write it like 10.20.0.0/16."
        ) from error


def bytes_of(text: str) -> int:
    """Return the amount that *text* writes.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return parse_bytes(text)
    except AmountError as error:
        raise ConfigurationError(f"copy_limit: {error}") from error
