"""Why, from a real controller and from its exported state: REST and command line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from command_line import jupyter_fleet, jupyter_fleet_process
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import Service, a_service
from scripted_agent import ScriptedAgent
from service_browser import Browser


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

ALICE = "token hub-token-of-alice"
ROOT = "token hub-token-of-root"


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with one small machine of alice's, full of her work."""
    async with a_service(tmp_path) as running:
        running.hub.add_user("alice")
        running.hub.add_user("root", admin=True)
        agent = ScriptedAgent(running, await running.enrol())
        await agent.connect()
        first = await AttendedStart(running, an_ask(class_name="whole")).open()
        await first.ended()
        yield running


async def a_waiter(service: Service, server: int = 2) -> str:
    """Return the id of a workload that waits for the first to end."""
    start = await AttendedStart(service, an_ask(server)).open()
    await start.until("waiting")
    workload = (await service.status(f"1-{server}"))["workload"]
    assert isinstance(workload, str)
    return workload


def timeless(document: dict[str, Any]) -> str:
    """Return *document* as bytes, its moment aside."""
    return json.dumps({**document, "as_of": None})


async def test_the_page_the_timeline_rest_and_terminal_give_one_reason(
    service: Service,
) -> None:
    """One code with the same numbers and holders, wherever somebody looks."""
    workload = await a_waiter(service)
    shown = (await service.status("1-2"))["explanation"]
    assert shown["reason"] == "cpu_busy"
    timeline = await service.json(f"api/workloads/{workload}/timeline", token=ALICE)
    rest = await service.json(f"api/workloads/{workload}/explain", token=ALICE)
    ran = await jupyter_fleet_process(service, "explain", workload, "--json")
    assert (ran.status, ran.err) == (0, "")
    terminal = json.loads(ran.out)
    assert timeline["explanation"] == shown
    assert rest["why"]["explanation"] == shown
    assert terminal["why"]["explanation"] == shown
    assert rest["headline"] == timeline["headline"]
    assert [one["machine"] for one in rest["machines"]] == ["box"]
    assert rest["machines"][0]["why_not"]["explanation"]["reason"] == "cpu_busy"
    beyond = await service.json(f"api/workloads/{workload}/explain?page=2", token=ALICE)
    assert (beyond["machines"], beyond["pages"]) == ([], 1)
    assert beyond["alike"] == rest["alike"]
    assert beyond["alike"][0]["machines"] == ["box"]
    offers = await service.json(
        "internal/offers",
        method="POST",
        body={"principal": a_principal().model_dump()},
    )
    small = next(one for one in offers["offers"] if one["class_name"] == "small")
    could = await service.json("api/explain?profile=jupyter&class=small", token=ALICE)
    assert could["why"]["explanation"]["reason"] == small["explanation"]["reason"]
    assert could["ahead"] == small["waiting"]


async def test_an_exported_state_answers_in_a_terminal_as_the_controller_does(
    service: Service, tmp_path: Path
) -> None:
    """The same bytes, in JSON and in words; only the moment differs."""
    workload = await a_waiter(service)
    file = tmp_path / "case.json"
    ran = await jupyter_fleet(service, "export", "--output", str(file))
    assert (ran.status, ran.out) == (0, "")
    assert file.stat().st_mode & 0o077 == 0
    assert "secret-ref" not in file.read_text()
    assert "hub-token-of" not in file.read_text()
    assert '"native": "redacted-1"' in file.read_text()
    asked = [
        (workload,),
        ("--profile", "jupyter", "--user", "alice"),
        ("--profile", "jupyter", "--user", "alice", "--class", "whole"),
        ("--profile", "jupyter", "--user", "stranger"),
        ("--profile", "no-such", "--user", "alice"),
    ]
    for question in asked:
        live = await jupyter_fleet(service, "explain", *question, "--json")
        replayed = await jupyter_fleet(
            None, "explain", *question, "--json", "--state", str(file)
        )
        assert live.status == replayed.status == 0, live.err + replayed.err
        assert timeless(json.loads(live.out)) == timeless(json.loads(replayed.out))
        live = await jupyter_fleet(service, "explain", *question)
        replayed = await jupyter_fleet(None, "explain", *question, "--state", str(file))
        assert [line for line in live.out.splitlines() if "as of" not in line] == [
            line for line in replayed.out.splitlines() if "as of" not in line
        ]
    live = await jupyter_fleet(service, "queue", "--json")
    replayed = await jupyter_fleet(None, "queue", "--json", "--state", str(file))
    assert timeless(json.loads(live.out)) == timeless(json.loads(replayed.out))


