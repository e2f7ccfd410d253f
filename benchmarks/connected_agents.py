"""What thousands of connected agents cost the controller, beside a bare echo server.

``python benchmarks/connected_agents.py [--agents 9000] [--seconds 30]``.  Both hold
the same links, one after the other, and get the same heartbeat of each agent every ten
seconds.  The links go straight to the process that serves.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil

from figures import keep
from fleet_contracts.capabilities import Observed, Usage
from fleet_contracts.protocol import Heartbeat, encode
from links import (
    Peer,
    Service,
    a_free_port,
    dial,
    hello,
    name_of,
    raise_open_files_limit,
    token_of,
    until_listening,
)


HEARTBEAT_SECONDS = 10.0
DIALLED_AT_ONCE = 50
TARGETS = {"cpu": 3.0, "memory": 3.0}


async def connect(port: int, agents: int) -> list[Peer]:
    """Return open links of all agents; each has said who it is."""
    slots = asyncio.Semaphore(DIALLED_AT_ONCE)

    async def one(number: int) -> Peer:
        async with slots:
            heard = asyncio.Event()
            name = name_of(number)
            peer = await dial(port, "agent", token_of(name), lambda _: heard.set())
            for text in hello(number, 8):
                peer.say(text)
            async with asyncio.timeout(60):
                await heard.wait()
            return peer

    return list(await asyncio.gather(*(one(number) for number in range(agents))))


async def beat(peers: list[Peer], seconds: float) -> None:
    """Send each agent's heartbeat every ten seconds, evenly over time."""
    observed = Observed(source="benchmark", observed_at=datetime.now(UTC))
    usage = Usage(observed=observed, memory_available_bytes=1 << 30, load_milli=500)
    told = usage.model_dump(mode="json")
    began, sent = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        due = int(passed / HEARTBEAT_SECONDS * len(peers))
        text = encode(Heartbeat(sent_at=datetime.now(UTC), usage=told))
        for number in range(sent, due):
            peers[number % len(peers)].say(text)
        sent = due
        await asyncio.sleep(0.02)


async def measure(
    port: int, process: psutil.Process, agents: int, seconds: float
) -> dict[str, float]:
    """Return the share of a core and the memory that the links cost."""
    peers = await connect(port, agents)
    # A round of its own: what only the first heartbeat does is not the steady cost.
    await beat(peers, HEARTBEAT_SECONDS)
    before, began = process.cpu_times(), time.monotonic()
    await beat(peers, seconds)
    after, passed = process.cpu_times(), time.monotonic() - began
    alive = sum(not peer.closed.is_set() for peer in peers)
    figures = {
        "core": (after.user + after.system - before.user - before.system) / passed,
        "resident_mib": process.memory_info().rss / 2**20,
        "alive": float(alive),
    }
    for peer in peers:
        peer.close()
    return figures


async def of_echo(agents: int, seconds: float) -> dict[str, float]:
    """Measure the echo server."""
    port = a_free_port()
    script = Path(__file__).with_name("echo_server.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(port)
    )
    try:
        await until_listening(port)
        return await measure(port, psutil.Process(process.pid), agents, seconds)
    finally:
        process.terminate()
        await process.wait()


async def of_service(agents: int, seconds: float) -> dict[str, float]:
    """Measure the controller."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder), agents)
        service.start()
        try:
            await until_listening(service.port)
            return await measure(service.port, service.serving(), agents, seconds)
        finally:
            service.stop()


def main() -> None:
    """Measure both and keep the figures; exits with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=9000)
    parser.add_argument("--seconds", type=float, default=30)
    arguments = parser.parse_args()
    raise_open_files_limit()
    echo = asyncio.run(of_echo(arguments.agents, arguments.seconds))
    ours = asyncio.run(of_service(arguments.agents, arguments.seconds))
    met = keep(
        "connected_agents",
        samples={
            f"{side}_{name}": [value]
            for side, found in (("echo", echo), ("ours", ours))
            for name, value in found.items()
        },
        ratios={
            "cpu": ours["core"] / echo["core"],
            "memory": ours["resident_mib"] / echo["resident_mib"],
        },
        targets=TARGETS,
        facts=vars(arguments),
    )
    sys.exit(not met or ours["alive"] < arguments.agents)


if __name__ == "__main__":
    main()
