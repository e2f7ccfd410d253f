"""The Hub's pages with FleetSpawner, as a browser without a script sees them."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pseudo_language
import pytest
from hub_pages import Page, Visitor
from patience import PATIENCE
from scripted_controller import Link, ScriptedController, an_offer, refuse

from fleet_contracts import languages
from fleet_contracts.allocations import State
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.admission import OutcomeKind


@pytest.fixture
def slow_spawn_timeout() -> float:
    """Soon: what these tests look at are the pages of starts that go on."""
    return 2


async def start_from_form(
    ada: Visitor, controller: ScriptedController, path: str = "spawn"
) -> tuple[Page, Link]:
    """Submit the form; return the pending page and the attended link."""
    page = asyncio.ensure_future(ada.start(path, profile="cpu"))
    link = await controller.links.get()
    await link.tell(State.REQUESTED)
    return await page, link


async def test_the_form_has_a_card_per_profile_with_its_state(
    ada: Visitor, controller: ScriptedController
) -> None:
    """What it holds, whether it can start now, and why not otherwise."""
    controller.offers = (
        an_offer(),
        an_offer(
            profile="mine",
            title="Native",
            startable=False,
            choosable=False,
            headline="Native runs are for the machine's owner.",
            explanation=Explanation(reason=Reason.ISOLATION_TOO_WEAK),
        ),
    )
    page = await ada.get("spawn")
    says = page.says()
    assert "Python" in says
    assert "2 cores, 4 GiB memory" in says
    assert "Can start now" in says
    assert "Not for you Native runs are for the machine's owner." in says
    assert page.soup.select_one("input[value=cpu]").has_attr("checked")
    assert page.soup.select_one("input[value=mine]").has_attr("disabled")


async def test_a_link_preselects_and_starts_nothing(
    ada: Visitor, controller: ScriptedController
) -> None:
    """Our own links carry a choice; starting needs a press of the button."""
    controller.offers = (an_offer(), an_offer(profile="gpu"))
    page = await ada.get("spawn?choice=gpu")
    assert page.status == 200
    assert page.soup.select_one("input[value=gpu]").has_attr("checked")
    assert page.soup.select_one(".spawn-error-msg") is None
    assert controller.links.empty()


@pytest.mark.parametrize("query", ["opt-profile=cpu", "profile=cpu"])
async def test_another_site_cannot_start_a_server(
    ada: Visitor, controller: ScriptedController, query: str
) -> None:
    """JupyterHub starts on such a GET without any token; we do not."""
    page = await ada.get(f"spawn?{query}", headers={"Sec-Fetch-Site": "cross-site"})
    assert page.status == 403
    assert "Another website asked to start a server" in page.says()
    assert controller.links.empty()


async def test_our_own_page_may_start_a_server_by_link(
    ada: Visitor, controller: ScriptedController
) -> None:
    """The same choice, the same validation."""
    page = asyncio.ensure_future(
        ada.get("spawn?opt-profile=cpu", headers={"Sec-Fetch-Site": "same-origin"})
    )
    link = await controller.links.get()
    assert link.ask.choice.profile == "cpu"
    await page


async def test_a_refused_choice_is_said_above_the_form(
    ada: Visitor, controller: ScriptedController
) -> None:
    """One sentence, without the code that is for programs."""
    controller.validate = refuse(Reason.PROFILE_UNKNOWN, "There is no profile “cpu”.")
    page = await ada.start(profile="cpu")
    assert page.status == 400
    assert page.soup.select_one(".spawn-error-msg").text.strip() == (
        "There is no profile “cpu”."
    )
    assert page.headers["X-Fleet-Reason"] == "profile_unknown"


async def test_a_form_without_a_choice_is_refused(ada: Visitor) -> None:
    """No profile is guessed."""
    page = await ada.start()
    assert page.status == 400
    assert "Choose a profile" in page.says()


async def test_what_is_wrong_with_a_form_is_said_in_the_reader_s_language(
    ada: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the form; the REST API stays English."""
    known = {"ach-ug": pseudo_language.language()}
    monkeypatch.setattr(languages, "languages", lambda: known)
    form = (await ada.get("spawn", headers=pseudo_language.HEADERS)).form()
    page = await ada.send(
        "POST", ada.absolute(form["action"]), headers=pseudo_language.HEADERS
    )

    assert page.soup.select_one(".spawn-error-msg").text.strip() == (
        "⟦Choose a profile: the request names none.⟧"
    )
    _, answer, _ = await ada.api("POST", "users/ada/server", {"gpus": 8})
    assert answer["message"].startswith("There is no option called “gpus”: ")


