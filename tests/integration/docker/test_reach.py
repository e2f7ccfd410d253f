"""Containers reach the Hub and the outside, and not the machine's private network.

Real engine, real packet filter; other computers are played by a network namespace.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from docker_engine import PrivateEngine
from docker_machine import a_container, a_job, run_inside, started
from neighbours import METADATA, Neighbours, neighbours

from fleet_agent.drivers.base import Handle
from fleet_agent.drivers.docker import firewall
from fleet_agent.drivers.docker.driver import DockerDriver
from fleet_agent.drivers.docker.reach import read_reach


pytestmark = [pytest.mark.asyncio, pytest.mark.slow, pytest.mark.timeout(300)]

Maker = Callable[..., DockerDriver]

_TRY = """
import json, socket, sys
told = {}
for host, port in TARGETS:
    try:
        with socket.create_connection((host, port), timeout=60) as connection:
            told[f"{host} {port}"] = connection.recv(5).decode()
    except OSError as error:
        told[f"{host} {port}"] = type(error).__name__
print(json.dumps(told))
"""


@contextmanager
def a_service() -> Iterator[int]:
    """Say hello at a port of this machine, at each of its addresses."""
    listener = socket.create_server(
        ("::", 0), family=socket.AF_INET6, dualstack_ipv6=True
    )

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"hello")

    thread = Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@dataclass(frozen=True)
class Around:
    """What there is to be reached or not."""

    them: Neighbours
    """Other computers, each with a web server and a server of names."""
    hub: int
    """The port of a Hub on this machine."""
    other: int
    """The port of a service that is nobody's business."""


@pytest.fixture
def around() -> Iterator[Around]:
    """Have all of it."""
    with neighbours([80, 53]) as them, a_service() as hub, a_service() as other:
        yield Around(them, hub, other)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, around: Around) -> None:
    """Have a neighbour be whom this machine asks for names."""
    resolv = tmp_path / "resolv.conf"
    resolv.write_text(f"nameserver 127.0.0.53\nnameserver {around.them.private}\n")
    monkeypatch.setattr(firewall, "RESOLVERS", (resolv,))


def notebook_of(hub: int) -> Any:
    """Return a notebook that is told of a Hub at that port of this machine."""
    return a_container(
        environment={"JUPYTERHUB_API_URL": f"http://127.0.0.1:{hub}/hub/api"}
    )


def reached(client: Any, handle: Handle, *targets: tuple[str, int]) -> list[bool]:
    """Return which *targets* the container of *handle* gets an answer from."""
    told = run_inside(client, handle, f"TARGETS = {targets!r}\n{_TRY}")
    answers = json.loads(told)
    return [answers[f"{host} {port}"] == "hello" for host, port in targets]


def tables() -> str:
    """Return the names of all tables of the packet filter."""
    return subprocess.run(
        ["nft", "list", "tables"], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.usefixtures("names")
async def test_the_hub_and_the_outside_are_reached_and_nothing_else(
    make_driver: Maker,
    shared_engine: PrivateEngine,
    client: Any,
    around: Around,
) -> None:
    """No other service of this machine, no neighbour, no metadata of a cloud.

    Whom the machine asks for names is asked for names, and for nothing else.
    """
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job(notebook_of(around.hub)))
    try:
        machine = client.inspect_network(f"fleet-{handle.data['agent']}")["IPAM"]
        gateway = machine["Config"][0]["Gateway"]
        open_to = reached(
            client,
            handle,
            ("host.docker.internal", around.hub),
            (around.them.public, 80),
            (around.them.private, 53),
        )
        closed_to = reached(
            client,
            handle,
            ("host.docker.internal", around.other),
            (gateway, around.other),
            (around.them.machine, around.other),
            (around.them.machine, around.hub),
            (around.them.private, 80),
            (METADATA, 80),
        )
    finally:
        await driver.stop(handle, grace_seconds=0)

    assert open_to == [True] * 3
    assert closed_to == [False] * 6


