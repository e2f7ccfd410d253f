"""What a copy of a notebook folder costs, beside ``tar`` piped into ``tar``.

``python benchmarks/copying.py [--rounds 5] [--megabytes 256] [--files 5000]``.  Three
processes as on three machines: the agent's own end that sends, the controller's two
sockets that pass the parts on, and the agent's own end that receives.  The peer is one
``tar`` that writes into a TCP connection and one that reads from it, on this machine.
Both are over when everything is on the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from figures import keep
from fleet_agent.copying.lines import Lines
from fleet_agent.copying.receiving import fetch
from fleet_agent.copying.sending import Sending
from fleet_agent.drivers.base import NotebookFolder
from fleet_agent.ledger_entry import Key
from fleet_agent.logs import configure_logs
from fleet_contracts.protocol import SendFiles
from fleet_contracts.workloads import DriverName


KEY = Key("benchmark", 1)
LIMIT = 1 << 40
NOTEBOOK = "ada-1"
SPAWN = multiprocessing.get_context("spawn")


# ------------------------------------------------------------------------- the relay
def relay(port: int, listening: Event, order: Event) -> None:
    """Be the controller's two sockets; who may is answered with yes."""
    asyncio.run(_relay(port, listening, order))


async def _relay(port: int, listening: Event, order: Event) -> None:
    from tornado.httpserver import HTTPServer  # noqa: PLC0415
    from tornado.web import Application  # noqa: PLC0415

    from fleet_hub.adapters import file_sockets  # noqa: PLC0415 - of one process

    def told(machine: str, message: object) -> bool:
        order.set()
        return True

    record = SimpleNamespace(
        origin=SimpleNamespace(home=SimpleNamespace(machine="old"))
    )
    yes: Any = SimpleNamespace(
        fetching=lambda *_: record,
        sending=lambda *_: record,
        order_to_send=lambda *_: "order",
    )
    file_sockets.copying = yes
    file_sockets.machine_of = lambda _, token: token  # type: ignore[assignment]
    core = SimpleNamespace(
        model=SimpleNamespace(by_allocation=lambda *_: record),
        links=SimpleNamespace(send=told),
        settings=SimpleNamespace(copy_limit_bytes=LIMIT),
    )
    given = {"core": core, "transfers": file_sockets.Transfers()}
    path = r"/agent/files/(?P<allocation>[^/]+)/(?P<epoch>[0-9]+)/"
    routes: list[Any] = [
        (path + "send", file_sockets.SendSocket, given),
        (path + "receive", file_sockets.ReceiveSocket, given),
    ]
    application = Application(routes, websocket_max_message_size=1 << 20)
    HTTPServer(application).listen(port, "127.0.0.1")
    listening.set()
    await asyncio.Event().wait()


# -------------------------------------------------------------------------- the ends
class _Keeper:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def notebook(self, name: str, owner_id: int, owner: str) -> NotebookFolder:
        return NotebookFolder(
            base=self._folder, name=name, uid=os.geteuid(), gid=os.getegid()
        )


def sender(port: int, folder: Path, order: Event) -> None:
    """Send *folder* whenever it is ordered."""
    configure_logs(logging.ERROR)
    asyncio.run(_send(port, folder, order))


async def _send(port: int, folder: Path, order: Event) -> None:
    keeper: Any = _Keeper(folder.parent)
    sending = Sending(
        dial=Lines(service=f"http://127.0.0.1:{port}/", token=lambda: "old"),
        drivers={DriverName.NATIVE: keeper},
        entries=tuple,
    )
    while True:
        await asyncio.to_thread(order.wait)
        order.clear()
        sending.send(
            SendFiles(
                allocation=KEY.allocation,
                epoch=KEY.epoch,
                driver=DriverName.NATIVE,
                notebook=folder.name,
                owner="ada",
                owner_id=1,
                limit_bytes=LIMIT,
            )
        )


async def _nothing(_: object) -> None:
    return


