"""The fleet page: enrolment, deeds, use, the audit log, and what is not there."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import Service, a_service
from page_visits import Visit, add_people, entries
from rich_machine import a_rich_picture
from scripted_agent import ScriptedAgent
from service_browser import Browser
from small_hub import SmallHub

from fleet_contracts.protocol import CapabilitiesChanged
from fleet_hub.admission import OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

HOSTILE = "<script>alert('x')</script>"
ADMIN_PAGES = (
    *("", "machines", "machines/box", "line", "decisions", "holds", "profiles"),
    *("usage", "audit"),
)


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with a machine owner, somebody else and an admin."""
    async with a_service(tmp_path) as running:
        add_people(running.hub)
        yield running


async def test_a_machine_is_enrolled_from_a_button(service: Service) -> None:
    """The command is shown once, its code works once, and the machine is listed."""
    root = Visit(service, "root")
    code, text = await root.submit("machines", "machines", name="far", owner="alice")
    assert code == 200
    command = re.search(r"fleet-agent enrol --controller (\S+) --code ([\w-]+)", text)
    assert command is not None
    assert command.group(1) == service.url
    secret = command.group(2)
    body = {"code": secret}
    for expected in (200, 403):
        answer = await service.fetch("api/enrol", method="POST", body=body, token=None)
        assert answer.code == expected
    told = json.loads((await service.fetch("internal/machines")).body)
    assert told["machines"][0]["owner"] == "alice"
    _, listed = await Browser(service, "alice").visit("machines")
    assert "far" in listed
    assert "It gets no work." in listed, "nobody has tried its address"
    assert secret not in service.log.read_text()
    assert secret not in listed
    assert await entries(service) == [
        ("root", "code_made", "far"),
        ("alice", "enrolled", "far"),
    ]


async def test_a_wrong_name_is_explained_and_makes_no_code(service: Service) -> None:
    """A taken one as well."""
    await service.enrol("box", "alice")
    root = Visit(service, "root")
    for name, owner in (("Not A Name", "alice"), ("box", "bob"), ("", "alice")):
        code, text = await root.submit("machines", "machines", name=name, owner=owner)
        assert code == 409
        assert "fleet-agent enrol" not in text
    assert [action for _, action, _ in await entries(service)] == ["enrolled"]


async def test_who_is_no_admin_enrols_only_where_that_is_allowed(
    tmp_path: Path,
) -> None:
    """And then for nobody but themselves."""
    async with a_service(tmp_path / "closed") as service:
        add_people(service.hub)
        _, page = await Browser(service, "alice").visit("machines")
        assert "Enrol a machine" not in page
    async with a_service(
        tmp_path / "open", JUPYTERHUB_FLEET_USERS_MAY_ENROL="1"
    ) as service:
        add_people(service.hub)
        alice = Visit(service, "alice")
        code, _ = await alice.submit("machines", "machines", name="mine", owner="root")
        assert code == 200
        log = await service.json("internal/audit")
        assert log["entries"][0]["detail"] == "for alice"


async def test_deeds_are_done_told_and_written_down(service: Service) -> None:
    """Each with who did it, as what, and to which machine."""
    await service.enrol("box", "alice")
    alice, root = Visit(service, "alice"), Visit(service, "root")
    box = "machines/box"
    _, page = await alice.submit(box, f"{box}/drain")
    assert "It takes nothing new." in page
    assert "drained by its owner" in page
    _, page = await alice.submit(box, f"{box}/resume")
    assert "It takes work again." in page
    _, page = await alice.submit(box, f"{box}/lending", choice="guest")
    assert "The owner&#39;s word" in page
    _, page = await root.submit(box, f"{box}/audience", choice="member")
    assert '<option value="member" selected>' in page
    _, page = await alice.submit(box, f"{box}/members", choice=" bob,@bio , bob")
    assert "Its members were changed." in page
    assert 'value="bob, @bio"' in page
    code, page = await alice.submit(box, f"{box}/members", choice="@")
    assert code == 409
    assert "Write user names and @groups" in page
    _, page = await root.submit(box, f"{box}/drain")
    code, page = await alice.submit(box, f"{box}/resume")
    assert code == 409
    assert "only an admin can resume it" in page
    code, _ = await root.submit(box, f"{box}/lost", why="x" * 301)
    assert code == 400
    _, page = await root.submit(box, f"{box}/lost", why=" its <b>disk</b> died ")
    assert "everything that it held was given back" in page
    code, page = await alice.submit(box, f"{box}/rotate")
    assert code == 200
    assert "--code enrol-" in page
    _, page = await alice.submit(box, f"{box}/revoke")
    assert "Its token is revoked: it cannot connect." in page
    assert (await entries(service))[1:] == [
        ("alice", "drained", "box"),
        ("alice", "resumed", "box"),
        ("alice", "lending_set", "box"),
        ("root", "audience_set", "box"),
        ("alice", "members_set", "box"),
        ("root", "drained", "box"),
        ("root", "declared_lost", "box"),
        ("alice", "rotated", "box"),
        ("alice", "code_made", "box"),
        ("alice", "revoked", "box"),
    ]
    _, page = await root.visit("audit?target=box")
    assert "declared it lost, saying: its &lt;b&gt;disk&lt;/b&gt; died<" in page
    assert "alice <span" in page
    assert 'href="?format=csv&amp;target=box"' in page
    exported = await service.fetch(
        "audit?format=csv&target=box", token="token hub-token-of-root"
    )
    table = list(csv.DictReader(io.StringIO(exported.body.decode())))
    assert [row["action"] for row in table[:2]] == ["revoked", "code_made"]
    assert {row["target"] for row in table} == {"box"}
    (lost,) = [row for row in table if row["action"] == "declared_lost"]
    assert (lost["actor"], lost["why"]) == ("root", "its <b>disk</b> died")
    _, text = await root.visit(f"audit?format=json&before={table[1]['seq']}")
    document = json.loads(text)
    assert document["schema"] == "jupyterhub-fleet/table-audit/v1"
    assert [row["action"] for row in document["rows"]][-1] == "enrolled"


