"""Machines that join: the code, the command, the try of the address, and the end."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import namespaces
import pytest
import pytest_asyncio
from fleet_service import Service, a_service
from namespaces import Lan, a_lan
from patience import PATIENCE, until_so
from small_hub import SmallHub
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from fleet_hub.cli import main


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

NO_NAMESPACES = namespaces.why_none()


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service on loopback."""
    async with a_service(tmp_path) as running:
        yield running


async def command(service: Service, *arguments: str) -> int:
    """Return the exit status of ``jupyter-fleet`` on the Hub's machine."""
    data = str(service.folder / "data")
    return await asyncio.to_thread(main, [*arguments, "--data-dir", data])


async def a_code(service: Service, name: str = "far", **more: Any) -> str:
    """Return a fresh code."""
    body = {"name": name, "owner": "alice", **more}
    answer = await service.json("internal/codes", method="POST", body=body)
    return str(answer["code"])


class Joined:
    """The outcome of ``fleet-agent enrol``."""

    def __init__(self, folder: Path, status: int, said: str, complained: str) -> None:
        """Keep it."""
        self.folder, self.status = folder, status
        self.said, self.complained = said, complained

    @property
    def told(self) -> dict[str, Any]:
        """What the agent keeps of its enrolment."""
        content: dict[str, Any] = json.loads(
            (self.folder / "enrolment.json").read_text()
        )
        return content


async def join(
    service: Service, *arguments: str, inside: tuple[str, ...] = (), name: str = "agent"
) -> Joined:
    """Run ``fleet-agent enrol``, on another machine if *inside* says so."""
    folder = service.folder / name
    process = await asyncio.create_subprocess_exec(
        *inside,
        *(sys.executable, "-m", "fleet_agent.cli", "enrol"),
        *("--controller", service.url, "--state-dir", str(folder)),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complained = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode is not None
    return Joined(folder, process.returncode, said.decode(), complained.decode())


# -------------------------------------------------------------------- on loopback
async def test_a_command_in_a_terminal_gives_the_command_to_paste(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the code to an enrolled computer that keeps its secrets to itself."""
    arguments = ("enrol", "near", "--owner", "alice", "--local")
    assert await command(service, *arguments) == 0
    shown = capsys.readouterr().out
    assert "within 15 minutes" in shown
    found = re.search(r"fleet-agent enrol --controller (\S+) --code (\S+)", shown)
    assert found is not None
    assert found.group(1) == service.url
    joined = await join(service, "--code", found.group(2))
    assert joined.status == 0, joined.complained
    assert "as near, owned by alice" in joined.said
    assert joined.told["owner"] == "alice"
    for name in ("token", "enrolment.json"):
        mode = stat.S_IMODE((joined.folder / name).stat().st_mode)
        assert mode == 0o600, name
    token = (joined.folder / "token").read_text().strip()
    for secret in (token, found.group(2)):
        assert secret not in joined.said + joined.complained
        assert secret.encode() not in service.store.read_bytes()
        assert secret not in service.log.read_text()

    again = await join(service, "--code", found.group(2), name="second")
    assert again.status != 0
    assert "it was used, has expired, or was never given" in again.complained
    assert not (again.folder / "token").exists()


async def test_a_code_for_elsewhere_needs_the_hubs_address_and_says_so(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody told it, the command shows what to replace, and how to tell it."""
    assert await command(service, "enrol", "away", "--owner", "alice") == 0
    shown = capsys.readouterr().out
    assert "--controller https://YOUR-HUB/services/fleet/" in shown
    assert "c.FleetService.public_url" in shown
    url = "https://hub.example.org/services/fleet/"
    assert await command(service, "enrol", "off", "--owner", "alice", "--url", url) == 0
    shown = capsys.readouterr().out
    assert f"--controller {url} " in shown
    assert "YOUR-HUB" not in shown


async def test_a_code_can_be_read_from_the_terminal(service: Service) -> None:
    """So that it is in nobody's list of processes."""
    code = await a_code(service, local=True)
    folder = service.folder / "agent"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fleet_agent.cli", "enrol", "--code", "-"),
        *("--controller", service.url, "--state-dir", str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    await asyncio.wait_for(process.communicate(f"{code}\n".encode()), PATIENCE)
    assert process.returncode == 0
    assert (folder / "token").exists()


async def test_a_machine_at_the_hubs_own_address_is_told_so_at_once(
    service: Service,
) -> None:
    """It is enrolled, gets no work, and the sentence says what to do."""
    joined = await join(service, "--code", await a_code(service))
    assert joined.status == 69
    assert "Notebooks may not be led to its address 127.0.0.1" in joined.complained
    assert "--advertise-address" in joined.complained


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"X-Forwarded-For": "10.1.2.3", "X-Forwarded-Proto": "http"}, 426),
        ({"X-Forwarded-For": "10.1.2.3", "X-Forwarded-Proto": "https,http"}, 403),
        ({"X-Forwarded-For": "::ffff:127.0.0.1"}, 403),
        ({"X-Forwarded-For": "nonsense"}, 426),
    ],
)
async def test_a_code_travels_over_https_or_not_at_all(
    service: Service, headers: dict[str, str], status: int
) -> None:
    """Beyond loopback it is refused before it is looked at, and stays unused."""
    body = {"code": "enrol-that-was-never-given"}
    answer = await service.fetch(
        "api/enrol", method="POST", body=body, token=None, headers=headers
    )
    assert answer.code == status
    assert ("https" in answer.body.decode()) == (status == 426)


