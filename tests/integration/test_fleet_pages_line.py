"""The fleet page: the line, what is held, who could start, and the tables of all of it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fake_agent import some_capabilities
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import CATALOG, Service, a_service
from page_visits import Visit, add_people, entries
from scripted_agent import ScriptedAgent
from service_browser import Browser

from fleet_contracts.workloads import DriverName
from fleet_hub.admission import OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with a machine owner, somebody else and an admin."""
    async with a_service(tmp_path) as running:
        add_people(running.hub)
        yield running


async def test_the_line_tells_why_and_lets_an_admin_take_somebody_out(
    service: Service,
) -> None:
    """With a link to the same timeline; the log says who did it."""
    await service.enrol("box", "alice")
    start = await AttendedStart(service, an_ask()).open()
    await start.until("waiting")
    workload = (await service.status())["workload"]
    root = Visit(service, "root")
    _, page = await root.visit("line")
    assert "1 waiting" in page
    assert f"workloads/{workload}" in page
    assert "alice / default" in page
    assert "not connected" in page or "has just started" in page
    await root.submit("line", f"workloads/{workload}/leave")
    assert (await service.status())["state"] == "stopped"
    _, page = await root.visit("line")
    assert "Nobody waits." in page
    assert (await entries(service))[-1] == ("root", "left_the_line", workload)


async def test_an_admin_gives_somebody_another_place(service: Service) -> None:
    """With a reason, which the log keeps; nobody else may, and no other site."""
    agent = ScriptedAgent(service, await service.enrol("box", "alice"), cores=4)
    await agent.connect()
    for server in (1, 2, 3):
        start = await AttendedStart(service, an_ask(server, class_name="whole")).open()
        await (start.until("waiting") if server > 1 else start.ended())
    last = (await service.status("1-3"))["workload"]
    deed = f"workloads/{last}/move"
    root = Visit(service, "root")
    code, _ = await root.submit("line", deed, proof="guessed", place="first")
    assert code == 403
    code, page = await root.submit("line", deed, place="front")
    assert code == 400
    code, page = await root.submit("line", deed, place="first", why="a <b>course</b>")
    assert code == 200
    rows = page.split("<tbody>")[2]
    assert rows.index("alice / server-3") < rows.index("alice / server-2")
    assert ">put first<" in rows
    assert (await entries(service))[-1] == ("root", "moved_in_line", last)
    _, page = await root.visit(f"audit?target={last}")
    assert "(first: alice/server-3), saying: a &lt;b&gt;course&lt;/b&gt;<" in page
    told = await service.json(
        f"api/workloads/{last}/timeline", token="token hub-token-of-alice"
    )
    assert "place_moved" in json.dumps(told)
    await agent.hang_up()


async def test_who_an_admin_puts_first_is_named_to_whoever_is_pushed_back(
    service: Service,
) -> None:
    """From the admin's form to the other's timeline, in all of its forms."""
    limited = CATALOG.replace("memory: 1G}", "memory: 1G, limit: 1h}")
    limited = limited.replace("driver_refs: {native: secret-ref}", "ref: pretended")
    limited = limited.replace("title: Whole", "title: For an hour")
    await service.offers_from(limited, "For an hour")
    agent = ScriptedAgent(service, await service.enrol("box", "carol"), cores=4)
    agent.more = some_capabilities(driver=DriverName.SIMULATION)
    await agent.connect()
    for deed in ("audience", "lending"):
        await service.json(
            f"internal/machines/box/{deed}", method="POST", body={"choice": "guest"}
        )
    held = await AttendedStart(service, an_ask(class_name="whole")).open()
    assert (await held.ended()).kind is OutcomeKind.READY
    await (await AttendedStart(service, an_ask(2, class_name="whole")).open()).until(
        "waiting"
    )
    bob = a_principal("bob", 2)
    await (
        await AttendedStart(
            service, an_ask(3, class_name="whole", principal=bob)
        ).open()
    ).until("waiting")
    pushed, first = [(await service.status(key))["workload"] for key in ("1-2", "2-3")]
    root, alice = Visit(service, "root"), Browser(service, "alice")
    code, _ = await root.submit("line", f"workloads/{first}/move", place="first")
    assert code == 200
    told = (
        "the promised time cannot be kept because an admin put a server of bob first "
        "in the line"
    )
    _, page = await alice.visit(f"workloads/{pushed}")
    assert told in unescape(page)
    document = await service.json(
        f"api/workloads/{pushed}/timeline", token="token hub-token-of-alice"
    )
    (broken,) = [
        event["explanation"]
        for event in document["events"]
        if (event.get("explanation") or {}).get("reason") == "promise_broken"
    ]
    assert broken["subject"] == "put_first"
    assert broken["holders"][0]["owner"] == "bob"
    await agent.hang_up()


async def test_what_is_held_and_who_could_start_are_shown(service: Service) -> None:
    """The holder by name for an admin; the next one would wait, and why."""
    agent = ScriptedAgent(service, await service.enrol("box", "alice"), cores=4)
    await agent.connect()
    start = await AttendedStart(service, an_ask(class_name="whole")).open()
    assert (await start.ended()).kind is OutcomeKind.READY
    root = Browser(service, "root")
    _, page = await root.visit("holds")
    assert "1 allocation, by machine" in page
    assert "4 cores, 1.0 GiB" in page
    _, page = await root.visit("profiles")
    rows = page.split("<tbody>")[1]
    assert "alice" in rows
    assert "too few cores are free" in unescape(rows)
    _, page = await root.visit("profiles?user=bob")
    assert "✕</span> bob" in page, "the machine is not his"
    await agent.hang_up()


