"""A JupyterLab of its own with the built panel in it, as a notebook's environment."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uv
from fleet import wait_until
from patience import PATIENCE

from fleet_agent.drivers.native.environments.wheel import CONTRACTS, pack


REPOSITORY = Path(__file__).parents[2]
LAB_PACKAGE = REPOSITORY / "server_ext" / "fleet_lab"
LOCK = REPOSITORY / "agent/fleet_agent/drivers/native/locks/jupyter.lock"
_CONFIG = "c.LabApp.expose_app_in_browser = True\n"
_PAGE_CONFIG = {
    # Its question would lie over what is looked at.
    "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}
}


def require_front_end() -> None:
    """Skip where the front end is not built; continuous integration builds it."""
    if (LAB_PACKAGE / "labextension" / "package.json").is_file():
        return
    how = "the front end is not built: run `npm ci && npm run build` in server_ext"
    if os.environ.get("FLEET_TEST_STRICT") == "1":
        pytest.fail(how)
    pytest.skip(how)


def lab_environment(folder: Path) -> Path:
    """Install what a notebook gets, from its lock, and return the interpreter."""
    wheel = pack(LAB_PACKAGE, CONTRACTS)
    file = folder / wheel.file_name
    file.write_bytes(wheel.content)
    target = folder / "environment"
    run = [uv.find_uv_bin()]
    install = [*run, "pip", "install", "--quiet", "--python", str(target)]
    subprocess.run(
        [*run, "venv", "--quiet", "--python", sys.executable, str(target)], check=True
    )
    subprocess.run([*install, "--require-hashes", "-r", str(LOCK)], check=True)
    subprocess.run([*install, "--no-deps", str(file)], check=True)
    return target / "bin" / "python"


@contextmanager
def lab_server(
    python: Path, folder: Path, environment: dict[str, str]
) -> Iterator[str]:
    """Run JupyterLab and yield its address with its token."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "jupyter_server_config.py"
    config.write_text(_CONFIG)
    page_config = folder / ".jupyter" / "labconfig" / "page_config.json"
    page_config.parent.mkdir(parents=True, exist_ok=True)
    page_config.write_text(json.dumps(_PAGE_CONFIG))
    token = secrets.token_hex(16)
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "PYTHON"))
    }
    process = subprocess.Popen(
        [
            str(python),
            "-m",
            "jupyterlab",
            "--allow-root",
            "--no-browser",
            f"--config={config}",
            "--ServerApp.ip=127.0.0.1",
            "--ServerApp.port=0",
            f"--ServerApp.root_dir={folder}",
        ],
        cwd=folder,
        env={
            **own,
            "HOME": str(folder),
            "JUPYTER_TOKEN": token,
            **environment,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    log = _Log(process, page_config.parent.parent / "server.log")
    try:
        address = log.address()
        # It names its port before it listens there.
        wait_until(lambda: _listens(address), f"{address} listens", patience=PATIENCE)
        yield f"{address}?token={token}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE)
        log.close()


def _listens(address: str) -> bool:
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


class _Log:
    """What a server says, read all the time so that it never blocks."""

    def __init__(self, process: subprocess.Popen[str], copy: Path) -> None:
        assert process.stderr is not None
        self._stream = process.stderr
        self._copy = copy
        self._lines: list[str] = []
        self._address = ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def address(self) -> str:
        """Return where the server listens, once it says so."""
        if not self._ready.wait(PATIENCE) or not self._address:
            raise AssertionError(f"it did not start:\n{''.join(self._lines)}")
        return self._address

    def close(self) -> None:
        """Let go of the stream of a server that has ended."""
        self._thread.join(PATIENCE)
        self._stream.close()

    def _read(self) -> None:
        for line in self._stream:
            self._lines.append(line)
            with self._copy.open("a") as copy:
                copy.write(line)
            if "http://127.0.0.1:" in line and not self._address:
                address = line[line.index("http://127.0.0.1:") :]
                self._address = address.split("?")[0].strip()
                self._ready.set()
        self._ready.set()