async def test_a_terminal_says_who_waits_and_why_in_any_width(
    service: Service,
) -> None:
    """A table where there is room, a short list for each where there is not."""
    assert (await jupyter_fleet(service, "queue")).out == "Nobody waits.\n"
    workload = await a_waiter(service)
    await a_waiter(service, server=3)
    wide = await jupyter_fleet(service, "queue", columns=120)
    assert wide.out.splitlines()[0].split()[:3] == ["#", "User", "Profile"]
    for columns in (120, 80, 40, 30):
        ran = await jupyter_fleet(service, "queue", columns=columns)
        assert all(len(line) <= columns for line in ran.out.splitlines()), ran.out
        assert "\x1b" not in ran.out
        assert "alice" in ran.out
        ran = await jupyter_fleet(service, "explain", workload, columns=columns)
        assert all(len(line) <= columns for line in ran.out.splitlines()), ran.out
        assert "cpu_busy" in ran.out
        assert "box" in ran.out


async def test_a_what_if_says_the_smallest_change_that_would_help(
    service: Service, tmp_path: Path
) -> None:
    """The machine has four cores, all taken: nothing would start now; larger never."""
    ran = await jupyter_fleet(
        service,
        "explain",
        "--profile",
        "jupyter",
        "--user",
        "alice",
        "--class",
        "whole",
    )
    assert ran.out.splitlines()[1].startswith("● It would wait: on box, too few cores")
    assert "It would fit" not in ran.out
    larger = service.catalog.read_text().replace("cpu: 4,", "cpu: 64,")
    await service.offers_from(larger, "64000")
    agent = ScriptedAgent(service, await service.enrol("other"))
    await agent.connect()
    ran = await jupyter_fleet(
        service,
        "explain",
        "--profile",
        "jupyter",
        "--user",
        "alice",
        "--class",
        "whole",
    )
    assert "✕ This cannot run as asked: no machine is that large" in ran.out
    assert "with 4 cores instead of 64: 2 machines, 1 free now." in ran.out
    question = ("--profile", "jupyter", "--user", "alice", "--class", "whole")
    beside = await jupyter_fleet(service, "explain", *question, "--server", "")
    assert "✕ This cannot run as asked: on box, it has too few cores" in beside.out
    file = tmp_path / "state.json"
    await jupyter_fleet(service, "export", "--output", str(file))
    for arguments in (question, (*question, "--server", "")):
        live = await jupyter_fleet(service, "explain", *arguments, "--json")
        offline = ("--state", str(file), "--json")
        replayed = await jupyter_fleet(None, "explain", *arguments, *offline)
        assert timeless(json.loads(live.out)) == timeless(json.loads(replayed.out))
        assert json.loads(live.out)["asked"]["files_on"] == "box"
    await agent.hang_up()


async def test_a_question_about_nothing_says_so(
    service: Service, tmp_path: Path
) -> None:
    """Exit status 1 and one line that says what to do; never a traceback."""
    broken = tmp_path / "broken.json"
    broken.write_text('{"schema": "other"}')
    for arguments, part in (
        (("explain",), "name a workload"),
        (("explain", "wnone"), "there is no workload wnone"),
        (("explain", "w1", "--profile", "jupyter"), "name a workload"),
        (("explain", "--profile", "jupyter"), "--user"),
        (
            ("explain", "--profile", "NO SLUG", "--user", "a"),
            "not understood: profile 'NO SLUG'",
        ),
        (("explain", "wnone", "--state", "/nowhere.json"), "cannot be read"),
        (("explain", "wnone", "--state", str(broken)), "no exported state"),
    ):
        ran = await jupyter_fleet(service, *arguments)
        assert ran.status == 1, (arguments, ran)
        assert part in ran.err
        assert "Traceback" not in ran.err
        assert len(ran.err.splitlines()) == 1


async def test_a_workload_that_does_not_wait_is_explained_too(
    service: Service,
) -> None:
    """One that runs says where; one that ended says why."""
    status = await service.status("1-1")
    workload = status["workload"]
    told = await service.json(f"api/workloads/{workload}/explain", token=ROOT)
    assert (told["asked"]["state"], told["machine"]) == ("ready", "box")
    assert told["headline"] == status["headline"]
    await service.json("internal/servers/1-1/stop?wait=60", method="POST", body={})
    told = await service.json(f"api/workloads/{workload}/explain", token=ROOT)
    assert told["asked"]["state"] == "stopped"
    assert told["why"]["explanation"]["reason"] == "stopped_by_user"


async def test_pages_tell_each_machine_and_what_would_help(service: Service) -> None:
    """For one that waits, and for what is only considered on the spawn page."""
    workload = await a_waiter(service)
    browser = Browser(service, "alice")
    _, page = await browser.visit(f"workloads/{workload}")
    assert f"workloads/{workload}/why" in page
    code, page = await browser.visit(f"workloads/{workload}/why")
    assert code == 200
    for text in ('<th scope="row">box</th>', "cpu_busy", "You are next."):
        assert text in page
    code, page = await browser.visit("why?profile=jupyter")
    assert code == 200
    assert page.count('<th scope="row">box</th>') == 2
    assert page.count('role="status"') == 1
    assert "It would wait" in page
    larger = service.catalog.read_text().replace("cpu: 4,", "cpu: 64,")
    await service.offers_from(larger, "64000")
    _, page = await browser.visit("why?profile=jupyter")
    assert "This cannot run as asked" in page
    assert "With 4 cores instead of 64: 1 machine, none free now." in page