async def test_rotating_and_revoking_end_the_link(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agent ends with a sentence; a new code lets the machine back in."""
    joined = await join(service, "--code", await a_code(service, "near", local=True))
    for deed in ("rotate", "revoke"):
        async with running(service, joined.folder) as agent:
            await agent.until("link is up")
            assert await command(service, deed, "near") == 0
            assert await agent.ended() == 77
            assert "enrol this machine again" in agent.told()
        shown = capsys.readouterr().out
        assert "Its token is void" in shown
        code = re.search(r"--code (\S+)", shown)
        fresh = code.group(1) if code else await a_code(service, "near", local=True)
        assert (code is not None) == (deed == "rotate")
        assert (await join(service, "--code", fresh)).status == 0
    assert await command(service, "audit", "near") == 0
    log = capsys.readouterr().out
    for words in (
        "revoked its token",
        "voided its token",
        "enrolled it",
        "(with a code made by root)",
        "made an enr",
    ):
        assert words in log
    assert await command(service, "revoke", "no-such") == 1
    assert "there is no machine 'no-such'" in capsys.readouterr().err


async def test_a_machine_is_governed_from_a_terminal(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command says what came of it, and the log who did it."""
    await service.enrol("box", "alice")
    for arguments, said, shown in (
        (("drain", "box"), "It takes nothing new", {"draining_by": "an admin"}),
        (("resume", "box"), "It takes work again", {"draining_by": None}),
        (("audience", "box", "member"), "whom it serves", {"admin_allows": "member"}),
        (
            ("members", "box", "bob", "@bio"),
            "members were changed",
            {"members": ["bob"], "member_groups": ["bio"]},
        ),
        (("members", "box"), "members were changed", {"members": []}),
        (
            ("lost", "box", "--why", "stolen"),
            "everything that it held was given back",
            {},
        ),
    ):
        assert await command(service, *arguments) == 0
        assert said in capsys.readouterr().out
        assert shown.items() <= (await machine(service, "box")).items()
    assert await command(service, "audit", "--limit", "2", "--json") == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["action"] for entry in entries] == ["declared_lost", "members_set"]
    assert entries[0]["role"] == "terminal"
    assert [entry["why"] for entry in entries] == ["stolen", ""]
    assert entries[0]["words"] == "declared it lost, saying: stolen"
    assert await command(service, "enrol", "box", "--owner", "bob") == 1
    assert "machine of this name already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>a login page</html>", "does not answer like a fleet service"),
        (302, b"", "check the address"),
        (404, b'{"message": "Not Found"}', "there is no fleet service at http://"),
        (500, b'{"message": "\x1b[2Jred"}', "refused (500)"),
    ],
)
async def test_something_else_at_the_address_is_told_as_such(
    tmp_path: Path, status: int, body: bytes, said: str
) -> None:
    """The code follows nobody elsewhere, and nothing is kept."""

    class Something(RequestHandler):
        def post(self) -> None:
            self.set_status(status)
            self.set_header("Location", "http://127.0.0.1:9/elsewhere")
            self.finish(body)

    (listener,) = bind_sockets(0, "127.0.0.1")
    server = HTTPServer(Application([(r"/.*", Something)]))
    server.add_sockets([listener])
    hub = SmallHub()
    service = Service(tmp_path, hub)
    service.port = listener.getsockname()[1]
    joined = await join(service, "--code", "enrol-something")
    assert joined.status != 0
    assert said in joined.complained
    assert "\x1b" not in joined.complained
    assert not (joined.folder / "token").exists()
    server.stop()
    await server.close_all_connections()


# ------------------------------------------------------------ on other machines
@pytest.fixture
def lan() -> Iterator[Lan]:
    """Return a network of its own."""
    if NO_NAMESPACES:
        pytest.skip(NO_NAMESPACES)
    with a_lan() as network:
        yield network


