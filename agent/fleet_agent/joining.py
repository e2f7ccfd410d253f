"""Joining a fleet: the code against a token, while the controller tries our address."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit

from pydantic import ValidationError
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from fleet_agent.address_listener import listening
from fleet_agent.errors import EnrolmentError
from fleet_contracts.enrolment import Enrolled, EnrolRequest


_CONNECT_SECONDS = 20.0
_ANSWER_SECONDS = 60.0
_ANY_PORT = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What this computer says to join."""

    service: str
    """The fleet service's address, ending in a slash."""
    code: str = field(repr=False)
    bind: str
    advertise: str
    ca_file: str | None = None


async def join(joining: Joining) -> Enrolled:
    """Exchange the code for a token.

    Raises:
        SettingsError: nothing can listen at the address to bind.
        EnrolmentError: the controller was not reached or did not accept the code.
    """
    async with listening(bind=joining.bind, advertise=joining.advertise) as offer:
        request = HTTPRequest(
            f"{joining.service}api/enrol",
            method="POST",
            headers={"Content-Type": "application/json"},
            body=_body(EnrolRequest(code=joining.code, offer=offer)),
            connect_timeout=_CONNECT_SECONDS,
            request_timeout=_ANSWER_SECONDS,
            # The code must not follow anybody elsewhere.
            follow_redirects=False,
            ca_certs=joining.ca_file,
        )
        client = AsyncHTTPClient(force_instance=True)
        try:
            answer = await client.fetch(request, raise_error=False)
        except (OSError, HTTPClientError) as error:
            raise EnrolmentError(
                f"the controller at {joining.service} was not reached: {error}"
            ) from error
        finally:
            client.close()
    if answer.code != HTTPStatus.OK:
        if answer.code == HTTPStatus.NOT_FOUND:
            raise EnrolmentError(
                f"there is no fleet service at {joining.service}; its address is like "
                "https://hub.example.org/services/fleet/"
            )
        raise EnrolmentError(_refusal(answer.code, answer.body or b""))
    try:
        return Enrolled.model_validate_json(answer.body)
    except ValidationError as error:
        raise EnrolmentError(
            f"{joining.service} does not answer like a fleet service; check the address"
        ) from error


def _body(request: EnrolRequest) -> str:
    return request.model_dump_json(exclude_none=True)


def _refusal(status: int, body: bytes) -> str:
    try:
        message = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        message = "check the address of the fleet service"
    # Whoever answers is not known yet: nothing of it may reach the terminal as it is.
    words = "".join(c if c.isprintable() else "?" for c in str(message))[:500]
    return f"the controller refused ({status}): {words}"


def address_towards(service: str) -> str:
    """Return the address from which this computer speaks to *service*.

    Raises:
        EnrolmentError: there is no way there.
    """
    parts = urlsplit(service)
    host = parts.hostname or ""
    try:
        found = socket.getaddrinfo(host, _ANY_PORT, type=socket.SOCK_DGRAM)
        family, kind, _, _, where = found[0]
        with socket.socket(family, kind) as probe:
            # Nothing is sent: the kernel only chooses a way.
            probe.connect(where)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise EnrolmentError(
            f"there is no way from this computer to {host}: {error.strerror}"
        ) from error
