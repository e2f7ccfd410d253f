"""A start that waits longer than its page: the place is kept."""

from __future__ import annotations

from typing import Any

import pytest
from hub_pages import Visitor
from hub_starts import begin, tokens_of
from scripted_controller import ScriptedController

from fleet_contracts.allocations import State
from fleet_contracts.reasons import Reason
from fleet_hub.admission import OutcomeKind


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


@pytest.mark.parametrize("hub", [{"consecutive_failure_limit": 3}], indirect=True)
async def test_starts_that_end_without_a_server_never_end_the_hub(
    hub: Any, ada: Visitor, controller: ScriptedController
) -> None:
    """Many in a row are many answers: JupyterHub gives up after errors, not after a no."""
    for kind, reason in 2 * (
        (OutcomeKind.REFUSED, Reason.EXCEEDS_ANY_MACHINE),
        (OutcomeKind.PARKED, Reason.PLACE_KEPT),
        (OutcomeKind.FAILED, Reason.DISK_FULL),
    ):
        answer, link = await begin(ada, controller)
        await link.tell(State.REQUESTED)
        await link.end(kind, "Not this time.", reason=reason)
        _, body, _ = await answer
        assert body["message"] == f"Not this time. ({reason.value})"
        options = {"user_options": {"profile": {"a": 1}}}
        status, _, _ = await ada.api("POST", "users/ada/server", options)
        assert status == 400
    assert hub.tornado_settings.get("failure_count", 0) == 0
