"""Images for tests, made in a moment: a skeleton that shows the machine's own programs.

``/usr``, the Python and the virtual environment are this machine's, read-only; the
image itself holds folders, links and, in one of them, a stand-in for a notebook server.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any


NOTEBOOK = "fleet-test/notebook:1"
"""Has JupyterHub's own single-user server."""
STUB = "fleet-test/stub:1"
"""Has a server that misbehaves as the variable FLEET_TEST_FAULT says."""
BROKEN = "fleet-test/broken:1"
"""Begins with a program that does not exist."""
VOLUMED = "fleet-test/volumed:1"
"""The stub, in an image that asks for a volume."""
WRITABLE = "fleet-test/writable:1"
"""The stub, in an image that changes its own files."""

ENVIRONMENT = Path(sys.prefix)
INTERPRETER = Path(sys.base_prefix)
SHOWN = (Path("/usr"), INTERPRETER, ENVIRONMENT)
"""The folders of this machine that containers of these images need."""

_PATH = f"{ENVIRONMENT}/bin:/usr/bin:/bin"
# Not sbin: the engine puts its own first process there, beside nothing of /usr.
_LINKS = {name: f"usr/{name}" for name in ("bin", "lib", "lib64")}
_FOLDERS = dict.fromkeys(
    ("usr", "sbin", "proc", "sys", "dev", "root", "etc", "home", "run", "var"), 493
) | {"tmp": 0o1777, "var/tmp": 0o1777}

_STUB = f"""#!{INTERPRETER}/bin/python3 -I
import http.server, os, signal, sys, time, urllib.parse

fault = os.environ.get("FLEET_TEST_FAULT", "")
print("stub starts", fault, os.environ.get("JUPYTERHUB_API_TOKEN"), flush=True)
if fault == "dies":
    print("stub gives up", flush=True)
    sys.exit(3)
if fault == "never":
    time.sleep(1000)


def grow():
    hoard = []
    while True:
        hoard.append(bytearray(1024 * 1024))


if fault == "greedy":
    grow()
if fault == "writes":
    open("/etc/motd", "w")


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.endswith("/end"):
            os._exit(7)
        if self.path.endswith("/greedy"):
            grow()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"stub")

    def log_message(self, *arguments):
        pass


def end(*arguments):
    os._exit(0)


signal.signal(signal.SIGTERM, signal.SIG_IGN if fault == "stubborn" else end)
url = urllib.parse.urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
http.server.ThreadingHTTPServer((url.hostname, url.port), Answer).serve_forever()
"""


def make_images(client: Any) -> None:
    """Make all images of this module in the engine of *client*."""
    _make(client, NOTEBOOK, _skeleton(), f"ENV PATH={_PATH}")
    stub = _skeleton({"opt/stub/jupyterhub-singleuser": _STUB})
    _make(client, STUB, stub, "ENV PATH=/opt/stub:/usr/bin:/bin")
    free = _skeleton(
        {"opt/stub/jupyterhub-singleuser": _STUB}, folders={"opt/free": 0o1777}
    )
    label = "LABEL org.jupyter.fleet.writable-root=true"
    _make(client, WRITABLE, free, "ENV PATH=/opt/stub:/usr/bin:/bin", label)
    _make(client, VOLUMED, stub, "ENV PATH=/opt/stub:/usr/bin:/bin", "VOLUME /data")
    _make(client, BROKEN, _skeleton(), 'ENTRYPOINT ["/absent"]')


def small_image(files: dict[str, str], *changes: str) -> tuple[bytes, dict[str, Any]]:
    """Return the layer and the configuration of an image that is skeleton and *files*."""
    environment = [change.removeprefix("ENV ") for change in changes]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": environment},
        "rootfs": {"type": "layers", "diff_ids": []},
    }
    return _skeleton(files), config


def stub_files() -> dict[str, str]:
    """Return what makes a skeleton a stub."""
    return {"opt/stub/jupyterhub-singleuser": _STUB}


def _make(client: Any, name: str, tree: bytes, *changes: str) -> None:
    repository, _, tag = name.partition(":")
    answer = client.import_image_from_data(
        tree, repository=repository, tag=tag, changes=list(changes)
    )
    assert "error" not in json.loads(answer.splitlines()[-1]), answer


def _skeleton(
    files: dict[str, str] | None = None, folders: dict[str, int] | None = None
) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tree:
        for name, mode in (_FOLDERS | (folders or {})).items():
            tree.addfile(_entry(name, tarfile.DIRTYPE, mode))
        for name, target in _LINKS.items():
            link = _entry(name, tarfile.SYMTYPE, 0o777)
            link.linkname = target
            tree.addfile(link)
        for name, text in (files or {}).items():
            entry = _entry(name, tarfile.REGTYPE, 0o755)
            entry.size = len(text.encode())
            tree.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    return entry
