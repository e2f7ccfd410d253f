"""The extension answers for its own server, in every state, and bothers nobody."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from jupyter_server.auth import User
from patience import PATIENCE


def told(response: Any) -> dict[str, Any]:
    """Return the document in *response*."""
    assert response.code == 200, response.body
    document: dict[str, Any] = json.loads(response.body)
    return document


async def test_a_server_shows_its_own_timeline(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """The controller's document arrives, asked for with this server's token."""
    answer = told(await timeline())

    assert answer["standing"] == "live"
    assert answer["timeline"]["workload"] == "w1"
    assert [event["seq"] for event in answer["timeline"]["events"]] == [1]
    assert controller.requests[0][0] == "Fleet timeline-token-of-ada"


async def test_a_visitor_cannot_ask_for_another_workload(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """Whatever is in the query, only the bounded ``after`` and ``wait`` go on."""
    told(await timeline(workload="w2", user="eve", after="0"))

    assert controller.requests[0][1] == {"after": "0"}


async def test_a_token_of_another_server_shows_nothing(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """A timeline that is not of this user and server never leaves the extension."""
    controller.say({**controller.document, "server": "other"})

    answer = told(await timeline())

    assert (answer["standing"], answer["cause"]) == ("no_permission", "other_server")
    assert answer["timeline"] is None


async def test_without_login_nothing_is_told(
    lab: Any, jp_fetch: Any, controller: Any
) -> None:
    """A request without the server's token is refused before anything is asked."""
    response = await jp_fetch(
        "fleet/api/timeline",
        headers={"Authorization": "token wrong"},
        raise_error=False,
        follow_redirects=False,
    )

    assert response.code == 403
    assert controller.requests == []


async def test_who_is_not_authorized_is_refused(
    lab: Any, timeline: Any, controller: Any
) -> None:
    """The server's authorizer decides about the resource ``fleet``."""
    asked = []

    def refuse(handler: Any, user: Any, action: str, resource: str) -> bool:
        asked.append((action, resource))
        return False

    lab.authorizer.is_authorized = refuse

    response = await timeline()

    assert response.code == 403
    assert asked == [("read", "fleet")]
    assert controller.requests == []


@pytest.mark.parametrize(
    ("visitor", "code"),
    [
        ({"kind": "user", "name": "ada"}, 200),
        ({"kind": "user", "name": "eve"}, 403),
        ({"kind": "user", "name": "root", "admin": True}, 200),
    ],
)
async def test_a_shared_server_tells_its_timeline_to_its_owner_alone(
    lab: Any, timeline: Any, controller: Any, visitor: dict[str, Any], code: int
) -> None:
    """Whoever else may use the server is refused before anything is asked."""

    async def known(handler: Any) -> Any:
        # What JupyterHub's identity provider answers for each request.
        user = User(username=visitor["name"])
        user.hub_user = visitor  # type: ignore[attr-defined]
        handler._jupyter_current_user = user
        return user

    lab.identity_provider.get_user = known

    response = await timeline()

    assert response.code == code
    assert bool(controller.requests) is (code == 200)


async def test_looking_is_no_activity(lab: Any, timeline: Any) -> None:
    """A panel that asks leaves the server's last activity where it was."""
    before = lab.web_app.last_activity()

    told(await timeline())

    assert lab.web_app.last_activity() == before
    assert "api_last_activity" not in lab.web_app.settings


