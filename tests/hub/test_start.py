"""Starting a server through the Hub, from the ask to the outcome."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hub_pages import Visitor
from hub_starts import CPU, begin
from jupyterhub import orm
from scripted_controller import SECRET, ScriptedController, refuse

from fleet_contracts.allocations import State
from fleet_contracts.reasons import Reason
from fleet_hub.admission import OutcomeKind
from fleet_hub.persistence import is_told


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


async def test_no_secret_of_a_start_is_in_the_hubs_log(
    ada: Visitor,
    controller: ScriptedController,
    notebook_url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither the server's token nor the Spawner's secret, at the most talkative level;
    the same for a start that fails.
    """
    tokens = []
    for outcome in (OutcomeKind.READY, OutcomeKind.FAILED):
        answer, link = await begin(ada, controller)
        tokens.append(link.ask.environment["JUPYTERHUB_API_TOKEN"])
        await link.tell(State.PREPARING)
        await link.end(outcome, "It ended.", url=notebook_url)
        await answer
        await ada.api("DELETE", "users/ada/server")

    assert "DEBUG" in {record.levelname for record in caplog.records}
    for secret in (*tokens, SECRET):
        assert secret not in caplog.text


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


@pytest.mark.parametrize(
    "state",
    [State.PREPARING, State.STARTING, State.READY, State.UNKNOWN, State.STOPPING],
)
async def test_whatever_is_left_of_an_earlier_start_is_ended_first(
    hub: Any, ada: Visitor, controller: ScriptedController, state: State
) -> None:
    """Its token was revoked when the Hub gave it up, and other options were asked for:
    it can neither be taken over nor be mistaken for the new one.
    """
    user = hub.users["ada"]
    await controller.enter(user.spawner.key, state, url="http://127.0.0.1:1")
    _, link = await begin(ada, controller, {"user_options": {"profile": "gpu"}})

    key, _ = controller.stops.get_nowait()
    assert key == str(link.ask.key)
    assert link.ask.choice.profile == "gpu"


async def test_an_earlier_start_is_found_behind_a_controller_that_was_just_away(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """Not knowing is no reason to attend whatever is there."""
    await controller.enter(
        hub.users["ada"].spawner.key, State.READY, url="http://127.0.0.1:1"
    )
    controller.away = 2
    await begin(ada, controller)

    assert controller.away == 0
    assert not controller.stops.empty()


@pytest.mark.parametrize("hub", [{"controller_patience": 0.3}], indirect=True)
async def test_pressing_start_while_the_controller_is_away_costs_no_place(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """The user reads that nobody answers, and nothing is stopped when somebody does."""
    await controller.enter(hub.users["ada"].spawner.key, State.QUEUED)
    controller.away = 1000
    status, body, _ = await ada.api("POST", "users/ada/server", CPU)
    controller.away = 0

    assert status == 503
    assert body["message"].endswith("(controller_unreachable)")
    assert controller.stops.empty()
    assert await is_told(str(hub.users["ada"].spawner.key), within_seconds=0)
    assert controller.links.empty()


async def test_a_place_that_is_held_for_this_start_is_taken(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """Nothing was launched for it yet, so there is nothing to end."""
    await controller.enter(hub.users["ada"].spawner.key, State.PLACED)
    await begin(ada, controller)

    assert controller.stops.empty()


@pytest.mark.parametrize("hub", [{"stop_wait": 0.1}], indirect=True)
async def test_a_stop_that_the_controller_missed_is_told_before_the_next_start(
    hub: Any, ada: Visitor, controller: ScriptedController, notebook_url: str
) -> None:
    """The Hub's stop does not hang on a controller that is away; it hears of it when it
    is back, and never takes it for the end of what was started since.
    """
    answer, link = await begin(ada, controller)
    await link.tell(State.READY)
    await link.end(OutcomeKind.READY, url=notebook_url)
    await answer
    await controller.stop()
    status, _, _ = await ada.api("DELETE", "users/ada/server")
    assert status in {202, 204}
    spawner = hub.users["ada"].spawner
    while spawner.pending:
        await asyncio.wait([spawner._stop_future])

    await controller.start()
    _, second = await begin(ada, controller)
    key, _ = controller.stops.get_nowait()
    assert key == str(link.ask.key)
    assert second.ask.attempt != link.ask.attempt
    assert controller.stops.empty()
    assert await is_told(key, within_seconds=0)


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


async def test_a_server_that_waits_to_be_opened_is_reported_on(
    hub: Any, ada: Visitor, controller: ScriptedController, notebook_url: str
) -> None:
    """At each poll the Hub says whether anybody came: by a browser's visit, or by what
    the server reports; what it does while it starts does not count.
    """
    answer, link = await begin(ada, controller)
    await link.tell(State.READY)
    await link.end(OutcomeKind.READY, url=notebook_url)
    await answer
    spawner = hub.users["ada"].spawner
    ready = datetime.now(UTC)
    known = controller.servers[str(link.ask.key)]

    assert await spawner.poll() is None
    assert controller.opened.empty()

    known.unopened_since = ready
    spawner.orm_spawner.last_activity = (ready + timedelta(seconds=5)).replace(
        tzinfo=None
    )
    assert await spawner.poll() is None
    assert await controller.opened.get() is False

    spawner.orm_spawner.last_activity = (ready + timedelta(seconds=70)).replace(
        tzinfo=None
    )
    assert await spawner.poll() is None
    assert await controller.opened.get() is True

    spawner.orm_spawner.last_activity = None
    owner, client = hub.users["ada"].orm_user, spawner.oauth_client_id
    orm.APIToken.new(user=owner, client_id=client, scopes=["read:users:name!user"])
    assert await spawner.poll() is None
    assert await controller.opened.get() is True


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
