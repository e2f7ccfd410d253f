"""How the Hub reaches the controller: HTTP and one WebSocket per attended start.

Every failure of the wire is a ``ControllerError``; nothing here knows what the
answers mean.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlencode

from pydantic import TypeAdapter, ValidationError
from tornado.httpclient import (
    AsyncHTTPClient,
    HTTPClientError,
    HTTPRequest,
    HTTPResponse,
)
from tornado.websocket import (
    WebSocketClientConnection,
    WebSocketClosedError,
    websocket_connect,
)

from fleet_contracts.protocol import MAX_MESSAGE_BYTES
from fleet_contracts.timeline import Timeline
from fleet_contracts.workloads import ServerKey
from fleet_hub.admission import (
    Ask,
    Offers,
    OffersRequest,
    OpenedRequest,
    Outcome,
    Park,
    ServerStatus,
    StopRequest,
    ToSpawner,
    Update,
    ValidateAnswer,
    ValidateRequest,
)
from fleet_hub.errors import ControllerRefusedError, ControllerUnreachableError


CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 15.0
PING_SECONDS: Final = 10.0
"""A controller that stops without closing its socket is noticed this soon."""
MAX_CLIENTS: Final = 100_000
"""Long polls hold a slot each; tornado's default of 10 would starve the others."""

_TO_SPAWNER: TypeAdapter[ToSpawner] = TypeAdapter(ToSpawner)
_Model = TypeVar(
    "_Model", ServerStatus, Timeline, Offers, ValidateAnswer, Update, Outcome
)


class ControllerClient:
    """The controller's internal API, as one Hub process uses it."""

    def __init__(self, *, url: str, secret: str) -> None:
        """Reach the controller at *url*, which ends with a slash, with *secret*."""
        self._url = url
        self._secret = secret
        self._http: AsyncHTTPClient | None = None

    async def status(self, key: ServerKey, *, wait_seconds: float = 0) -> ServerStatus:
        """Return what the controller knows; wait for ready or ended up to a limit."""
        query: dict[str, Any] = {}
        if wait_seconds:
            query = {"wait": wait_seconds, "until": "settled"}
        return await self._get(ServerStatus, f"servers/{key}", query, wait_seconds)

    async def stop(
        self, key: ServerKey, request: StopRequest, *, wait_seconds: float
    ) -> ServerStatus:
        """Record the wish to stop, and wait for the confirmed end up to a limit."""
        response = await self._send(
            "POST",
            f"servers/{key}/stop",
            query={"wait": wait_seconds},
            body=request.model_dump_json(by_alias=True),
            wait_seconds=wait_seconds,
        )
        return _parse(ServerStatus, response.body)

    async def tell_opened(self, key: ServerKey, *, opened: bool) -> ServerStatus:
        """Say whether anybody has opened the server; it may be given back upon that."""
        request = OpenedRequest(opened=opened)
        response = await self._send(
            "POST",
            f"servers/{key}/opened",
            body=request.model_dump_json(by_alias=True),
        )
        return _parse(ServerStatus, response.body)

    async def retire(self, key: ServerKey) -> None:
        """Give everything back that this server holds, and forget its key."""
        await self._send("DELETE", f"servers/{key}")

    async def timeline(
        self, key: ServerKey, *, after: int = 0, wait_seconds: float = 0
    ) -> Timeline:
        """Return the entries after *after*; wait for one up to a limit."""
        query = {"after": after, "wait": wait_seconds}
        return await self._get(Timeline, f"servers/{key}/timeline", query, wait_seconds)

    async def offers(self, request: OffersRequest) -> Offers:
        """Return all profiles as this principal sees them now."""
        response = await self._send(
            "POST", "offers", body=request.model_dump_json(by_alias=True)
        )
        return _parse(Offers, response.body)

    async def validate(self, request: ValidateRequest) -> ValidateAnswer:
        """Return the normalised choice, or why it may not be asked for."""
        response = await self._send(
            "POST", "validate", body=request.model_dump_json(by_alias=True)
        )
        return _parse(ValidateAnswer, response.body)

    async def attend(self, ask: Ask) -> Attendance:
        """Ask for a start and attend it."""
        url = self._url.replace("http", "ws", 1) + "internal/attend"
        request = HTTPRequest(
            url, headers=self._headers(), connect_timeout=CONNECT_SECONDS
        )
        try:
            connection = await websocket_connect(
                request,
                ping_interval=PING_SECONDS,
                max_message_size=MAX_MESSAGE_BYTES,
            )
        except Exception as error:
            raise _wire_error(error) from error
        attendance = Attendance(connection)
        await attendance.say(ask)
        return attendance

    async def _get(
        self,
        model: type[_Model],
        path: str,
        query: dict[str, Any],
        wait_seconds: float,
    ) -> _Model:
        response = await self._send("GET", path, query=query, wait_seconds=wait_seconds)
        return _parse(model, response.body)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: str | None = None,
        wait_seconds: float = 0,
    ) -> HTTPResponse:
        url = f"{self._url}internal/{path}"
        if query:
            url += "?" + urlencode(query)
        if self._http is None:
            self._http = AsyncHTTPClient(force_instance=True, max_clients=MAX_CLIENTS)
        request = HTTPRequest(
            url,
            method=method,
            headers=self._headers(),
            body=body,
            connect_timeout=CONNECT_SECONDS,
            request_timeout=wait_seconds + ANSWER_SECONDS,
        )
        try:
            return await self._http.fetch(request)
        except Exception as error:
            raise _wire_error(error) from error

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._secret}",
            "Content-Type": "application/json",
        }


