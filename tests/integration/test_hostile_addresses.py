"""Where a lying agent leads people: to nothing but what was tried."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import namespaces
import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fleet_controller import an_ask
from fleet_service import Service, a_service
from hostile_agent import BOB
from namespaces import Lan, a_lan
from scripted_agent import ScriptedAgent
from small_hub import SmallHub

from fleet_contracts.enrolment import answer_to
from fleet_contracts.protocol import (
    AddressOffer,
    AddressVerdict,
    AgentEvent,
    Stop,
)
from fleet_contracts.reasons import Reason
from fleet_hub.admission import OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

NO_NAMESPACES = namespaces.why_none()


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with two users and an admin."""
    async with a_service(tmp_path) as running:
        running.hub.add_user("alice")
        running.hub.add_user("bob")
        running.hub.add_user("root", admin=True)
        yield running


async def test_without_a_tried_address_nothing_of_it_is_routed(
    service: Service,
) -> None:
    """It gets no work, and the Hub's address is not approved whatever answers there."""
    code = await service.json(
        "internal/codes", method="POST", body={"name": "far", "owner": "bob"}
    )
    answer = await service.json(
        "api/enrol", method="POST", token=None, body={"code": code["code"]}
    )
    hostile = ScriptedAgent(service, answer["token"])
    await hostile.connect()
    start = await AttendedStart(service, an_ask(principal=BOB)).open()
    await start.until("waiting")
    async with a_listener() as offer:
        for address in ("127.0.0.1", "localhost", "169.254.169.254", "0.0.0.0"):
            claim = offer.model_copy(update={"address": address})
            await hostile.say(claim)
            verdict = await the_verdict(hostile, address)
            assert verdict is not None
            assert verdict.explanation is not None
            assert verdict.explanation.reason in {
                Reason.ADDRESS_REFUSED,
                Reason.ADDRESS_UNKNOWN,
            }
    assert hostile.launches == []
    assert (await service.status("2-1"))["state"] == "queued"


@asynccontextmanager
async def a_listener(host: str = "127.0.0.1") -> AsyncIterator[AddressOffer]:
    """Answer every nonce at *host*, with the key that is offered."""
    key = "the-key-of-a-hostile-machine"

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonce = (await reader.readline()).decode().split()[-1]
        writer.write(f"{answer_to(nonce, key)}\n".encode())
        writer.close()

    server = await asyncio.start_server(answer, host, 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield AddressOffer(address=host, port=port, key=key)


async def the_verdict(agent: ScriptedAgent, address: str) -> AddressVerdict | None:
    """Return what the controller said about *address*."""

    def find() -> AddressVerdict | None:
        for message in reversed(agent.heard):
            if isinstance(message, AddressVerdict) and message.address == address:
                return message
        return None

    await agent.until(lambda: find() is not None)
    return find()


@pytest.fixture
def lan() -> Iterator[Lan]:
    """Return a network of its own."""
    if NO_NAMESPACES:
        pytest.skip(NO_NAMESPACES)
    with a_lan() as network:
        yield network


ANSWER = """
import socket, sys
from fleet_contracts.enrolment import answer_to
with socket.create_server((sys.argv[1], 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    nonce = connection.makefile().readline().split()[-1]
    connection.sendall(f"{answer_to(nonce, sys.argv[2])}\\n".encode())
"""


async def test_a_server_elsewhere_than_at_the_tried_address_is_ended(
    lan: Lan, tmp_path: Path
) -> None:
    """The Hub, its neighbours, other machines and other names: each is refused."""
    hub = SmallHub()
    hub.listen()
    service = Service(tmp_path, hub, JUPYTERHUB_FLEET_TRUSTED_NETWORKS=lan.network)
    try:
        await service.start()
        inside = lan.add("hostile")
        lan.add("other")
        code = await service.json(
            "internal/codes", method="POST", body={"name": "far", "owner": "bob"}
        )
        answer = await service.json(
            "api/enrol", method="POST", token=None, body={"code": code["code"]}
        )
        hostile = ScriptedAgent(service, answer["token"])
        hostile.is_automatic = False
        await hostile.connect()
        key, address = "the-key-of-a-hostile-machine", lan.address("hostile")
        process = await asyncio.create_subprocess_exec(
            *(*inside, sys.executable, "-c", ANSWER, address, key),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        await hostile.say(AddressOffer(address=address, port=port, key=key))
        verdict = await the_verdict(hostile, address)
        assert verdict is not None
        assert verdict.explanation is None
        await process.wait()
        urls = [
            "http://127.0.0.1:8081/hub/api/",
            f"http://{lan.hub}:8081/hub/api/",
            f"http://{lan.address('other')}:8888/user/alice/",
            "http://169.254.169.254/latest/meta-data/",
            "http://localhost:8081/",
            "http://[::ffff:127.0.0.1]:8081/",
            f"http://{address}:0/",
            f"http://root@{address}:80/",
            f"http://{address}:80/{'x' * 3000}",
            f"file://{address}:80/etc/passwd",
            None,
        ]
        for number, url in enumerate(urls, start=1):
            start = await AttendedStart(
                service, an_ask(principal=BOB, attempt=f"try-{number}")
            ).open()
            await start.until("placed")
            launch = await hostile.launched(number)
            await hostile.report(launch, AgentEvent.ACCEPTED)
            await hostile.report(launch, AgentEvent.SERVING, url=url)
            await hostile.until(
                lambda launch=launch: any(
                    isinstance(message, Stop)
                    and message.allocation == launch.allocation
                    for message in hostile.heard
                )
            )
            status = await service.status("2-1")
            assert status["state"] == "stopping", url
            assert status["url"] is None, url
            await hostile.report(launch, AgentEvent.ENDED)
            assert (await start.ended()).kind is not OutcomeKind.READY
        start = await AttendedStart(
            service, an_ask(principal=BOB, attempt="honestly")
        ).open()
        launch = await hostile.launched(len(urls) + 1)
        good = f"http://{address}:8888/user/bob/"
        await hostile.report(launch, AgentEvent.ACCEPTED)
        await hostile.report(launch, AgentEvent.SERVING, url=good)
        outcome = await start.ended()
        assert (outcome.kind, outcome.url) == (OutcomeKind.READY, good)
    finally:
        await service.close_links()
        await service.stop()
        await hub.close()
