"""What a browser does with a notebook server: kernels and terminals."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect


@dataclass(frozen=True, slots=True)
class NotebookServer:
    """A running server, and the token of whoever talks to it."""

    url: str
    token: str

    async def ask(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """Return the server's answer.

        Raises:
            HTTPClientError: it refused.
        """
        content = None if body is None and method == "GET" else json.dumps(body)
        request = HTTPRequest(
            f"{self.url}{path}",
            method=method,
            headers={"Authorization": f"token {self.token}"},
            body=content,
            request_timeout=60,
            allow_nonstandard_methods=True,
        )
        answer = await AsyncHTTPClient().fetch(request)
        return json.loads(answer.body) if answer.body else None

    async def connect(self, path: str) -> WebSocketClientConnection:
        """Open a WebSocket."""
        url = f"{self.url}{path}".replace("http://", "ws://", 1)
        headers = {"Authorization": f"token {self.token}"}
        return await websocket_connect(HTTPRequest(url, headers=headers))


class Kernel:
    """A kernel of a notebook server, for as long as the context lasts."""

    def __init__(self, server: NotebookServer) -> None:
        """Use *server*."""
        self._server = server
        self._id = ""
        self._socket: WebSocketClientConnection | None = None

    async def __aenter__(self) -> Self:
        """Start it and connect."""
        model = await self._server.ask("api/kernels", "POST", {})
        self._id = model["id"]
        self._socket = await self._server.connect(f"api/kernels/{self._id}/channels")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Shut it down."""
        if self._socket is not None:
            self._socket.close()
        if error is None:
            await self._server.ask(f"api/kernels/{self._id}", "DELETE")

    async def reconnect(self) -> None:
        """Connect once more, as a browser does after its connection broke."""
        if self._socket is not None:
            self._socket.close()
        self._socket = await self._server.connect(f"api/kernels/{self._id}/channels")

    async def run(self, code: str) -> str:
        """Run a cell and return what it printed; a traceback is a failure."""
        if self._socket is None:
            raise AssertionError("the kernel is not connected")
        identity = uuid.uuid4().hex
        header = {
            "msg_id": identity,
            "msg_type": "execute_request",
            "username": "",
            "session": uuid.uuid4().hex,
            "date": "2026-01-01T00:00:00Z",
            "version": "5.3",
        }
        content = {"code": code, "silent": False, "store_history": False}
        message = {"header": header, "parent_header": {}, "metadata": {}}
        await self._socket.write_message(
            json.dumps({**message, "content": content, "channel": "shell"})
        )
        return await self._output_of(self._socket, identity)

    async def _output_of(self, socket: WebSocketClientConnection, identity: str) -> str:
        printed = []
        while (raw := await socket.read_message()) is not None:
            message = json.loads(raw)
            if message["parent_header"].get("msg_id") != identity:
                continue
            content = message["content"]
            if message["msg_type"] == "stream":
                printed.append(content["text"])
            elif message["msg_type"] == "error":
                raise AssertionError("\n".join(content["traceback"]))
            elif content.get("execution_state") == "idle":
                return "".join(printed)
        raise AssertionError("the kernel's connection ended")


async def type_into_terminal(server: NotebookServer, text: str, until: str) -> str:
    """Type *text* into a new terminal; return what it showed, up to *until*."""
    name = (await server.ask("api/terminals", "POST", {}))["name"]
    socket = await server.connect(f"terminals/websocket/{name}")
    shown = ""
    typed = False
    while until not in shown:
        raw = await socket.read_message()
        if raw is None:
            raise AssertionError(f"the terminal ended after: {shown}")
        kind, *content = json.loads(raw)
        if kind == "stdout":
            shown += content[0]
        if not typed:
            typed = True
            await socket.write_message(json.dumps(["stdin", f"{text}\r"]))
    socket.close()
    await server.ask(f"api/terminals/{name}", "DELETE")
    return shown
