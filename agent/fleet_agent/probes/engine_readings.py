"""What a container engine says at its socket: without its client, and without an SDK."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from typing_extensions import override


TOOL: Final = "engine-readings"

_SECONDS: Final = 10.0
_LARGEST: Final = 1024 * 1024
_INFO: Final = (
    *("ServerVersion", "OSType", "OperatingSystem", "CgroupVersion"),
    *("SecurityOptions", "DiscoveredDevices"),
)
"""What is kept of ``/info``, which also names registries, proxies and their passwords."""
_VERSION: Final = ("Version", "ApiVersion", "MinAPIVersion", "Os", "Arch")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._path = path

    @override
    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(self.timeout)
            connection.connect(self._path)
        except OSError:
            connection.close()
            raise
        self.sock = connection


def read_engine(host: str) -> dict[str, Any]:
    """Return what the engine at *host* says about itself and its version.

    Raises:
        OSError: nobody answers there.
        ValueError: the answer is none of an engine's.
    """
    parts = urlsplit(host)
    connection = (
        _UnixConnection(parts.path)
        if parts.scheme == "unix"
        else http.client.HTTPConnection(parts.netloc, timeout=_SECONDS)
    )
    try:
        info, version = _get(connection, "/info"), _get(connection, "/version")
    except http.client.HTTPException as error:
        raise OSError(f"no engine's answer: {type(error).__name__}") from error
    finally:
        connection.close()
    kept = {name: info[name] for name in _INFO if name in info}
    # How a runtime is called and where it lies is nobody's business but its name.
    kept["Runtimes"] = {name: {} for name in info.get("Runtimes") or {}}
    told = {name: version[name] for name in _VERSION if name in version}
    told["Components"] = [
        {"Name": part.get("Name"), "Version": part.get("Version")}
        for part in version.get("Components") or ()
    ]
    return {**kept, "engine": told}


def _get(connection: http.client.HTTPConnection, path: str) -> Mapping[str, Any]:
    connection.request("GET", path)
    answer = connection.getresponse()
    document = json.loads(answer.read(_LARGEST))
    if not isinstance(document, Mapping):
        raise TypeError(f"{path} is no object")
    return document
