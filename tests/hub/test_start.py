"""Starting a server through the Hub, from the ask to the outcome."""

from __future__ import annotations

import asyncio
from asyncio import Future
from typing import Any

import pytest
from aiohttp import web
from hub_pages import Visitor
from jupyterhub import orm
from scripted_controller import Link, ScriptedController, refuse

from fleet_contracts.allocations import State
from fleet_contracts.reasons import Reason
from fleet_hub.admission import OutcomeKind


CPU = {"user_options": {"profile": "cpu"}}


async def begin(
    visitor: Visitor,
    controller: ScriptedController,
    body: dict[str, Any] | None = None,
    *,
    server: str = "",
) -> tuple[Future[Any], Link]:
    """Start through REST; return the answer to come, and the attended link."""
    path = f"users/{visitor.name}/server{f's/{server}' if server else ''}"
    answer = asyncio.ensure_future(
        visitor.api("POST", path, CPU if body is None else body)
    )
    link = asyncio.ensure_future(controller.links.get())
    await asyncio.wait([answer, link], return_when=asyncio.FIRST_COMPLETED)
    assert link.done(), answer.result()
    return answer, link.result()


@pytest.fixture
async def notebook_url() -> Any:
    """The URL of a server that answers like a notebook server."""

    async def version(_: web.Request) -> web.Response:
        return web.json_response(
            {"version": "2"}, headers={"X-JupyterHub-Version": "6.1.1"}
        )

    app = web.Application()
    app.router.add_get("/{path:.*}", version)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}"
    await runner.cleanup()


def tokens_of(hub: Any, name: str) -> list[orm.APIToken]:
    """Return the valid tokens that were issued to servers of *name*."""
    user = hub.users[name]
    query = hub.db.query(orm.APIToken).filter_by(user_id=user.orm_user.id)
    return [token for token in query if (token.note or "").startswith("Server at")]


async def test_a_start_ends_at_the_url_that_the_controller_names(
    hub: Any, ada: Visitor, controller: ScriptedController, notebook_url: str
) -> None:
    """Ready ends the start with the URL where the machine's server answers, and the ask
    carried who it is for, what was chosen, and the server's environment.
    """
    answer, link = await begin(ada, controller)
    await link.tell(State.REQUESTED)
    await link.tell(State.READY)
    await link.end(OutcomeKind.READY, url=notebook_url)
    status, _, _ = await answer

    assert status == 201
    spawner = hub.users["ada"].spawner
    assert spawner.ready
    assert spawner.server.url.startswith(notebook_url)
    assert link.ask.principal.name == "ada"
    assert link.ask.choice.profile == "cpu"
    assert link.ask.environment["JUPYTERHUB_API_TOKEN"]
    assert "PATH" not in link.ask.environment


async def test_a_refused_start_answers_with_the_sentence_and_the_code(
    ada: Visitor, controller: ScriptedController
) -> None:
    """Policy's no is a 403 with one sentence, the reason's code, and nothing stopped."""
    answer, link = await begin(ada, controller)
    await link.tell(State.REQUESTED)
    await link.tell(State.REFUSED)
    await link.end(
        OutcomeKind.REFUSED, "Only its owner.", reason=Reason.ISOLATION_TOO_WEAK
    )
    status, body, headers = await answer

    assert status == 403
    assert body["message"] == "Only its owner. (isolation_too_weak)"
    assert headers["X-Fleet-Reason"] == "isolation_too_weak"
    assert controller.stops.empty()


