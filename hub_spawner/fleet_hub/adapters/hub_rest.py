"""The Hub's REST API, as far as the controller may use it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import structlog
from tornado.httpclient import (
    AsyncHTTPClient,
    HTTPClientError,
    HTTPRequest,
    HTTPResponse,
)

from fleet_hub.controller.ports import StartAnswer, StartResult


log = structlog.get_logger()

_START_SECONDS: Final = 30.0
"""The Hub itself answers after ten seconds, whether or not a start is over."""
_ROUTES_SECONDS: Final = 30.0
_CONNECT_SECONDS: Final = 5.0
_LONGEST_WAIT_SECONDS: Final = 300.0
MAX_CLIENTS: Final = 1000
"""A start occupies a slot for as long as the Hub waits for it; ten would be few."""
REASON_HEADER: Final = "X-Fleet-Reason"
"""Set by the Spawner's own refusals; without it a 403 is about our role."""


class HubRest:
    """Asks the Hub with the service's own token; the roles it needs are
    ``start:servers`` and ``proxy``.
    """

    def __init__(self, api_url: str, token: str) -> None:
        """Ask the Hub whose API is at *api_url*."""
        self._api_url = api_url.rstrip("/")
        self._token = token
        self._client: AsyncHTTPClient | None = None

    async def start_server(self, user: str, server_name: str) -> StartResult:
        """Start a server with the options that it was last asked with.

        The request has no body: the Hub then uses the options that it has stored.
        """
        path = f"/users/{quote(user, safe='')}"
        path += f"/servers/{quote(server_name, safe='')}" if server_name else "/server"
        try:
            response = await self._post(path, _START_SECONDS)
        except (OSError, HTTPClientError) as error:
            log.info("hub not reached", fault=type(error).__name__)
            return StartResult(answer=StartAnswer.UNREACHABLE)
        return read_answer(response.code, response.body or b"", response.headers)

    async def check_routes(self) -> bool:
        """Ask the Hub to route every running server now; False: it did not."""
        try:
            response = await self._post("/proxy", _ROUTES_SECONDS)
        except (OSError, HTTPClientError):
            return False
        return response.code < HTTPStatus.MULTIPLE_CHOICES

    async def _post(self, path: str, timeout_seconds: float) -> HTTPResponse:
        request = HTTPRequest(
            self._api_url + path,
            method="POST",
            body=b"",
            headers={"Authorization": f"token {self._token}"},
            connect_timeout=_CONNECT_SECONDS,
            request_timeout=timeout_seconds,
        )
        if self._client is None:
            self._client = AsyncHTTPClient(force_instance=True, max_clients=MAX_CLIENTS)
        return await self._client.fetch(request, raise_error=False)


def read_answer(code: int, body: bytes, headers: Mapping[str, str]) -> StartResult:
    """Return what the Hub's answer means for the place that is held."""
    message = _message(body)
    bad = code == HTTPStatus.BAD_REQUEST
    if code == HTTPStatus.CREATED:
        answer = StartAnswer.STARTED
    elif code == HTTPStatus.ACCEPTED or (bad and "is already running" in message):
        answer = StartAnswer.UNDER_WAY
    elif code == HTTPStatus.TOO_MANY_REQUESTS or (bad and "is pending" in message):
        answer = StartAnswer.LATER
    elif code == HTTPStatus.NOT_FOUND:
        answer = StartAnswer.GONE
    elif REASON_HEADER in headers:
        answer = StartAnswer.REFUSED
    elif code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        answer = StartAnswer.FORBIDDEN
    elif code in {HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT}:
        answer = StartAnswer.UNREACHABLE
    else:
        answer = StartAnswer.REFUSED
    return StartResult(
        answer=answer, retry_after_seconds=_seconds(headers.get("Retry-After"))
    )


def _message(body: bytes) -> str:
    try:
        content = json.loads(body)
    except ValueError:
        return ""
    message = content.get("message") if isinstance(content, dict) else None
    return message.lower() if isinstance(message, str) else ""


def _seconds(value: str | None) -> float | None:
    if value is None or not value.strip().isdigit():
        return None
    return min(float(value), _LONGEST_WAIT_SECONDS)
