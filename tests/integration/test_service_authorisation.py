"""Who may do what: tokens, links, logins and bad input; see the walk for the table."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import Service, a_service
from scripted_agent import ScriptedAgent
from service_browser import Browser
from tornado.httpclient import HTTPClientError, HTTPRequest

from fleet_hub.admission import OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service where alice's workload waits and two other people exist."""
    async with a_service(tmp_path) as running:
        running.hub.add_user("alice")
        running.hub.add_user("bob")
        running.hub.add_user("root", admin=True)
        running.hub.add_user("eve", access=False)
        yield running


async def a_waiting_workload(service: Service) -> str:
    """Return the id of a workload of alice's that waits."""
    start = await AttendedStart(service, an_ask()).open()
    await start.until("waiting")
    workload = (await service.status())["workload"]
    assert isinstance(workload, str)
    return workload


async def test_a_hub_user_without_access_to_the_service_is_refused(
    service: Service,
) -> None:
    """The Hub's scopes count, not only the name."""
    response = await service.fetch("api/profiles", token="token hub-token-of-eve")
    assert response.code == 403


@pytest.mark.parametrize("path", ["agent", "internal/attend"])
async def test_a_wrong_token_opens_no_websocket(service: Service, path: str) -> None:
    """401 before the handshake, for agents and for the Spawner alike."""
    url = service.url.replace("http", "ws", 1) + path
    for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer "}):
        with pytest.raises(HTTPClientError) as caught:
            await service.dial(HTTPRequest(url, headers=header))
        assert caught.value.code == 401


async def test_a_rotated_machine_token_is_void(service: Service) -> None:
    """Enrolling again makes the earlier token worthless."""
    first = await service.enrol()
    second = await service.enrol()
    assert first != second
    agent = ScriptedAgent(service, first)
    with pytest.raises(HTTPClientError) as caught:
        await agent.connect()
    assert caught.value.code == 401
    agent = ScriptedAgent(service, second)
    await agent.connect()
    await agent.hang_up()


async def test_a_second_live_link_is_told_and_closed(service: Service) -> None:
    """The first one keeps working."""
    token = await service.enrol()
    first, second = ScriptedAgent(service, token), ScriptedAgent(service, token)
    await first.connect()
    await second.connect()
    goodbye = await second.dismissed()
    assert goodbye is not None
    assert goodbye.code == "duplicate_link"
    start = await AttendedStart(service, an_ask()).open()
    assert (await start.ended()).kind is OutcomeKind.READY
    assert len(first.launches) == 1
    await first.hang_up()


async def test_an_agent_of_another_protocol_is_told_and_closed(
    service: Service,
) -> None:
    """A goodbye with a remedy, not silence."""
    agent = ScriptedAgent(service, await service.enrol())
    await agent.connect(protocol=99)
    goodbye = await agent.dismissed()
    assert goodbye is not None
    assert goodbye.code == "protocol_unsupported"
    assert "99" in goodbye.message


async def test_the_owner_logs_in_and_leaves_the_line_from_the_page(
    service: Service,
) -> None:
    """OAuth through the Hub, the page with its five phases, the form with its proof."""
    workload = await a_waiting_workload(service)
    browser = Browser(service, "alice")
    code, page = await browser.visit(f"workloads/{workload}")
    assert code == 200
    assert 'role="status"' in page
    assert page.count('role="status"') == 1
    for word in ("Asked for JupyterLab", "Waiting in line", "Leave the line"):
        assert word in page
    assert "secret-ref" not in page
    target = f"{service.url}workloads/{workload}/leave"
    code, _, _ = await browser.fetch(target, body=urlencode({"_xsrf": "wrong"}))
    assert code == 403
    assert (await service.status())["state"] == "queued"

    found = re.search(r'name="_xsrf" value="([^"]+)"', page)
    assert found is not None
    code, location, _ = await browser.fetch(
        target, body=urlencode({"_xsrf": found.group(1)})
    )
    assert code == 303
    assert location.endswith(f"workloads/{workload}")
    assert (await service.status())["state"] == "stopped"
    _, page = await browser.visit(f"workloads/{workload}")
    assert "Start again" in page


async def test_a_stranger_sees_neither_page_nor_list(service: Service) -> None:
    """Somebody else's workload cannot be told from one that does not exist."""
    workload = await a_waiting_workload(service)
    browser = Browser(service, "bob")
    code, page = await browser.visit(f"workloads/{workload}")
    missing_code, missing = await browser.visit("workloads/w000")
    assert (code, page) == (missing_code, missing)
    assert code == 404
    _, listed = await browser.visit("")
    assert workload not in listed
    _, everything = await Browser(service, "root").visit("")
    assert workload in everything


async def test_what_comes_from_outside_is_escaped_everywhere(service: Service) -> None:
    """Names with markup stay text, on the list and on the page."""
    nasty = '<script>alert("x")</script>'
    service.hub.add_user(nasty)
    principal = a_principal(nasty, 7)
    start = await AttendedStart(service, an_ask(principal=principal)).open()
    await start.until("waiting")
    workload = (await service.status("7-1"))["workload"]
    browser = Browser(service, "root")
    for path in ("", f"workloads/{workload}"):
        _, page = await browser.visit(path)
        assert "alert" in page
        assert nasty not in page


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "internal/offers", b"no json"),
        ("POST", "internal/offers", b'{"principal": {"name": "x"}}'),
        ("POST", "internal/validate", b"[]"),
        ("POST", "internal/servers/1-1/stop", b'{"now": "perhaps"}'),
        ("GET", "internal/servers/1-1?wait=soon&until=settled", None),
        ("GET", "internal/servers/1-1/timeline?wait=nan", None),
        ("POST", "internal/machines", b'{"name": "box"}'),
    ],
)
async def test_bad_input_is_a_clear_400(
    service: Service, method: str, path: str, body: bytes | None
) -> None:
    """Nothing is done, and the answer says which part was not understood."""
    await a_waiting_workload(service)
    response = await service.fetch(path, method=method, body=body)
    assert response.code == 400, response.body
    assert "Traceback" not in response.body.decode()
    assert json.loads(response.body)["status"] == 400


@pytest.mark.parametrize("name", ["", "UPPER", "a b", "-x", "x" * 64, "../etc"])
async def test_a_machine_needs_a_name_that_is_safe(service: Service, name: str) -> None:
    """It goes into URLs, logs and sentences."""
    response = await service.fetch(
        "internal/machines", method="POST", body={"name": name, "owner": "alice"}
    )
    assert response.code == 409


async def test_no_secret_is_in_the_log(service: Service) -> None:
    """Neither tokens nor environments nor refs, whatever happened."""
    machine = await service.enrol()
    agent = ScriptedAgent(service, machine)
    await agent.connect()
    start = await AttendedStart(service, an_ask()).open()
    await start.ended()
    await asyncio.gather(
        service.fetch("api/timeline", token="Fleet wrong-token-in-a-header"),
        service.fetch("workloads/x?token=secret-in-a-query", token=None),
    )
    await service.kill_child()
    await agent.gone()
    text = service.log.read_text()
    environment = agent.launches[0].spec.environment
    for secret in (machine, *environment.values(), "secret-ref", "secret-in-a-query"):
        if secret != service.url:
            assert secret not in text
