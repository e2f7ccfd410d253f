"""What may containers reach?  Pure: from the owner's word and a job to the rules' text.

The Hub, the resolvers of names and everything outside; of this machine and of private
networks nothing else, unless the machine's owner allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit


Network = IPv4Network | IPv6Network

EVERYTHING = "all"
"""The owner's word that containers may reach whatever the machine reaches."""

_PRIVATE = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15"),
    *("224.0.0.0/4", "240.0.0.0/4"),
    *("::/127", "::ffff:0:0/96", "64:ff9b:1::/48", "fc00::/7", "fe80::/10", "ff00::/8"),
)
"""Addresses that mean something on this side of the way out only: private, shared,
link-local with its metadata services, and those of groups."""
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_HUB = ("JUPYTERHUB_API_URL", "JUPYTERHUB_ACTIVITY_URL", "JUPYTERHUB_FLEET_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The word of the machine's owner."""

    everything: bool = False
    networks: tuple[Network, ...] = ()
    """What containers may reach although it is private."""


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """A server that containers may reach: a name or an address, with its port."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Openings:
    """What the rules let through, in addresses."""

    endpoints: frozenset[Endpoint] = frozenset()
    resolvers: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = field(default=())


def read_reach(words: Sequence[str]) -> Reach:
    """Return what the owner's *words* mean.

    Raises:
        ValueError: one of them is neither an address, a network nor ``all``.
    """
    return Reach(
        everything=EVERYTHING in words,
        networks=tuple(
            ip_network(word, strict=False) for word in words if word != EVERYTHING
        ),
    )


def hub_in(environment: Mapping[str, str]) -> frozenset[Endpoint]:
    """Return the Hub and the fleet service that a notebook's *environment* names."""
    return _endpoints(environment.get(name, "") for name in _HUB)


def proxies_in(environment: Mapping[str, str]) -> frozenset[Endpoint]:
    """Return the proxies that the machine's owner names in *environment*."""
    return _endpoints(
        value for name, value in environment.items() if name.lower() in _PROXIES
    )


def resolvers(texts: Iterable[str]) -> frozenset[str]:
    """Return the addresses of the resolvers in *texts*, which are resolv.conf files.

    Those of the machine's own loopback are left out: the engine asks them itself.
    """
    found = set()
    for text in texts:
        for line in text.splitlines():
            words = line.split()
            if len(words) > 1 and words[0] == "nameserver":
                address = words[1].partition("%")[0]
                if _is_address(address) and not ip_address(address).is_loopback:
                    found.add(address)
    return frozenset(found)


def rules(table: str, bridge: str, openings: Openings) -> str:
    """Return what makes *table* fence in the containers behind *bridge*.

    One transaction replaces the table that was there.  It only ever forbids: whatever
    it lets through, the engine's rules and the owner's still judge.
    """
    allowed = "\n".join(f"    {line}" for line in _openings(openings))
    private4, private6 = (
        ", ".join(net for net in _PRIVATE if (":" in net) == six)
        for six in (False, True)
    )
    return f"""\
add table inet {table}
delete table inet {table}
table inet {table} {{
  chain opened {{
    ct state established,related accept
{allowed}
  }}
  chain forward {{
    type filter hook forward priority filter - 10; policy accept;
    iifname != "{bridge}" accept
    jump opened
    ip daddr {{ {private4} }} reject with icmpx type admin-prohibited
    ip6 daddr {{ {private6} }} reject with icmpx type admin-prohibited
  }}
  chain input {{
    type filter hook input priority filter - 10; policy accept;
    iifname != "{bridge}" accept
    icmpv6 type {{ nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert }} accept
    jump opened
    reject with icmpx type admin-prohibited
  }}
}}
"""


def _endpoints(urls: Iterable[str]) -> frozenset[Endpoint]:
    found = set()
    for value in urls:
        # A proxy may be written without a scheme.
        parts = urlsplit(value if "//" in value else f"http://{value}")
        try:
            port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 80)
        except ValueError:
            continue
        if parts.hostname:
            found.add(Endpoint(parts.hostname, port))
    return frozenset(found)


def _openings(openings: Openings) -> list[str]:
    lines = []
    for endpoint in sorted(openings.endpoints):
        family = _family(endpoint.host)
        # As it was asked for: a port of this machine may lead into a container.
        lines.append(
            f"meta l4proto tcp ct original {family} daddr {endpoint.host} "
            f"ct original proto-dst {endpoint.port} accept"
        )
    for address in sorted(openings.resolvers):
        where = f"{_family(address)} daddr {address}"
        lines += [f"{where} {kind} dport 53 accept" for kind in ("udp", "tcp")]
    for network in sorted(openings.networks, key=str):
        lines.append(f"{_family(str(network))} daddr {network} accept")
    return lines


def _family(address: str) -> str:
    return "ip6" if ":" in address else "ip"


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
