"""Small locks with wheels made on the spot, so that uv needs no network."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import uv

from fleet_agent.drivers.native.environments.build import BuildTools
from fleet_agent.drivers.native.environments.interpreter import own_interpreter
from fleet_agent.drivers.native.environments.locks import Locks
from fleet_agent.drivers.native.environments.store import EnvironmentStore


SEEN_AS = "/opt/fleet/environment"


def make_wheel(folder: Path, name: str, files: Mapping[str, str]) -> str:
    """Put a wheel of *files* into the index at *folder*; return the line that pins it."""
    info = f"{name}-1.0.dist-info"
    members = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*members, f"{info}/RECORD"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in {**members, f"{info}/RECORD": record}.items():
            # The same files are the same wheel, whenever they are packed.
            member = zipfile.ZipInfo(path)
            member.external_attr = 0o644 << 16
            archive.writestr(member, text)
    page = folder / name
    page.mkdir(parents=True, exist_ok=True)
    file_name = f"{name}-1.0-py3-none-any.whl"
    (page / file_name).write_bytes(buffer.getvalue())
    (page / "index.html").write_text(f'<a href="{file_name}">{file_name}</a>')
    return (
        f"{name}==1.0 --hash=sha256:{hashlib.sha256(buffer.getvalue()).hexdigest()}\n"
    )


class SmallStore:
    """An environment store over a folder of its own, with the locks that tests write."""

    def __init__(self, base: Path) -> None:
        """Lay out everything below *base*."""
        self.base = base
        self.locks = base / "locks"
        self.wheels = base / "wheels"
        self.environments = base / "environments"
        self.lab = base / "fleet_lab"
        self.locks.mkdir(parents=True)
        self.lab.mkdir()
        (self.lab / "__init__.py").write_text("'''The lab package of a test.'''\n")

    def lock(self, ref: str, *lines: str) -> None:
        """Write the lock *ref*."""
        (self.locks / f"{ref}.lock").write_text("".join(lines))

    def a_lock(self, ref: str = "small", packages: int = 3) -> None:
        """Write a lock of some small packages, with their wheels."""
        names = [f"small{number}" for number in range(packages)]
        self.lock(
            ref,
            *[
                make_wheel(self.wheels, name, {f"{name}/__init__.py": f"# {name}\n"})
                for name in names
            ],
        )

    def open(self, needed_bytes: int = 1024, **environment: str) -> EnvironmentStore:
        """Return the store, as a new agent process would open it."""
        offline = {"UV_DEFAULT_INDEX": self.wheels.as_uri()}
        return EnvironmentStore(
            self.environments,
            locks=Locks(self.locks),
            lab_package=self.lab,
            tools=BuildTools(
                uv=Path(uv.find_uv_bin()),
                interpreter=own_interpreter(),
                cache=self.base / "cache",
                environment=environment or offline,
            ),
            seen_as=SEEN_AS,
            needed_bytes=needed_bytes,
        )

    def left(self) -> list[str]:
        """Return what lies in the environments folder."""
        return sorted(path.name for path in self.environments.glob("*"))


class SilentIndex:
    """A package index that accepts connections and never answers."""

    def __init__(self) -> None:
        """Nothing listens yet."""
        self.asked = asyncio.Event()
        self._release = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Listen on a free port of the loopback interface."""
        self._server = await asyncio.start_server(self._hold, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/simple"
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Let go of everybody."""
        self._release.set()
        self._server.close()
        await self._server.wait_closed()

    async def _hold(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.asked.set()
        await self._release.wait()
        writer.close()