async def test_the_same_again_is_not_modified(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """Time that passes changes neither the tag nor sends the document again."""
    first = await timeline()
    controller.say({**controller.document, "as_of": "2026-11-29T10:09:00Z"})

    second = await timeline(etag=first.headers["ETag"])

    assert second.code == 304
    assert second.body == b""


async def test_news_arrive_while_waiting(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """A long poll ends with the event, not with the wait."""
    known = await timeline()
    waiting = asyncio.ensure_future(
        timeline(etag=known.headers["ETag"], after="1", wait="60")
    )
    await asyncio.wait_for(controller.polled.wait(), PATIENCE)
    event = {**controller.document["events"][0], "seq": 2, "kind": "ready"}
    document = controller.document
    controller.say({**document, "events": [*document["events"], event]})

    answer = told(await waiting)

    assert [event["kind"] for event in answer["timeline"]["events"]] == ["ready"]
    whole = told(await timeline())
    assert [event["seq"] for event in whole["timeline"]["events"]] == [1, 2]


async def test_many_panels_share_one_long_poll(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """Ten waiting tabs cost the controller one waiting connection."""
    await timeline()
    tabs = [asyncio.ensure_future(timeline(after="1", wait="60")) for _ in range(10)]
    await asyncio.wait_for(controller.polled.wait(), PATIENCE)
    event = {**controller.document["events"][0], "seq": 2}
    controller.say({**controller.document, "events": [event]})

    answers = [told(await tab) for tab in tabs]

    assert {len(answer["timeline"]["events"]) for answer in answers} == {1}
    assert sum("wait" in query for _, query in controller.requests) == 1


async def test_what_was_known_stays_when_the_controller_is_away(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """The last timeline is kept, with how old it is; and it is live again afterwards."""
    told(await timeline())
    await controller.go_away()

    away = told(await timeline())

    assert (away["standing"], away["cause"]) == ("away", "unreachable")
    assert away["timeline"]["workload"] == "w1"
    assert away["heard_seconds_ago"] >= 0
    assert away["message"]

    controller.listen()
    assert told(await timeline())["standing"] == "live"


async def test_a_waiting_panel_hears_that_the_controller_is_back(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """The wait goes on over an outage and ends with the difference."""
    told(await timeline())
    await controller.go_away()
    away = await timeline()
    waiting = asyncio.ensure_future(timeline(etag=away.headers["ETag"], wait="60"))
    controller.listen()

    assert told(await waiting)["standing"] == "live"


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (401, ("no_permission", "token_revoked")),
        (403, ("no_permission", "token_revoked")),
        (404, ("expired", "forgotten")),
        (410, ("expired", "forgotten")),
        (302, ("away", "unreachable")),
        (500, ("away", "unreachable")),
        (503, ("away", "unreachable")),
    ],
)
async def test_a_refusal_is_a_state_with_words(
    lab: Any,
    controller: Any,
    timeline: Any,
    status: int,
    state: tuple[str, str],
) -> None:
    """Each answer of the controller becomes a code and one English sentence."""
    controller.status = status

    answer = told(await timeline())

    assert (answer["standing"], answer["cause"]) == state
    assert answer["message"].endswith(".")


async def test_a_shortened_history_says_so(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """What is still known is shown, with the word that older steps are gone."""
    controller.say({**controller.document, "truncated": True})

    answer = told(await timeline())

    assert answer["standing"] == "expired"
    assert answer["timeline"]["workload"] == "w1"


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b"{}", b"[" * 100_000, b'{"events": 1}', b"\xff\xfe"],
    ids=["html", "list", "empty", "deep", "wrong", "bytes"],
)
async def test_what_is_not_understood_is_not_shown(
    lab: Any, controller: Any, timeline: Any, body: bytes
) -> None:
    """A strange answer is a state as well, and never an error of the server."""
    controller.body = body

    answer = told(await timeline())

    assert (answer["standing"], answer["cause"]) == ("away", "not_understood")


async def test_an_answer_without_end_is_given_up(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """More than a timeline can be is not read into memory."""
    controller.body = b'"' + b"x" * 2**21 + b'"'

    assert told(await timeline())["standing"] == "away"


@pytest.mark.parametrize(
    "query",
    [
        {"after": "-1"},
        {"after": "one"},
        {"after": "9" * 40},
        {"wait": "-1"},
        {"wait": "nan"},
        {"wait": "inf"},
    ],
)
async def test_a_nonsensical_query_is_refused(
    lab: Any, controller: Any, timeline: Any, query: dict[str, str]
) -> None:
    """Numbers that are none are a 400, and ask nothing of the controller."""
    response = await timeline(**query)

    assert response.code == 400
    assert "must be a number" in json.loads(response.body)["message"]
    assert controller.requests == []


async def test_a_server_without_a_hub_says_so(jp_serverapp: Any, timeline: Any) -> None:
    """Started by hand, the panel is told why there is nothing to see."""
    answer = told(await timeline())

    assert answer["standing"] == "no_hub"
    assert "not started by a JupyterHub" in answer["message"]
    assert answer["timeline"] is None


@pytest.fixture
def started_without_token(
    started_by_hub: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of a server whose controller gave it no timeline token."""
    monkeypatch.delenv("JUPYTERHUB_FLEET_TIMELINE_TOKEN")


async def test_a_missing_token_says_what_to_do(
    started_without_token: None, jp_serverapp: Any, controller: Any, timeline: Any
) -> None:
    """A server of an older start has no token: the answer says to restart it."""
    answer = told(await timeline())

    assert (answer["standing"], answer["cause"]) == ("no_permission", "token_missing")
    assert "restart" in answer["message"]
    assert controller.requests == []


async def test_the_token_is_shown_nowhere(
    lab: Any, controller: Any, timeline: Any
) -> None:
    """Neither an answer nor the settings nor a representation holds it."""
    controller.say({**controller.document, "token": "timeline-token-of-ada"})

    response = await timeline()

    assert b"timeline-token-of-ada" not in response.body
    settings = repr(lab.web_app.settings)
    assert "timeline-token-of-ada" not in settings