async def test_a_form_without_a_controller_says_so(
    ada: Visitor, controller: ScriptedController
) -> None:
    """The page is there, and nothing is started from it."""
    await controller.stop()
    page = await ada.get("spawn")
    assert page.status == 200
    assert "controller does not answer right now" in page.says()


async def test_the_last_choice_is_preselected(
    ada: Visitor, controller: ScriptedController
) -> None:
    """Most people want the same again."""
    controller.offers = (an_offer(), an_offer(profile="gpu"))
    page = asyncio.ensure_future(ada.start(profile="gpu"))
    link = await controller.links.get()
    await link.end(OutcomeKind.FAILED, "No.", reason=Reason.START_FAILED)
    await page
    page_again = await ada.get("spawn")
    assert page_again.soup.select_one("input[value=gpu]").has_attr("checked")


async def test_the_pending_page_shows_the_start_without_a_script(
    ada: Visitor, controller: ScriptedController
) -> None:
    """Five phases, one sentence, and a reload by itself."""
    await start_from_form(ada, controller)
    key = next(iter(controller.servers.values())).key
    await controller.enter(key, State.QUEUED, "2 ahead of you.")
    page = await ada.get("spawn-pending/ada")
    assert "2 ahead of you." in page.says()
    rows = page.soup.select(".fleet-Timeline-step")
    assert [row["data-status"] for row in rows] == ["done", "now", *["todo"] * 3]
    assert page.soup.select_one("noscript meta[http-equiv=refresh]") is not None
    document = json.loads(page.soup.select_one("#fleet-document").text)
    assert document["schema"] == "jupyterhub-fleet/timeline/v1"


async def test_the_pending_page_of_a_named_server_names_it(
    ada: Visitor, controller: ScriptedController
) -> None:
    """JupyterHub's own button would stop the default server of whoever looks."""
    page, _ = await start_from_form(ada, controller, "spawn/ada/lab")
    view = page.soup.select_one("#fleet-view")
    assert view["data-stop-url"].endswith("/hub/api/users/ada/servers/lab")
    assert "api.stop_server" not in page.text
    assert "“lab”" in page.says()


