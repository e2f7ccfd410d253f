"""Did a request travel protected?  Judged by what the proxies in front tell of it.

A client that lies about this only deceives itself: the check keeps honest machines
from sending a secret in the clear.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

from tornado.httputil import HTTPServerRequest


def is_protected(
    request: HTTPServerRequest, trusted: Sequence[IPv4Network | IPv6Network]
) -> bool:
    """Whether nobody could listen: https, this very machine, or a trusted network."""
    if _first(request, "X-Forwarded-Proto", request.protocol) == "https":
        return True
    client = _first(request, "X-Forwarded-For", request.remote_ip or "")
    try:
        address = ip_address(client)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or any(address in network for network in trusted)


def origin_of(request: HTTPServerRequest) -> str:
    """Return the origin under which the client reached us."""
    scheme = _first(request, "X-Forwarded-Proto", request.protocol)
    return f"{'https' if scheme == 'https' else 'http'}://{request.host}"


def _first(request: HTTPServerRequest, name: str, default: str) -> str:
    """Return the word of the outermost proxy, which saw the client itself."""
    return request.headers.get(name, default).split(",")[0].strip()
