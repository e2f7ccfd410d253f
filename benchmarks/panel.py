"""What the timeline costs: bytes in the browser, delay of an event, open panels.

``python benchmarks/panel.py [--events 300] [--panels 1000] [--seconds 60]``, after
``make panel``; with 0 events or 0 panels that half is left out.  All parts are real ones except the agent, which says what it is told
to: a controller with its store on disk, JupyterHub's proxy, and a notebook server with
the extension, asked as a panel asks.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil
from tornado.httpclient import AsyncHTTPClient, HTTPError, HTTPRequest, HTTPResponse
from tornado.simple_httpclient import HTTPStreamClosedError

from figures import REPOSITORY, keep
from hubs import wait_until


sys.path.insert(0, str(REPOSITORY / "tests/support"))

from attended_start import AttendedStart
from fleet_controller import an_ask
from fleet_service import Service, a_service
from plain_hub import free_port, proxy_command
from scripted_agent import ScriptedAgent

from fleet_contracts.protocol import AgentEvent, Launch
from fleet_contracts.reasons import Explanation, Reason


BUILT = REPOSITORY / "server_ext/fleet_lab/labextension/static"
SECRET = "secret-of-this-benchmark"
CATALOG = """\
classes:
  - {name: small, title: Small, cpu: 0.01, memory: 1M}
runtimes:
  - {name: python, title: Python, accelerators: [cpu], driver_refs: {native: some-ref}}
profiles:
  - {name: jupyter, title: Watched, classes: [small], runtimes: [python]}