async def test_an_admin_who_looks_cancels_the_owner_s_server(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """The page is about the server, not about who looks at it."""
    await start_from_form(ada, controller)
    admin = await Visitor.log_in(hub, "admin")
    page = await admin.get("spawn-pending/ada")
    await admin.close()
    view = page.soup.select_one("#fleet-view")
    assert view["data-stop-url"].endswith("/hub/api/users/ada/server")


async def test_the_stream_replays_the_start_to_each_page(
    ada: Visitor, controller: ScriptedController, hub: Any
) -> None:
    """A page that is opened late, or again, sees all that happened in this start."""
    _, link = await start_from_form(ada, controller)
    await link.tell(State.QUEUED, "1 ahead of you.")
    await link.tell(State.PREPARING, "Preparing.", machine="box")
    streams = [
        asyncio.ensure_future(
            ada.send("GET", ada.hub_url("api/users/ada/server/progress"))
        )
        for _ in range(2)
    ]
    waiting = hub.users["ada"].spawner._spawn_future
    caught_up = 0
    while caught_up < 2:
        caught_up += await controller.timelines.get() == 3
    await link.tell(State.FAILED, "It broke.")
    await link.end(OutcomeKind.FAILED, "It broke.", reason=Reason.START_FAILED)
    await asyncio.wait([waiting])
    for stream in streams:
        events = events_of((await stream).text)
        states = [
            event["fleet"]["event"]["state"]
            for event in events
            if event.get("fleet", {}).get("event")
        ]
        assert states[:3] == ["requested", "queued", "preparing"]
        assert events[-1]["failed"]
        assert events[-1]["html_message"] == "It broke."


async def test_a_stream_that_breaks_off_leaves_its_query_in_no_log(
    hub: Any,
    ada: Visitor,
    controller: ScriptedController,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """JupyterHub writes the whole address into its log, the page's proof included."""
    _, link = await start_from_form(ada, controller)
    path = urlsplit(ada.hub_url("api/users/ada/server/progress")).path
    cookies = "; ".join(f"{each.name}={each.value}" for each in ada.session.cookies)
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.hub.port)
    writer.write(
        f"GET {path}?_xsrf=a-proof HTTP/1.1\r\nHost: x\r\nCookie: {cookies}\r\n\r\n".encode()
    )
    assert b" 200 " in await reader.readline()
    writer.transport.abort()
    async with asyncio.timeout(PATIENCE):
        for place in count():
            if "Stream closed while handling" in caplog.text:
                break
            await link.tell(State.QUEUED, f"{place} ahead of you.")
            await asyncio.sleep(0)

    assert f"Stream closed while handling {path}\n" in caplog.text
    assert "a-proof" not in caplog.text


async def test_the_stream_of_a_cancelled_start_does_not_call_it_ready(
    ada: Visitor, controller: ScriptedController
) -> None:
    """JupyterHub does, and pages would follow the proxy to some other server."""
    _, link = await start_from_form(ada, controller, "spawn/ada/lab")
    stream = asyncio.ensure_future(
        ada.send("GET", ada.hub_url("api/users/ada/servers/lab/progress"))
    )
    await controller.timelines.get()
    status, _, _ = await ada.api("DELETE", "users/ada/servers/lab")
    last = events_of((await stream).text)[-1]
    assert status == 204
    assert "ready" not in last
    assert last["failed"]
    assert last["message"] == "The start was cancelled."
    await link.gone.wait()


async def test_a_parked_server_s_page_shows_the_place_and_the_way_out(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """It asks the controller, so it still does after a restart of the Hub."""
    spawner = hub.users["ada"].spawner
    await controller.enter(spawner.key, State.QUEUED, "2 ahead of you.")
    page = await ada.get("spawn-pending/ada")
    says = page.says()
    assert "Your place in the line is kept" in says
    assert "2 ahead of you." in says
    assert "It will be restarted" not in says
    leave = page.soup.find("a", string=re.compile("Leave the line"))
    assert leave["href"].endswith("/services/fleet/workloads/w1")
    view = page.soup.select_one("#fleet-view")
    assert (view["data-page"], view["data-view-token"]) == ("waiting", "view-token")
    assert page.soup.select_one("#start") is None


async def test_a_failed_start_says_why_and_how_far_it_came(
    ada: Visitor, controller: ScriptedController
) -> None:
    """Never the empty "Spawn failed"."""
    page_future = asyncio.ensure_future(ada.start(profile="cpu"))
    link = await controller.links.get()
    await link.tell(State.REQUESTED)
    await link.tell(State.PREPARING)
    await page_future
    await link.tell(State.FAILED, "The disk is full.")
    await link.end(OutcomeKind.FAILED, "The disk is full.", reason=Reason.DISK_FULL)
    await link.gone.wait()
    page = await ada.get("spawn-pending/ada")
    while "Your server did not start" not in page.says():
        page = await ada.get("spawn-pending/ada")
    assert "The disk is full." in page.says()
    assert "(disk_full)" not in page.says()
    rows = page.soup.select(".fleet-Timeline-step")
    assert [row["data-status"] for row in rows][3] == "failed"
    assert page.soup.select_one("#start").text.strip() == "Choose again"


async def test_a_page_without_a_controller_promises_nothing(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """It says that nobody answers, and tries again by itself."""
    await controller.stop()
    page = await ada.get("spawn-pending/ada")
    assert "controller does not answer" in page.says()
    assert page.soup.select_one("#start") is None
    assert page.soup.select_one("#fleet-view")["data-page"] == "waiting"


async def test_a_stopped_server_s_page_says_how_it_ended(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """And offers to start it."""
    spawner = hub.users["ada"].spawner
    await controller.enter(spawner.key, State.READY)
    await controller.enter(spawner.key, State.STOPPED, "The time limit was reached.")
    page = await ada.get("spawn-pending/ada")
    assert "The time limit was reached." in page.says()
    assert page.soup.select_one("#start") is not None


def events_of(text: str) -> list[dict[str, Any]]:
    """Return the events of a stream."""
    return [
        json.loads(line.removeprefix("data: "))
        for line in text.splitlines()
        if line.startswith("data: ")
    ]
