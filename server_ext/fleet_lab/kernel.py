"""Asks the controller from inside a kernel, which has neither an event loop nor login.

A kernel inherits the notebook server's timeline token, which reads this one timeline
and can do nothing else.
"""

from __future__ import annotations

import os
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.error import HTTPError

from typing_extensions import override

from fleet_lab.answers import Answer, Cause, Standing
from fleet_lab.document import NotUnderstoodError, last_seq, read_timeline


MAX_ANSWER_BYTES: Final = 1024 * 1024
ANSWER_SECONDS: Final = 10.0
"""How long the controller may take beyond the wait that it was asked for."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to wherever it leads."""

    @override
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks for the timeline of the server whose environment this is."""

    environment: Mapping[str, str]

    @classmethod
    def of_this_process(cls) -> Asker:
        """Return one for the server that started this kernel."""
        return cls(environment=os.environ)

    def ask(
        self, *, known: dict[str, Any] | None = None, wait_seconds: float = 0
    ) -> Answer:
        """Return the timeline, or why there is none; never raises.

        With *known* and *wait_seconds* it returns once there is something newer, or
        after the wait.
        """
        url = self.environment.get("JUPYTERHUB_FLEET_URL", "")
        token = self.environment.get("JUPYTERHUB_FLEET_TIMELINE_TOKEN", "")
        if not url.startswith(("http://", "https://")):
            return Answer(standing=Standing.NO_HUB)
        if not token:
            return Answer(standing=Standing.NO_PERMISSION, cause=Cause.TOKEN_MISSING)
        request = urllib.request.Request(  # noqa: S310 - checked above
            f"{url.rstrip('/')}/api/timeline?after={last_seq(known)}"
            f"&wait={wait_seconds:g}",
            headers={"Authorization": f"Fleet {token}"},
        )
        try:
            return self._answer(_fetch(request, wait_seconds + ANSWER_SECONDS))
        except HTTPError as error:
            # It is the open response as well.
            error.close()
            return _refusal(error.code)
        except NotUnderstoodError:
            return Answer(standing=Standing.AWAY, cause=Cause.NOT_UNDERSTOOD)
        except (OSError, ValueError):
            return Answer(standing=Standing.AWAY, cause=Cause.UNREACHABLE)

    def _answer(self, body: bytes) -> Answer:
        timeline = read_timeline(body)
        mine = tuple(
            self.environment.get(name, "")
            for name in ("JUPYTERHUB_USER", "JUPYTERHUB_SERVER_NAME")
        )
        if (timeline["user"], timeline["server"]) != mine:
            return Answer(standing=Standing.NO_PERMISSION, cause=Cause.OTHER_SERVER)
        return Answer(
            standing=Standing.EXPIRED if timeline["truncated"] else Standing.LIVE,
            heard_at=timeline["as_of"],
            heard_seconds_ago=0.0,
            timeline=timeline,
        )


def _fetch(request: urllib.request.Request, seconds: float) -> bytes:
    # Directly, like the server extension: a proxy has no business with the token.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=ssl.create_default_context()),
        _NoRedirect(),
    )
    with opener.open(request, timeout=seconds) as response:
        body: bytes = response.read(MAX_ANSWER_BYTES + 1)
    if len(body) > MAX_ANSWER_BYTES:
        raise NotUnderstoodError("the answer is too long")
    return body


def _refusal(status: int) -> Answer:
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return Answer(standing=Standing.NO_PERMISSION, cause=Cause.TOKEN_REVOKED)
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return Answer(standing=Standing.EXPIRED, cause=Cause.FORGOTTEN)
    return Answer(standing=Standing.AWAY, cause=Cause.UNREACHABLE)