async def test_a_page_names_who_holds_what_is_waited_for_unless_that_is_hidden(
    service: Service,
) -> None:
    """Bob waits for Alice's server: on his pages and in his document, her name or none."""
    # What a machine pretends to run may be anybody's.
    refs = "driver_refs: {native: secret-ref}"
    catalog = CATALOG.replace(refs, "ref: pretended").replace("cpu: 4", "cpu: 3")
    await service.offers_from(catalog, "3000")
    agent = ScriptedAgent(service, await service.enrol("box", "carol"))
    agent.more = some_capabilities(driver=DriverName.SIMULATION)
    await agent.connect()
    for deed in ("audience", "lending"):
        await service.json(
            f"internal/machines/box/{deed}", method="POST", body={"choice": "guest"}
        )
    held = await AttendedStart(service, an_ask(class_name="whole")).open()
    assert (await held.ended()).kind is OutcomeKind.READY

    async def told(server: int, *, is_new: bool = True) -> list[str]:
        principal = a_principal("bob", 2)
        ask = an_ask(server, class_name="whole", principal=principal)
        if is_new:
            await (await AttendedStart(service, ask).open()).until("waiting")
        page = f"workloads/{(await service.status(f'2-{server}'))['workload']}"
        bob = Browser(service, "bob")
        shown = [(await bob.visit(page + more))[1] for more in ("", "/why")]
        for more in ("timeline", "explain"):
            path, token = f"api/{page}/{more}", "token hub-token-of-bob"
            shown.append((await service.fetch(path, token=token)).body.decode())
        return shown

    assert ["alice" in text for text in await told(1)] == [True] * 4
    await service.stop()
    service.arguments = ["--FleetService.names_visible=False"]
    await service.start()
    await agent.connect()
    hidden = await told(2)
    assert ["alice" in text for text in hidden] == [False] * 4
    assert "held by somebody else" in hidden[0]
    # What was told and written down while names were shown.
    before = await told(1, is_new=False)
    assert ["alice" in text for text in before] == [False] * 4
    assert "held by somebody else" in before[0]
    state = await service.json("internal/export")
    assert '"owner": "alice"' not in json.dumps(state["timelines"])
    await agent.hang_up()


async def test_tables_are_filtered_sorted_and_exported_by_their_address(
    service: Service,
) -> None:
    """For a spreadsheet and a program as for a person; nobody gets what is not theirs."""
    for name, owner in (("box", "alice"), ("far", "bob"), ("near", "bob")):
        await service.enrol(name, owner)
    for server, user in enumerate(("alice", "bob", "bob"), 1):
        principal = a_principal(
            user, 1 if user == "alice" else 2, groups=(f"of-{user}",)
        )
        start = await AttendedStart(service, an_ask(server, principal=principal)).open()
        await start.until("waiting")
    root, bob = Browser(service, "root"), Browser(service, "bob")

    _, page = await root.visit("line?q=group:of-bob&sort=-waited")
    rows = page.split("<tbody>")[2]
    assert rows.index("bob / server-2") < rows.index("bob / server-3")
    assert "alice / default" not in page
    assert 'aria-sort="descending"><a href="?q=group%3Aof-bob&amp;sort=waited">' in page
    _, page = await root.visit("line?q=nobody")
    assert "Nothing here matches “nobody”." in page
    assert ">Show all</a>" in page

    exported = await service.fetch(
        "line?q=user:bob&format=csv", token="token hub-token-of-root"
    )
    assert exported.headers["Content-Disposition"] == 'attachment; filename="line.csv"'
    told = list(csv.DictReader(io.StringIO(exported.body.decode())))
    assert [row["server"] for row in told] == ["server-2", "server-3"]
    assert told[0]["group"] == "of-bob"
    assert told[0]["reason"] != ""

    _, page = await root.visit("machines?sort=-machine&q=owner:bob")
    rows = page.split("<tbody>")[1]
    assert rows.index(">near<") < rows.index(">far<")
    assert ">box<" not in rows
    for path, key, own in (
        ("machines", "machine", {"far", "near"}),
        ("", "server", {"server-2", "server-3"}),
    ):
        document = json.loads((await bob.visit(f"{path}?format=json"))[1])
        assert {row[key] for row in document["rows"]} == own
    assert len(json.loads((await root.visit("?format=json"))[1])["rows"]) == 3


async def test_the_line_shows_each_class_and_the_latest_decisions(
    service: Service,
) -> None:
    """What is free of it, who waits for how long, and who got what by which rule."""
    agent = ScriptedAgent(service, await service.enrol("box", "alice"), cores=4)
    await agent.connect()
    start = await AttendedStart(service, an_ask(class_name="whole")).open()
    assert (await start.ended()).kind is OutcomeKind.READY
    waits = await AttendedStart(service, an_ask(2, class_name="whole")).open()
    await waits.until("waiting")
    root = Browser(service, "root")
    _, page = await root.visit("line")
    classes, _, decisions = page.split("<tbody>")[1:]
    small, whole = classes.split("</tbody>")[0].split("<tr>")[1:]
    for row, name, total in ((small, "small", 4), (whole, "whole", 1)):
        assert f">{name}<" in row
        assert "●</span> busy" in row
        assert f"0 of {total}" in row
    assert 'data-label="Waiting">1<' in whole
    assert whole.count(">—<") == 2, "of too few waits nothing is said"
    assert "nobody else waited" in decisions
    assert "alice / default" in decisions
    assert ">box<" in decisions
    document = json.loads((await root.visit("decisions?format=json&q=user:alice"))[1])
    (row,) = document["rows"]
    assert document["schema"] == "jupyterhub-fleet/table-decisions/v1"
    assert (row["machine"], row["class"], row["rule"]) == ("box", "whole", "alone")
    _, page = await root.visit("decisions?q=nobody-of-them")
    assert "Nothing here matches" in page
    await agent.hang_up()