class Attendance:
    """One attended start; as long as it is open the controller knows that we wait.

    Closing it gives nothing back.  ``close`` awaits nothing, so it is safe in a task
    that is being cancelled.
    """

    def __init__(self, connection: WebSocketClientConnection) -> None:
        """Speak over *connection*, which this object closes."""
        self._connection = connection

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def say(self, message: Ask | Park) -> None:
        """Send *message*.

        Raises:
            ControllerUnreachableError: the socket is closed.
        """
        try:
            await self._connection.write_message(message.model_dump_json(by_alias=True))
        except WebSocketClosedError as error:
            raise ControllerUnreachableError(
                "the controller closed the link"
            ) from error

    async def hear(self) -> Update | Outcome:
        """Return the next message.

        Raises:
            ControllerUnreachableError: the socket closed before an outcome.
            ControllerRefusedError: the message is not understood.
        """
        text = await self._connection.read_message()
        if text is None:
            raise ControllerUnreachableError("the controller closed the link")
        try:
            return _TO_SPAWNER.validate_json(text)
        except ValidationError as error:
            raise ControllerRefusedError(
                f"the controller's message is not understood: {error.error_count()} faults"
            ) from None

    def close(self) -> None:
        """Let go of the link."""
        self._connection.close()


def _parse(model: type[_Model], body: bytes) -> _Model:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        # The input is left out: it may hold a token.
        raise ControllerRefusedError(
            f"the controller's {model.__name__} is not understood: "
            f"{error.error_count()} faults"
        ) from None


def _wire_error(
    error: Exception,
) -> ControllerUnreachableError | ControllerRefusedError:
    """Tell a controller that is away from one that says no."""
    # tornado reports a timeout and a closed stream as an answer with code 599
    if isinstance(error, HTTPClientError):
        if error.code in {401, 403}:
            return ControllerRefusedError(
                "the controller does not accept the Hub's secret: both must read the "
                "same spawner.secret file"
            )
        if error.code < 500:  # noqa: PLR2004 - the client's fault ends at 500
            return ControllerRefusedError(f"the controller answered {error.code}")
        return ControllerUnreachableError(f"the controller answered {error.code}")
    return ControllerUnreachableError(f"the controller does not answer: {error}")