async def test_an_owner_may_allow_a_network_or_everything(
    make_driver: Maker,
    shared_engine: PrivateEngine,
    client: Any,
    around: Around,
    tmp_path: Path,
) -> None:
    """What they name is reached; with ``all`` nothing is kept from containers."""
    found = []
    for number, words in enumerate(([around.them.private], ["all"])):
        driver = make_driver(
            shared_engine, reach=read_reach(words), state=tmp_path / str(number)
        )
        handle = await started(driver, a_job())
        found.append(
            reached(
                client,
                handle,
                (around.them.private, 80),
                (METADATA, 80),
                ("host.docker.internal", around.other),
            )
        )
        await driver.stop(handle, grace_seconds=0)

    assert found == [[True, False, False], [True, True, True]]


async def test_the_same_holds_for_ipv6(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any, around: Around
) -> None:
    """Where the containers' network has it, which is its owner's doing."""
    driver = make_driver(shared_engine)
    gateway = _make_with_ipv6(client, f"fleet-{driver._places.mark()}")
    url = f"http://[{gateway}]:{around.hub}/hub/api"
    job = a_job(a_container(environment={"JUPYTERHUB_API_URL": url}))
    handle = await started(driver, job)
    try:
        found = reached(
            client,
            handle,
            (gateway, around.hub),
            (around.them.public6, 80),
            (gateway, around.other),
            (around.them.private6, 80),
        )
    finally:
        await driver.stop(handle, grace_seconds=0)

    assert found == [True, True, False, False]


def _make_with_ipv6(client: Any, name: str) -> str:
    """Make a network as an owner who wants it does; return the machine's address."""
    pool = {"Subnet": "fd52::/64", "Gateway": "fd52::1"}
    client.create_network(
        name, driver="bridge", enable_ipv6=True, ipam={"Config": [pool]}
    )
    return pool["Gateway"]


async def test_restarts_of_agent_and_engine_open_nothing(
    make_driver: Maker, lasting_engine: PrivateEngine, around: Around
) -> None:
    """Neither does somebody who empties the packet filter, for long."""
    target, found = (around.them.private, 80), []
    driver = make_driver(lasting_engine)
    handle = await started(driver, a_job(notebook_of(around.hub)))
    await driver.close()
    lasting_engine.end()
    lasting_engine.start("--live-restore")
    table = f"fleet_{handle.data['agent']}"
    with lasting_engine.client() as client:
        found.append(reached(client, handle, target, (around.them.public, 80)))
        _delete(table)
        successor = make_driver(lasting_engine)
        await successor.open()
        hub = ("host.docker.internal", around.hub)
        found.append(reached(client, handle, target, hub))
        _delete(table)
        assert await successor._firewall.look_after()
        found.append(reached(client, handle, target))
    await successor.stop(handle, grace_seconds=0)
    await successor.close()

    assert found == [[False, True], [False, True], [False]]
    assert table not in tables()


def _delete(table: str) -> None:
    subprocess.run(["nft", "delete", "table", "inet", table], check=True)


async def test_the_rules_go_with_the_network_that_needs_them(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """Both are there while any notebook is, and not after the agent's end."""
    driver = make_driver(shared_engine)
    first = await started(driver, a_job(name="first"))
    second = await started(driver, a_job(a_container(notebook="other"), name="second"))
    mark = first.data["agent"]
    await driver.stop(first, grace_seconds=0)
    await driver.close()
    kept = f"fleet_{mark}" in tables(), len(client.networks([f"fleet-{mark}"]))
    successor = make_driver(shared_engine)
    await successor.open()
    await successor.stop(second, grace_seconds=0)
    await successor.close()
    left = f"fleet_{mark}" in tables(), len(client.networks([f"fleet-{mark}"]))

    assert kept == (True, 1)
    assert left == (False, 0)
