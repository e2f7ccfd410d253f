"""May notebook traffic be routed to this address?  An agent's word is only a claim.

The Hub's proxy connects to whatever address a server is said to have, so an address
must not lead to the Hub's own machine, to its neighbours on the link, or to another
machine.  Names are resolved once, when the address is tried: what they resolve to can
change after they were judged, so routes use the address.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from fleet_contracts.language import mark
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller.core import Core
from fleet_hub.controller.records import MachineRecord


Address = IPv4Address | IPv6Address
LONGEST_URL: Final = 2048


def route_of(
    core: Core, record: MachineRecord, url: str, *, known: str | None = None
) -> str | None:
    """Return where a server that *record*'s machine has at *url* is routed to.

    On the Hub's own machine that is on loopback, elsewhere at the approved address.
    *known* is where this very server has been routed to already.  None: nowhere.
    """
    if len(url) > LONGEST_URL:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host = parts.hostname
    if parts.scheme not in {"http", "https"} or not port or not host:
        return None
    if "@" in parts.netloc:
        return None
    address = host if record.local else _approved(record, host, known)
    if address is None or fault_of(core, record, address) is not None:
        return None
    name = f"[{address}]" if ":" in address else address
    return parts._replace(netloc=f"{name}:{port}").geturl()


def _approved(record: MachineRecord, host: str, known: str | None) -> str | None:
    approved = record.address
    if approved is not None and host in {approved.claimed.lower(), approved.address}:
        return approved.address
    if known is not None and host == urlsplit(known).hostname:
        # It was approved when this server started, and is judged again all the same.
        return host
    return None


def fault_of(core: Core, record: MachineRecord, address: str) -> Explanation | None:
    """Return why traffic of *record*'s machine may not go to *address*; None: it may."""
    where = _parsed(address)
    if where is None:
        return _refused(
            address, mark("it is a name, and names can come to mean others")
        )
    if record.local:
        if where.is_loopback:
            return None
        return _refused(address, mark("the Hub's own machine serves on loopback alone"))
    whose = _whose(core, record, where)
    if whose is not None:
        return _refused(address, whose)
    if not any(where in network for network in core.settings.trusted_networks):
        return Explanation(reason=Reason.NETWORK_NOT_TRUSTED, subject=str(where))
    return None


def _whose(core: Core, record: MachineRecord, where: Address) -> str | None:
    """Return to whom else *where* leads; None: to this machine, as far as is known."""
    if not _is_elsewhere(where):
        return "it leads to no other machine"
    if core.network.is_hubs(str(where)):
        return "it is the Hub's own"
    for other in core.model.machines.values():
        # One whose token is void holds no address any more.
        if other.name == record.name or other.address is None or not other.token_hash:
            continue
        if other.address.address == str(where):
            return "another machine has it"
    return None


def _refused(address: str, detail: str) -> Explanation:
    return Explanation(
        reason=Reason.ADDRESS_REFUSED, subject=address[:255], detail=detail
    )


def _parsed(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def canonical(text: str) -> str | None:
    """Return *text* as addresses are compared; None: it is no address."""
    address = _parsed(text)
    return None if address is None else str(address)


def _is_elsewhere(address: Address) -> bool:
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
    )
