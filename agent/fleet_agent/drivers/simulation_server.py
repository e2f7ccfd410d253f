"""The pretended notebook server: one small page, in a process of its own.

Run as a program by the simulation driver.  It inherits a listening socket and a lock,
and waits for one line of JSON on its standard input.  If the agent dies before it has
made the process's name durable, that line never comes and the process ends by itself.
"""

from __future__ import annotations

import html
import json
import os
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from typing_extensions import override


CRASH_STATUS = 3


def page_for(title: str, prefix: str) -> type[BaseHTTPRequestHandler]:
    """Return a handler that shows *title* everywhere below *prefix*."""
    body = (
        "<!doctype html><meta charset=utf-8><title>Simulated notebook</title>"
        f"<h1>{html.escape(title)}</h1><p>The simulation driver pretends to run this "
        "notebook; nothing is executed here.</p>"
    ).encode()

    class Page(BaseHTTPRequestHandler):
        """Answers GET and HEAD."""

        server_version = "fleet-simulation"

        def do_GET(self) -> None:
            inside = self.path.startswith(prefix)
            self.send_response(200 if inside else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body) if inside else 0))
            self.end_headers()
            if inside and self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name is http.server's

        @override
        def log_message(self, *_: object) -> None:
            """Write no access log: paths may hold what is not ours to keep."""

    return Page


def _server(descriptor: int, handler: type[BaseHTTPRequestHandler]) -> Any:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler, bind_and_activate=False)
    server.daemon_threads = True
    server.socket.close()
    server.socket = socket.socket(fileno=descriptor)
    server.server_address = server.socket.getsockname()
    return server


def _end_after(seconds: float, code: int, status: Path) -> None:
    """End the process from a thread, as a crash would: nothing is cleaned up."""

    def end() -> None:
        time.sleep(seconds)
        status.write_text(str(code), encoding="ascii")
        os._exit(code)

    threading.Thread(target=end, daemon=True).start()


def main() -> None:
    """Wait for the launch line, then serve until told to stop."""
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        # The agent is gone: nobody would ever know of this process.
        return
    launch = json.loads(line)
    time.sleep(launch["start_seconds"])
    if launch["dies_early"]:
        sys.exit(CRASH_STATUS)
    status = Path(launch["status_file"])

    def stop(*_: object) -> None:
        if launch["ignores_stop"]:
            return
        time.sleep(launch["stop_seconds"])
        status.write_text("0", encoding="ascii")
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    if launch["run_seconds"] is not None:
        code = CRASH_STATUS if launch["crashes"] else 0
        _end_after(launch["run_seconds"], code, status)
    handler = page_for(launch["title"], launch["prefix"])
    _server(launch["socket"], handler).serve_forever()


if __name__ == "__main__":
    main()