"""


def main() -> int:
    """Measure, keep, and return 0 if the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=300)
    parser.add_argument("--panels", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    met = True
    if given.events:
        met &= keep_delays(given.events)
    if given.panels:
        met &= keep_panels(given.panels, given.seconds)
    return 0 if met else 1


def keep_delays(events: int) -> bool:
    """Measure what a browser fetches, and how soon it hears of an event."""
    delays = asyncio.run(event_to_panel(events))
    return keep(
        "panel",
        samples={"event_to_panel_seconds": delays},
        ratios={
            "script_kilobytes": script_bytes() / 1000,
            "event_to_panel_p99_milliseconds": 1000 * percentile(delays, 0.99),
        },
        targets={"script_kilobytes": 30, "event_to_panel_p99_milliseconds": 100},
        facts={"script": "all of labextension/static/*.js, gzip -9"},
    )


def keep_panels(panels: int, seconds: float) -> bool:
    """Measure what open panels cost the controller beside what it costs anyway."""
    idle, busy = asyncio.run(open_panels(panels, seconds))
    return keep(
        "open_panels",
        samples={"idle_core_percent": idle, "panels_core_percent": busy},
        ratios={"panels_core_percent": mean(busy) - mean(idle)},
        targets={"panels_core_percent": 10},
        facts={"panels": panels, "seconds": seconds},
    )


def script_bytes() -> int:
    """Return how many bytes of script a browser fetches, compressed."""
    return sum(len(gzip.compress(p.read_bytes(), 9)) for p in BUILT.glob("*.js"))


def percentile(samples: list[float], share: float) -> float:
    """Return the smallest sample that *share* of them do not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def mean(samples: list[float]) -> float:
    """Return the average."""
    return sum(samples) / len(samples)


# ------------------------------------------------------------------- event to panel
async def event_to_panel(count: int) -> list[float]:
    """Return how long each of *count* events took from the agent to the panel."""
    with tempfile.TemporaryDirectory() as folder:
        async with a_fleet(Path(folder)) as (service, agent):
            agent.is_automatic = False
            start = await AttendedStart(service, an_ask()).open()
            await start.until("placed")
            launch = await agent.launched()
            await agent.report(launch, AgentEvent.ACCEPTED)
            with a_proxy(service) as proxy:
                address = proxy.url + "services/fleet/"
                token = launch.spec.environment["JUPYTERHUB_FLEET_TIMELINE_TOKEN"]
                with a_notebook(Path(folder), address, token) as port:
                    await proxy.route("user/alice", f"http://127.0.0.1:{port}")
                    panel = Panel(f"{proxy.url}user/alice/fleet/api/timeline")
                    return await follow(panel, agent, launch, count)


async def follow(
    panel: Panel, agent: ScriptedAgent, launch: Launch, count: int
) -> list[float]:
    """Let the agent report, one event after the other, and time each at the panel.

    From the agent's word on, so that the way to the commit and the commit count too.
    Notes, because progress is written twice a second at most.
    """
    delays = []
    await panel.ask()
    for number in range(count):
        waiting = asyncio.ensure_future(panel.ask(wait_seconds=25))
        # A panel has been waiting for a while when something happens.
        await asyncio.sleep(0.1)
        note = Explanation(reason=Reason.METAL_BUSY, detail=f"note {number}")
        began = perf_counter()
        await agent.report(launch, AgentEvent.NOTE, explanation=note)
        await waiting
        delays.append(perf_counter() - began)
    return delays


@dataclass
class Panel:
    """Asks as the panel in a browser does."""

    url: str
    etag: str | None = None
    seq: int = 0

    async def ask(self, *, wait_seconds: float = 0) -> dict[str, Any]:
        """Return the newest event."""
        known = {"If-None-Match": self.etag} if self.etag else {}
        response = await AsyncHTTPClient().fetch(
            f"{self.url}?after={self.seq}&wait={wait_seconds:g}",
            headers={"Authorization": f"token {SECRET}", **known},
            request_timeout=60,
        )
        self.etag = response.headers["Etag"]
        events = json.loads(response.body)["timeline"]["events"]
        event: dict[str, Any] = events[-1]
        self.seq = event["seq"]
        return event


@dataclass(frozen=True)
class Proxy:
    """A running proxy of JupyterHub."""

    url: str
    api: str

    async def route(self, path: str, target: str) -> None:
        """Send what is below *path* to *target*."""
        await AsyncHTTPClient().fetch(
            f"{self.api}/api/routes/{path}",
            method="POST",
            headers={"Authorization": f"token {SECRET}"},
            body=json.dumps({"target": target}),
        )


@contextmanager
def a_proxy(service: Service) -> Iterator[Proxy]:
    """Run the proxy, with the service behind it."""
    port, api = free_port(), free_port()
    command = proxy_command()
    assert command is not None, "configurable-http-proxy is missing: make setup"
    process = subprocess.Popen(
        [
            *(command, "--ip=127.0.0.1", f"--port={port}", "--log-level=error"),
            *("--api-ip=127.0.0.1", f"--api-port={api}"),
            f"--default-target=http://127.0.0.1:{service.port}",
        ],
        env={**os.environ, "CONFIGPROXY_AUTH_TOKEN": SECRET},
    )
    proxy = Proxy(url=f"http://127.0.0.1:{port}/", api=f"http://127.0.0.1:{api}")
    try:
        wait_until(lambda: listens(port) and listens(api), "the proxy listens")
        yield proxy
    finally:
        process.terminate()
        process.wait()


@contextmanager
def a_notebook(folder: Path, service: str, token: str) -> Iterator[int]:
    """Run a notebook server with the extension; yield its port."""
    port = free_port()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter_server", "--allow-root", "--no-browser"),
            *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"),
            "--ServerApp.base_url=/user/alice/",
            f"--IdentityProvider.token={SECRET}",
            "--ServerApp.jpserver_extensions={'fleet_lab': True}",
            f"--ServerApp.root_dir={folder}",
        ],
        env={
            **os.environ,
            "JUPYTERHUB_FLEET_URL": service,
            "JUPYTERHUB_FLEET_TIMELINE_TOKEN": token,
            "JUPYTERHUB_USER": "alice",
            "JUPYTERHUB_SERVER_NAME": "",
        },
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: listens(port), "the notebook server listens")
        yield port
    finally:
        process.terminate()
        process.wait()


def listens(port: int) -> bool:
    """Whether somebody listens on this port of the loopback."""
    return any(
        connection.laddr.port == port and connection.status == psutil.CONN_LISTEN
        for connection in psutil.net_connections(kind="tcp")
        if connection.laddr
    )


# --------------------------------------------------------------------- open panels
async def open_panels(count: int, seconds: float) -> tuple[list[float], list[float]]:
    """Return the controller's share of a core without, and with, *count* open panels.

    Each panel is of another server, and asks with its own token.
    """
    with tempfile.TemporaryDirectory() as folder:
        async with a_fleet(Path(folder)) as (service, agent):
            for number in range(1, count + 1):
                start = await AttendedStart(service, an_ask(number)).open()
                await start.ended()
            tokens = [
                launch.spec.environment["JUPYTERHUB_FLEET_TIMELINE_TOKEN"]
                for launch in agent.launches
            ]
            controller = psutil.Process(service.child())
            idle = await shares(controller, seconds)
            client = AsyncHTTPClient(force_instance=True, max_clients=count)
            answered = [asyncio.Event() for _ in tokens]
            panels = [
                asyncio.ensure_future(keep_open(client, service.url, token, event))
                for token, event in zip(tokens, answered, strict=True)
            ]
            async with asyncio.timeout(120):
                await asyncio.gather(*(event.wait() for event in answered))
            busy = await shares(controller, seconds)
            for panel in panels:
                panel.cancel()
            await asyncio.gather(*panels, return_exceptions=True)
            client.close()
            return idle, busy


async def keep_open(
    client: AsyncHTTPClient, url: str, token: str, answered: asyncio.Event
) -> None:
    """Ask as the extension of one notebook server does, for ever."""
    etag: str | None = None
    while True:
        response = await asked(client, url, token, etag)
        answered.set()
        etag = response.headers.get("Etag", etag)


async def asked(
    client: AsyncHTTPClient, url: str, token: str, etag: str | None
) -> HTTPResponse:
    """Return the answer to one long poll."""
    headers = {"Authorization": f"Fleet {token}"}
    if etag is not None:
        headers["If-None-Match"] = etag
    try:
        return await client.fetch(
            HTTPRequest(
                f"{url}api/timeline?wait={25 if etag else 0}",
                headers=headers,
                connect_timeout=60,
                request_timeout=60,
            )
        )
    except HTTPStreamClosedError:
        # The benchmark is over.
        raise asyncio.CancelledError from None
    except HTTPError as error:
        if error.code != 304 or error.response is None:
            raise
        return error.response


async def shares(process: psutil.Process, seconds: float) -> list[float]:
    """Return the process's share of a core in percent, each ten seconds."""
    found = []
    for _ in range(max(1, round(seconds / 10))):
        before = cpu_seconds(process)
        await asyncio.sleep(10)
        found.append(10 * (cpu_seconds(process) - before))
    return found


def cpu_seconds(process: psutil.Process) -> float:
    """Return what the process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


# ------------------------------------------------------------------------ the fleet
@asynccontextmanager
async def a_fleet(folder: Path) -> AsyncIterator[tuple[Service, ScriptedAgent]]:
    """Run a controller with one large machine that alice owns."""
    async with a_service(folder) as service:
        service.hub.add_user("alice")
        await service.offers_from(CATALOG, "Watched")
        agent = ScriptedAgent(service, await service.enrol(), cores=64)
        await agent.connect()
        yield service, agent


if __name__ == "__main__":
    sys.exit(main())