async def receive(port: int, base: Path) -> float:
    """Return the seconds until the copy is whole and durable."""
    began = time.perf_counter()
    await fetch(
        Lines(service=f"http://127.0.0.1:{port}/", token=lambda: "new"),
        KEY,
        NotebookFolder(base=base, name=NOTEBOOK, uid=os.geteuid(), gid=os.getegid()),
        limit_bytes=LIMIT,
        progress=lambda _: None,
        note=_nothing,
    )
    return time.perf_counter() - began


# -------------------------------------------------------------------------- the peer
def tar(folder: Path, base: Path) -> float:
    """Return the seconds that ``tar | tar`` takes for the same."""
    target = base / NOTEBOOK
    target.mkdir(parents=True)
    began = time.perf_counter()
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    writes = subprocess.Popen(["tar", "-cf", "-", "-C", folder, "."], stdout=near)
    reads = subprocess.Popen(["tar", "-xf", "-", "-C", target], stdin=far)
    near.close()
    far.close()
    if writes.wait() or reads.wait():
        raise SystemExit("tar failed")
    os.sync()
    return time.perf_counter() - began


# ---------------------------------------------------------------------- the measuring
def make(folder: Path, *, megabytes: int, files: int) -> None:
    """Make one large file, or many small ones."""
    folder.mkdir(parents=True)
    with (folder / "large").open("wb") as large:
        for _ in range(megabytes):
            large.write(os.urandom(1 << 20))
    content = os.urandom(4096)
    for number in range(files):
        place = folder / f"{number % 100:02}"
        place.mkdir(exist_ok=True)
        (place / f"{number}").write_bytes(content)


def measure(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each round, ours and the peer's by turns."""
    port = _free_port()
    listening, order = SPAWN.Event(), SPAWN.Event()
    others = [
        SPAWN.Process(target=relay, args=(port, listening, order), daemon=True),
        SPAWN.Process(target=sender, args=(port, folder, order), daemon=True),
    ]
    for process in others:
        process.start()
    listening.wait()
    samples: dict[str, list[float]] = {"ours": [], "tar": []}
    try:
        for number in range(rounds + 1):
            os.sync()
            ours = _once(folder, lambda base: asyncio.run(receive(port, base)))
            peer = _once(folder, lambda base: tar(folder, base))
            if number:
                # The first round fills the caches, and starts what is started once.
                samples["ours"].append(ours)
                samples["tar"].append(peer)
    finally:
        for process in others:
            process.terminate()
            process.join()
    return samples


def _once(folder: Path, copy: Any) -> float:
    base = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        seconds: float = copy(base)
        _compare(folder, base / NOTEBOOK)
        return seconds
    finally:
        shutil.rmtree(base)


def _compare(folder: Path, copy: Path) -> None:
    def sizes(root: Path) -> dict[str, int]:
        return {
            str(path.relative_to(root)): path.stat().st_size
            for path in root.rglob("*")
            if path.is_file()
        }

    if sizes(folder) != sizes(copy):
        raise SystemExit(f"{copy} is not what {folder} is")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> int:
    """Measure, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--files", type=int, default=5000)
    asked = parser.parse_args()
    configure_logs(logging.ERROR)
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as work:
        for name, sizes in (
            ("large", {"megabytes": asked.megabytes, "files": 0}),
            ("small", {"megabytes": 0, "files": asked.files}),
        ):
            folder = Path(work) / name / NOTEBOOK
            make(folder, **sizes)
            for who, seconds in measure(folder, asked.rounds).items():
                samples[f"{name}_{who}_seconds"] = seconds
    median = {name: statistics.median(seconds) for name, seconds in samples.items()}
    met = keep(
        "copying",
        samples=samples,
        ratios={
            "large_over_tar": median["large_ours_seconds"]
            / median["large_tar_seconds"],
            "small_over_tar": median["small_ours_seconds"]
            / median["small_tar_seconds"],
            "large_megabytes_per_second": asked.megabytes
            / median["large_ours_seconds"],
            "small_files_per_second": asked.files / median["small_ours_seconds"],
        },
        targets={"large_over_tar": 4, "small_over_tar": 3},
        facts={"megabytes": asked.megabytes, "files": asked.files, "file_bytes": 4096},
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
