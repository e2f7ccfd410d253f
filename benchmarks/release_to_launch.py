"""From an agent's word that a workload has ended to the launch of the next one.

``python benchmarks/release_to_launch.py [--machines 10 1000 10000] [--waiting 1000]``.  A real
controller process, simulated agents straight to it, and starts that are attended as
the Spawner does.  Every machine is full and many wait; workloads end one at a time.
The time ends when the next launch message has arrived at an agent.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from figures import keep, quantile
from fleet_contracts.protocol import (
    AgentEvent,
    Forget,
    Heartbeat,
    Launch,
    Report,
    decode_to_agent,
    encode,
)
from fleet_contracts.workloads import Choice, Principal, ServerKey
from fleet_hub.admission import Ask
from links import (
    Peer,
    Service,
    dial,
    hello,
    name_of,
    raise_open_files_limit,
    token_of,
    until_listening,
)


CORES = 2
DIALLED_AT_ONCE = 50


class Agent:
    """One simulated agent: what it is told to launch is ready at once."""

    def __init__(self, launched: Callable[[Agent, Launch], None]) -> None:
        """Tell *launched* of every launch."""
        self._launched = launched
        self._seq: dict[str, int] = {}
        self.running: dict[str, Launch] = {}
        self.peer: Peer | None = None
        self.welcomed = asyncio.Event()

    def hear(self, text: str) -> None:
        """Take in a message."""
        message = decode_to_agent(text)
        self.welcomed.set()
        if isinstance(message, Launch) and message.allocation not in self._seq:
            self._launched(self, message)
            self.running[message.allocation] = message
            for event in (AgentEvent.ACCEPTED, AgentEvent.PREPARED):
                self.report(message, event)
            self.report(message, AgentEvent.SERVING, url="http://127.0.0.1:9/")
        elif isinstance(message, Forget):
            self._seq.pop(message.allocation, None)

    def end(self, allocation: str) -> None:
        """Say that one has ended."""
        self.report(self.running.pop(allocation), AgentEvent.ENDED)

    def report(self, launch: Launch, event: AgentEvent, url: str | None = None) -> None:
        """Report *event*."""
        seq = self._seq[launch.allocation] = self._seq.get(launch.allocation, 0) + 1
        assert self.peer is not None
        self.peer.say(
            encode(
                Report(
                    allocation=launch.allocation,
                    epoch=launch.epoch,
                    seq=seq,
                    at=datetime.now(UTC),
                    event=event,
                    url=url,
                )
            )
        )


class Load:
    """A service with its agents and its starts."""

    def __init__(self, service: Service) -> None:
        """Speak with *service*."""
        self.service = service
        self.agents: list[Agent] = []
        self.number = 0
        self.asked: dict[str, Peer] = {}
        self.launches: asyncio.Queue[tuple[float, str]] = asyncio.Queue()
        self.where: dict[str, Agent] = {}

    def launched(self, agent: Agent, launch: Launch) -> None:
        """Note the moment of a launch."""
        self.launches.put_nowait((time.perf_counter(), launch.allocation))
        self.where[launch.allocation] = agent

    async def connect(self, number: int) -> None:
        """Link one agent."""
        agent = Agent(self.launched)
        name = name_of(number)
        agent.peer = await dial(self.service.port, "agent", token_of(name), agent.hear)
        for text in hello(number, CORES):
            agent.peer.say(text)
        async with asyncio.timeout(120):
            await agent.welcomed.wait()
        agent.peer.say(encode(Heartbeat(sent_at=datetime.now(UTC))))
        self.agents.append(agent)

    async def ask(self) -> None:
        """Attend one more start; return once the controller has answered."""
        self.number += 1
        number, heard = self.number, asyncio.Event()
        peer = await dial(
            self.service.port,
            "internal/attend",
            self.service.secret,
            lambda _: heard.set(),
        )
        user = Principal(user_id=number % 200 + 1, name=f"user{number % 200 + 1}")
        request = Ask(
            key=ServerKey(user_id=user.user_id, server_id=number),
            attempt="first",
            principal=user,
            server_name=f"s{number}",
            choice=Choice.model_validate({"profile": "lab", "class": "one"}),
            environment={"JUPYTERHUB_API_TOKEN": "x" * 32},
        )
        peer.say(request.model_dump_json(by_alias=True))
        async with asyncio.timeout(120):
            await heard.wait()


async def measure(
    service: Service, machines: int, waiting: int, events: int
) -> list[float]:
    """Return the seconds from each release to the next launch."""
    load = Load(service)
    running = await fill(load, machines, waiting)
    return await release(load, running, events)


async def fill(load: Load, machines: int, waiting: int) -> list[str]:
    """Fill every machine and let *waiting* more wait; return what runs."""
    slots = asyncio.Semaphore(DIALLED_AT_ONCE)

    async def bounded(step: Callable[[], object]) -> None:
        async with slots:
            await step()  # type: ignore[misc] - a coroutine function each time

    await asyncio.gather(
        *(bounded(lambda n=n: load.connect(n)) for n in range(machines))  # type: ignore[misc] - bound now
    )
    places = machines * CORES
    await asyncio.gather(*(bounded(load.ask) for _ in range(places + waiting)))
    running: list[str] = []
    while len(running) < places:
        async with asyncio.timeout(120):
            running.append((await load.launches.get())[1])
    return running


async def release(load: Load, running: list[str], events: int) -> list[float]:
    """Return the seconds from each release to the next launch."""
    seconds: list[float] = []
    for number in range(events):
        await load.ask()
        ended = running.pop(number * 7919 % len(running))
        start = time.perf_counter()
        load.where[ended].end(ended)
        async with asyncio.timeout(30):
            at, allocation = await load.launches.get()
        seconds.append(at - start)
        running.append(allocation)
    return seconds


async def run(machines: int, waiting: int, events: int) -> list[float]:
    """Start a controller, measure, and stop it."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        service = Service(Path(folder), machines)
        service.start()
        try:
            await until_listening(service.port)
            return await measure(service, machines, waiting, events)
        finally:
            service.stop()


def main() -> None:
    """Measure and keep the figures; exits with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, nargs="*", default=[10, 1000, 10_000])
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--events", type=int, default=300)
    arguments = parser.parse_args()
    raise_open_files_limit()
    samples: dict[str, list[float]] = {}
    figures: dict[str, float] = {}
    for size in arguments.machines:
        found = asyncio.run(run(size, arguments.waiting, arguments.events))
        samples[f"release_to_launch_{size}"] = found
        figures[f"p50_ms_{size}"] = quantile(found, 0.5) * 1000
        figures[f"p99_ms_{size}"] = quantile(found, 0.99) * 1000
    met = keep(
        "release_to_launch",
        samples=samples,
        ratios=figures,
        targets={name: 50.0 for name in figures if name.startswith("p99")},
        facts=vars(arguments),
    )
    sys.exit(not met)


if __name__ == "__main__":
    main()