@pytest_asyncio.fixture
async def hub_at(lan: Lan, tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service that machines of the network reach."""
    hub = SmallHub()
    hub.listen()
    service = Service(tmp_path, hub, JUPYTERHUB_FLEET_TRUSTED_NETWORKS=lan.network)
    service.host, service.arguments = lan.hub, ["--FleetService.allow_remote=True"]
    try:
        await service.start()
        yield service
    finally:
        await service.close_links()
        with suppress(AssertionError):
            await service.stop()
        await hub.close()


class RunningAgent:
    """``fleet-agent run`` on some machine."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        """Watch *process*."""
        self._process, self._log = process, log

    def told(self) -> str:
        """Return what it has logged."""
        return self._log.read_text()

    async def until(self, text: str) -> None:
        """Return once it has logged *text*."""
        await until_so(lambda: text in self.told(), f"the agent tells {text}")

    async def ended(self) -> int:
        """Return its exit status once it has ended."""
        return await asyncio.wait_for(self._process.wait(), PATIENCE)

    async def __aexit__(self, *exception: object) -> None:
        """End it."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGINT)
            await self.ended()


class running:  # noqa: N801 - reads as a word
    """Run an agent for a while."""

    def __init__(self, service: Service, folder: Path, *inside: str) -> None:
        """Run the one whose state is in *folder*."""
        self._log = folder.parent / f"{folder.name}.log"
        self._command = [
            *inside,
            *(sys.executable, "-m", "fleet_agent.cli", "run", "--simulation"),
            *("--state-dir", str(folder)),
        ]
        self._agent: RunningAgent | None = None

    async def __aenter__(self) -> RunningAgent:
        """Start it."""
        with self._log.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdout=log, stderr=log
            )
        self._agent = RunningAgent(process, self._log)
        return self._agent

    async def __aexit__(self, *exception: object) -> None:
        """End it."""
        assert self._agent is not None
        await self._agent.__aexit__(*exception)


async def machine(service: Service, name: str) -> dict[str, Any]:
    """Return what the controller tells of a machine."""
    fleet = await service.json("internal/machines")
    found: dict[str, Any] = next(
        item for item in fleet["machines"] if item["name"] == name
    )
    return found


async def test_another_machine_is_tried_while_it_joins(
    lan: Lan, hub_at: Service
) -> None:
    """Its own address towards the Hub is taken, tried and approved; it then links."""
    inside = tuple(lan.add("a"))
    joined = await join(hub_at, "--code", await a_code(hub_at), *TRUSTED, inside=inside)
    assert joined.status == 0, joined.complained
    assert joined.told["advertise_address"] == lan.address("a")
    shown = await machine(hub_at, "far")
    assert shown["address"] == lan.address("a")
    async with running(hub_at, joined.folder, *inside) as agent:
        await agent.until("link is up")
        assert "address approved" not in agent.told(), "nothing is tried twice"


async def test_a_machine_behind_a_firewall_is_told_at_enrolment(
    lan: Lan, hub_at: Service
) -> None:
    """Not at the first spawn; when its address answers later, that counts."""
    inside = tuple(lan.add("a"))
    lan.add("silent")
    elsewhere = ("--advertise-address", lan.address("silent"))
    joined = await join(
        hub_at,
        *("--code", await a_code(hub_at), *TRUSTED, *elsewhere),
        *("--bind-address", lan.address("a")),
        inside=inside,
    )
    assert joined.status == 69
    where = lan.address("silent")
    assert f"The Hub does not reach it at {where}" in joined.complained
    assert "firewall" in joined.complained
    shown = await machine(hub_at, "far")
    assert shown["address"] is None
    assert shown["address_fault"]["reason"] == "address_unreachable"

    told = joined.told | {"advertise_address": lan.address("a")}
    (joined.folder / "enrolment.json").write_text(json.dumps(told))
    async with running(hub_at, joined.folder, *inside) as agent:
        await agent.until("address approved")
    assert (await machine(hub_at, "far"))["address"] == lan.address("a")


async def test_the_hubs_and_another_machines_addresses_are_refused(
    lan: Lan, hub_at: Service
) -> None:
    """Whoever claims them, with whatever listener."""
    first, second = tuple(lan.add("a")), tuple(lan.add("b"))
    joined = await join(hub_at, "--code", await a_code(hub_at), *TRUSTED, inside=first)
    assert joined.status == 0
    for number, claim in enumerate((lan.hub, lan.address("a"), "localhost")):
        joined = await join(
            hub_at,
            *("--code", await a_code(hub_at, f"other-{number}"), *TRUSTED),
            *("--advertise-address", claim, "--bind-address", lan.address("b")),
            inside=second,
            name=f"agent-{number}",
        )
        assert joined.status == 69, joined.said
        assert "Notebooks may not be led to its address" in joined.complained


TRUSTED = ("--trusted-network",)
