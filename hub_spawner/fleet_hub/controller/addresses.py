"""May notebook traffic be routed to this address?  An agent's word is only a claim.

The Hub's proxy connects to whatever address a server is said to have, so an address
must not lead to the Hub's own machine or its neighbours on the link.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit


def is_routable(url: str, *, local: bool) -> bool:
    """Return whether a server of a machine may be at *url*.

    On the Hub's own machine (*local*) it must be on loopback, elsewhere never; names
    are refused, since what they resolve to can change after they were judged.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
        address = ip_address(parts.hostname or "")
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"} or not port or "@" in parts.netloc:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback if local else _is_elsewhere(address)


def _is_elsewhere(address: IPv4Address | IPv6Address) -> bool:
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
    )
