"""The controller's address, as people write it and as the agent dials it."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

from fleet_agent.errors import SettingsError


_SOCKET_SCHEME = {"http": "ws", "https": "wss"}


def service_url(text: str, *, trusted_network: bool = False) -> str:
    """Return the fleet service's address, ending in a slash.

    *text* is what a person was given, such as ``https://hub.example.org/services/fleet``.
    *trusted_network* is their word that nobody listens between the two computers.

    Raises:
        SettingsError: it is no address, or would send the token unprotected.
    """
    parts = urlsplit(text.strip())
    if parts.scheme not in _SOCKET_SCHEME or not parts.hostname:
        raise SettingsError(
            f"the controller's address {text!r} must begin with http:// or https://"
        )
    if parts.username or parts.password:
        raise SettingsError("the controller's address must not contain a password")
    if not (parts.scheme == "https" or trusted_network or is_loopback(parts.hostname)):
        raise SettingsError(
            f"the controller at {parts.hostname} is another computer, so its address "
            "must begin with https://: the machine's token would cross the network "
            "unprotected"
        )
    path = parts.path.rstrip("/") + "/"
    return urlunsplit(SplitResult(parts.scheme, parts.netloc, path, "", ""))


def link_url(service: str) -> str:
    """Return where the agent's WebSocket of *service* is."""
    return _socket_url(service, "agent")


def files_url(service: str, allocation: str, epoch: int, end: str) -> str:
    """Return where one *end* of the transfer to an allocation is."""
    return _socket_url(service, f"agent/files/{quote(allocation, '')}/{epoch}/{end}")


def _socket_url(service: str, path: str) -> str:
    parts = urlsplit(service)
    scheme = _SOCKET_SCHEME[parts.scheme]
    return urlunsplit(SplitResult(scheme, parts.netloc, f"{parts.path}{path}", "", ""))


def is_loopback(host: str) -> bool:
    """Whether the name or address *host* is this computer's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