@pytest.mark.parametrize("hub", [{"queue_hold": 0.2}], indirect=True)
async def test_waiting_longer_than_the_hold_parks_the_start(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """The start ends with "your place is kept" and the way to the workload's own page; the
    Hub stops nothing, though the turn came in that very moment.
    """
    answer, link = await begin(ada, controller)
    await link.tell(State.QUEUED, "2 ahead of you.")
    await link.parked.wait()
    await controller.enter(link.ask.key, State.PLACED)
    await link.end(OutcomeKind.PARKED, "Your place is kept.", reason=Reason.PLACE_KEPT)
    status, body, headers = await answer

    assert status == 503
    assert body["message"] == "Your place is kept. (place_kept)"
    assert headers["Retry-After"] == "60"
    assert controller.stops.empty()
    assert tokens_of(hub, "ada") == []
    spawner = hub.users["ada"].spawner
    assert spawner._spawn_future.exception().reason == "place_kept"
    assert "/services/fleet/workloads/w1" in (
        spawner._spawn_future.exception().jupyterhub_html_message
    )


@pytest.mark.parametrize("hub", [{"queue_hold": 0.2}], indirect=True)
async def test_a_turn_that_comes_while_the_start_is_parked_is_taken(
    hub: Any, ada: Visitor, controller: ScriptedController, notebook_url: str
) -> None:
    """The park crossed the placement on the wire: the start goes on, and says no more."""
    answer, link = await begin(ada, controller)
    await link.tell(State.QUEUED)
    await link.parked.wait()
    link.parked.clear()
    await link.tell(State.PLACED)
    await controller.stop()
    await controller.start()
    again = await controller.links.get()
    await again.tell(State.READY)
    await again.end(OutcomeKind.READY, url=notebook_url)
    status, _, _ = await answer

    assert status == 201
    assert not again.parked.is_set()


@pytest.mark.parametrize("hub", [{"queue_hold": 0.2}], indirect=True)
async def test_a_parked_server_starts_again_without_a_body(
    ada: Visitor, controller: ScriptedController, hub: Any, notebook_url: str
) -> None:
    """When its turn comes the controller starts it by REST: the last choice is used again."""
    answer, link = await begin(ada, controller)
    await link.tell(State.QUEUED)
    await link.parked.wait()
    await link.end(OutcomeKind.PARKED)
    await answer

    answer, again = await begin(ada, controller, {})
    await again.tell(State.READY)
    await again.end(OutcomeKind.READY, url=notebook_url)
    status, _, _ = await answer

    assert status == 201
    assert again.ask.choice == link.ask.choice
    assert again.ask.attempt != link.ask.attempt
    assert again.ask.environment != link.ask.environment


@pytest.mark.parametrize("hub", [{"queue_hold": 0.2}], indirect=True)
async def test_an_invalid_request_changes_nothing_for_a_parked_server(
    ada: Visitor, controller: ScriptedController, hub: Any
) -> None:
    """A wrong choice is refused without stopping what is there, and the controller's later
    start still gets the last good one.
    """
    answer, link = await begin(ada, controller)
    await link.tell(State.QUEUED)
    await link.parked.wait()
    await link.end(OutcomeKind.PARKED)
    await answer
    await controller.enter(link.ask.key, State.PLACED)

    status, body, _ = await ada.api(
        "POST", "users/ada/server", {"user_options": {"profil": "cpu"}}
    )
    assert status == 400
    assert "option_unknown" in body["message"]
    assert controller.stops.empty()

    _, again = await begin(ada, controller, {})
    assert again.ask.choice.profile == "cpu"


async def test_cancelling_a_start_stops_it_at_the_controller(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """DELETE while it waits ends the workload, for a named server just as well."""
    answer, link = await begin(ada, controller, server="lab")
    await link.tell(State.QUEUED)
    status, _, _ = await ada.api("DELETE", "users/ada/servers/lab")
    key, request = await controller.stops.get()

    assert status == 204
    assert key == str(link.ask.key)
    assert request.by == "hub"
    await link.gone.wait()
    await answer


async def test_a_cancelled_start_gives_nothing_back_by_itself(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """A Hub that goes down cancels its starts: the link closes, and the workload stays."""
    _, link = await begin(ada, controller)
    await link.tell(State.QUEUED)
    hub.users["ada"].spawner._spawn_future.cancel()
    await link.gone.wait()

    assert controller.stops.empty()
    assert await hub.users["ada"].spawner.poll() is None


async def test_a_start_survives_a_restart_of_the_controller(
    ada: Visitor, controller: ScriptedController, notebook_url: str
) -> None:
    """The same attempt is attended again, on a new link, and the user sees nothing of it."""
    answer, link = await begin(ada, controller)
    await link.tell(State.PREPARING)
    await controller.stop()
    await controller.start()
    again = await controller.links.get()
    await again.tell(State.READY)
    await again.end(OutcomeKind.READY, url=notebook_url)
    status, _, _ = await answer

    assert status == 201
    assert again.ask.attempt == link.ask.attempt


@pytest.mark.parametrize("hub", [{"controller_patience": 0.3}], indirect=True)
async def test_a_controller_that_stays_away_is_said_so(
    ada: Visitor, controller: ScriptedController, hub: Any
) -> None:
    """After the patience the user reads that nobody answers, and that the place is kept."""
    answer, link = await begin(ada, controller)
    await link.tell(State.QUEUED)
    await controller.stop()
    status, body, _ = await answer

    assert status == 503
    assert "(controller_unreachable)" in body["message"]
    assert "place in the line, it is kept" in body["message"]
    await controller.start()
    assert controller.stops.empty()


@pytest.mark.parametrize("hub", [{"start_timeout": 2}], indirect=True)
async def test_the_deadline_of_a_start_has_a_sentence(
    ada: Visitor, controller: ScriptedController, hub: Any
) -> None:
    """Before the Hub's own timeout, whose message is empty, the start ends with words, and
    what it had begun is stopped.
    """
    answer, link = await begin(ada, controller)
    await link.tell(State.PREPARING)
    key, _ = await controller.stops.get()
    status, body, _ = await answer

    assert status == 500
    assert "did not start within" in body["message"]
    assert "(start_timeout)" in body["message"]
    assert key == str(link.ask.key)


async def test_an_earlier_start_that_still_runs_is_ended_first(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """Its token was revoked when the Hub gave it up, so it cannot be taken over."""
    user = hub.users["ada"]
    await controller.enter(user.spawner.key, State.READY, url="http://127.0.0.1:1")
    _, link = await begin(ada, controller)
    key, _ = await controller.stops.get()

    assert key == str(link.ask.key)


async def test_old_tokens_are_revoked_before_a_start_and_after_a_stop(
    hub: Any, ada: Visitor, controller: ScriptedController, notebook_url: str
) -> None:
    """A token that a Hub forgot in a restart, found by its note, opens nothing any more."""
    user = hub.users["ada"]
    forgotten = user.new_api_token(note=f"Server at {user.base_url}")
    others = user.new_api_token(note=f"Server at {user.base_url}lab/")
    answer, link = await begin(ada, controller)
    await link.tell(State.READY)
    await link.end(OutcomeKind.READY, url=notebook_url)
    await answer

    assert orm.APIToken.find(hub.db, forgotten) is None
    assert orm.APIToken.find(hub.db, others) is not None
    fresh = link.ask.environment["JUPYTERHUB_API_TOKEN"]
    assert orm.APIToken.find(hub.db, fresh) is not None

    user.spawner.clear_state()  # as after a restart of the Hub
    await user.stop()
    assert orm.APIToken.find(hub.db, fresh) is None


async def test_validation_judges_the_server_s_owner_not_the_caller(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """An admin who starts somebody's server cannot lend them what is theirs."""
    admin = await Visitor.log_in(hub, "admin")
    try:
        controller.validate = refuse(Reason.NOT_IN_AUDIENCE, "Not for you.")
        status, body, _ = await admin.api("POST", "users/ada/server", CPU)
    finally:
        await admin.close()

    assert (status, body["message"]) == (403, "Not for you. (not_in_audience)")
    assert controller.validated[-1].principal.name == "ada"
    assert not controller.validated[-1].principal.admin


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "profile_required"),
        ({"profile": ""}, "profile_required"),
        ({"profile": "cpu", "image": "x"}, "option_unknown"),
        ({"profile": ["cpu"]}, "invalid_request"),
        ({"profile": "cpu", "class": {"a": 1}}, "invalid_request"),
    ],
)
async def test_wrong_options_are_a_400_with_the_reason(
    ada: Visitor, options: dict[str, Any], reason: str
) -> None:
    """REST names what is wrong, before anything is asked for."""
    status, body, headers = await ada.api(
        "POST", "users/ada/server", {"user_options": options}
    )

    assert status == 400
    assert body["message"].endswith(f"({reason})")
    assert headers["X-Fleet-Reason"] == reason


async def test_a_call_without_a_profile_is_refused(ada: Visitor) -> None:
    """REST without a body has no profile to fall back on the first time."""
    status, body, _ = await ada.api("POST", "users/ada/server", {})

    assert (status, body["message"]) == (
        400,
        "Choose a profile: the request names none. (profile_required)",
    )


async def test_deleting_a_server_retires_its_key(
    hub: Any, ada: Visitor, controller: ScriptedController, notebook_url: str
) -> None:
    """JupyterHub may give its id to another server, which must not inherit anything."""
    answer, link = await begin(ada, controller, server="lab")
    await link.tell(State.READY)
    await link.end(OutcomeKind.READY, url=notebook_url)
    await answer
    status, _, _ = await ada.api("DELETE", "users/ada/servers/lab", {"remove": True})

    assert status in {202, 204}
    assert await controller.retired.get() == str(link.ask.key)
