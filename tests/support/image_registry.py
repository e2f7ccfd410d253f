"""A registry of images on a free loopback port, with faults by an image's name.

It speaks the part of the protocol that an engine needs for a pull.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, cast

from docker_images import small_image, stub_files


MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
PADDING = 4 * 1024 * 1024
_PATH = re.compile(r"/v2/(?P<name>[a-z/-]+)/(?P<kind>manifests|blobs)/(?P<ref>.+)")
_FAULTS = {
    "denied": (401, "UNAUTHORIZED"),
    "busy": (429, "TOOMANYREQUESTS"),
    "absent": (404, "MANIFEST_UNKNOWN"),
}


@dataclass
class Registry:
    """Has one image, under every name; some names have a fault.

    ``denied``, ``busy`` and ``absent`` are refused, the layer of ``corrupt`` is not
    what it should be, and that of ``stuck`` stops half way until ``go_on`` is set.
    """

    port: int = 0
    asked: list[str] = field(default_factory=list)
    """What was asked for, in order."""
    go_on: Event = field(default_factory=Event)
    is_stuck: Event = field(default_factory=Event)
    """Set when half of a layer was sent and the rest is held back."""

    def __post_init__(self) -> None:
        """Make the image."""
        noise = random.Random(0).randbytes(PADDING).hex()
        tree, config = small_image(
            stub_files() | {"opt/padding": noise}, "ENV PATH=/opt/stub:/usr/bin:/bin"
        )
        config["rootfs"]["diff_ids"] = [digest_of(tree)]
        self.layer = gzip.compress(tree, 1)
        self.config = json.dumps(config).encode()
        self.manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST_TYPE,
                "config": _descriptor(
                    "application/vnd.docker.container.image.v1+json", self.config
                ),
                "layers": [
                    _descriptor(
                        "application/vnd.docker.image.rootfs.diff.tar.gzip", self.layer
                    )
                ],
            }
        ).encode()

    def ref(self, name: str) -> str:
        """Return how an engine asks for the image *name* by its tag."""
        return f"127.0.0.1:{self.port}/test/{name}:1"

    def digest_ref(self, name: str) -> str:
        """Return how an engine asks for the image *name* by its digest."""
        return f"127.0.0.1:{self.port}/test/{name}@{digest_of(self.manifest)}"


def digest_of(content: bytes) -> str:
    """Return the name that content has in a registry."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    return {
        "mediaType": media_type,
        "size": len(content),
        "digest": digest_of(content),
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    registry: Registry


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        registry = cast("_Server", self.server).registry
        found = _PATH.fullmatch(self.path)
        if found is None:
            self._send(200, b"{}", "application/json")
            return
        name = found["name"].rpartition("/")[2]
        registry.asked.append(f"{found['kind']} {name}")
        if found["kind"] == "manifests":
            self._manifest(registry, name)
        elif found["ref"] == digest_of(registry.config):
            self._send(200, registry.config, "application/octet-stream")
        else:
            self._layer(registry, name)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _manifest(self, registry: Registry, name: str) -> None:
        fault = _FAULTS.get(name)
        if fault is None:
            self._send(200, registry.manifest, MANIFEST_TYPE)
            return
        status, code = fault
        body = {"errors": [{"code": code, "message": f"no {name}"}]}
        self._send(status, json.dumps(body).encode(), "application/json")

    def _layer(self, registry: Registry, name: str) -> None:
        layer = registry.layer
        if name == "corrupt":
            layer = layer[:-9] + b"corrupted"
        half = len(layer) // 2
        self._head(200, layer, "application/octet-stream")
        # An engine that has given up hangs up.
        with suppress(ConnectionError):
            self.wfile.write(layer[:half])
            self.wfile.flush()
            if name == "stuck" and not registry.go_on.is_set():
                registry.is_stuck.set()
                registry.go_on.wait()
            self.wfile.write(layer[half:])

    def _send(self, status: int, body: bytes, media_type: str) -> None:
        self._head(status, body, media_type)
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: int, body: bytes, media_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Docker-Content-Digest", digest_of(body))
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def image_registry() -> Iterator[Registry]:
    """Run a registry until the block ends."""
    with _Server(("127.0.0.1", 0), _Answer) as server:
        server.registry = Registry(port=server.server_address[1])
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.registry
        finally:
            server.registry.go_on.set()
            server.shutdown()
            thread.join()