async def test_a_deed_without_its_proof_is_not_done(service: Service) -> None:
    """Another site's page can send the form, and nothing happens."""
    await service.enrol("box", "alice")
    for who in ("alice", "root"):
        for deed in ("drain", "rotate", "revoke", "lending"):
            code, _ = await Visit(service, who).submit(
                "machines/box", f"machines/box/{deed}", proof="guessed", choice="guest"
            )
            assert code == 403, deed
    code, _ = await Visit(service, "root").submit(
        "machines", "machines", proof="guessed", name="new", owner="root"
    )
    assert code == 403
    assert [action for _, action, _ in await entries(service)] == ["enrolled"]


async def test_what_is_not_there_is_said_as_it_is_asked_for(service: Service) -> None:
    """A page for a browser, JSON for a program, whoever asks."""
    for path, accept, kind in (
        ("nothing/here", "text/html,*/*;q=0.8", "text/html"),
        ("nothing/here", "*/*", "application/json"),
        ("nothing/here", "application/json", "application/json"),
        ("api/nothing", "text/html", "application/json"),
    ):
        response = await service.fetch(path, token=None, headers={"Accept": accept})
        assert response.code == 404
        assert response.headers["Content-Type"].startswith(kind)
        assert b"There is no such page here" in response.body


async def test_everybody_reads_their_own_use_and_an_admin_all(
    service: Service,
) -> None:
    """In a period that a person writes; a wrong one is explained."""
    agent = ScriptedAgent(service, await service.enrol("box", "alice"))
    await agent.connect()
    start = await AttendedStart(service, an_ask(class_name="whole")).open()
    assert (await start.ended()).kind is OutcomeKind.READY
    _, page = await Browser(service, "alice").visit("usage")
    assert "Your use of the fleet" in unescape(page)
    assert "whole" in page
    _, page = await Browser(service, "root").visit("usage?since=7d")
    assert "alice" in page.split("<tbody>")[1]
    _, page = await Browser(service, "bob").visit("usage")
    assert "Nothing was held." in page
    code, page = await Browser(service, "bob").visit("usage?since=whenever")
    assert code == 400
    assert "since is no time" in page
    await agent.hang_up()


async def test_a_second_agent_is_refused_and_reported(service: Service) -> None:
    """On the machine's page, in the list and in the log; the first one works on."""
    token = await service.enrol("box", "alice")
    first, second = ScriptedAgent(service, token), ScriptedAgent(service, token)
    await first.connect()
    await second.connect()
    goodbye = await second.dismissed()
    assert goodbye is not None
    assert goodbye.code == "duplicate_link"
    await first.settle()
    for path in ("machines", "machines/box"):
        _, page = await Browser(service, "alice").visit(path)
        assert "A second agent tried to speak for it and was refused, once" in page
    assert (await entries(service))[-1] == ("box", "second_link_refused", "box")
    await first.hang_up()


async def test_hostile_words_stay_text_on_every_page(tmp_path: Path) -> None:
    """A tool's output, a profile's title, a user's and an owner's name."""
    hub = SmallHub()
    hub.listen()
    service = Service(tmp_path, hub)
    add_people(hub)
    text = service.catalog.read_text()
    service.edit_catalog(
        text.replace("title: JupyterLab", f'title: "{HOSTILE}"').replace(
            "title: Whole", f'title: "{HOSTILE}"'
        )
    )
    try:
        await service.start()
        hub.add_user(HOSTILE)
        await service.enrol("spare", HOSTILE)
        agent = ScriptedAgent(service, await service.enrol("box", HOSTILE))
        await agent.connect()
        principal = a_principal(HOSTILE, 7)
        start = await AttendedStart(service, an_ask(principal=principal)).open()
        await start.until("placed")
        picture = a_rich_picture(datetime.now(UTC), text=f"{HOSTILE}\x1b[2J\u202e")
        await agent.say(
            CapabilitiesChanged(
                capabilities=picture.model_dump(mode="json", by_alias=True)
            )
        )
        await agent.settle()
        root = Visit(service, "root")
        await root.submit("machines/box", "machines/box/drain")
        start = await AttendedStart(service, an_ask(2, principal=principal)).open()
        await start.until("waiting")
        workload = (await service.status("7-2"))["workload"]
        _, code_page = await root.submit(
            "machines", "machines", name="new", owner=HOSTILE
        )
        pages = [code_page]
        for path in (*ADMIN_PAGES, f"workloads/{workload}"):
            code, page = await root.visit(path)
            assert code == 200
            pages.append(page)
            assert "alert(" in page, f"{path} shows none of it"
        _, own = await Browser(service, HOSTILE).visit("machines/box")
        for page in (*pages, own):
            assert "<script>alert" not in page
            assert "\x1b" not in page
            assert "\u202e" not in page
            for attributes in re.findall(r"<script([^>]*)>", page):
                own = re.search(r'src="/services/fleet/(static|assets)/', attributes)
                assert own or 'type="application/json"' in attributes, attributes
        await agent.hang_up()
    finally:
        await service.close_links()
        await service.stop()
        await hub.close()
