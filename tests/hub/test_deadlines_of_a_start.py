"""The deadlines of what was chosen count, and not JupyterHub's own for every server."""

from __future__ import annotations

from typing import Any

import pytest
from hub_pages import Visitor
from hub_starts import begin
from scripted_controller import ScriptedController, accept

from fleet_contracts.allocations import State
from fleet_hub.admission import OutcomeKind, ValidateAnswer, ValidateRequest
from fleet_hub.spawner import DEADLINE_MARGIN_SECONDS


def a_profile_that_takes(seconds: float | None) -> Any:
    """Return a validation that accepts everything, and says how long that may take."""

    def answer(request: ValidateRequest) -> ValidateAnswer:
        return accept(request).model_copy(update={"start_seconds": seconds})

    return answer


async def deadline_of_a_start(
    hub: Any, ada: Visitor, controller: ScriptedController, notebook_url: str
) -> int:
    """Start ada's server, and stop it again; return how long JupyterHub would wait."""
    answer, link = await begin(ada, controller)
    await link.tell(State.PREPARING)
    await link.tell(State.READY)
    await link.end(OutcomeKind.READY, url=notebook_url)
    status, _, _ = await answer
    assert status == 201
    seconds: int = hub.users["ada"].spawner.start_timeout
    await ada.api("DELETE", "users/ada/server")
    return seconds


@pytest.mark.parametrize("hub", [{"start_timeout": 2}], indirect=True)
async def test_a_profile_that_may_take_hours_is_given_them(
    hub: Any, ada: Visitor, controller: ScriptedController, notebook_url: str
) -> None:
    """However short the Hub's own time-out is, which ends a start without a reason.

    Each start has the time of its own choice: the last one's leaves nothing behind.
    """
    spawner = hub.users["ada"].spawner
    waits = spawner.queue_hold + spawner.controller_patience + DEADLINE_MARGIN_SECONDS
    for seconds, least in ((7200.5, waits + 7200.5), (60, waits + 60), (None, 2)):
        controller.validate = a_profile_that_takes(seconds)
        found = await deadline_of_a_start(hub, ada, controller, notebook_url)
        assert least <= found < least + 1


@pytest.mark.parametrize("hub", [{"start_timeout": 90_000}], indirect=True)
async def test_a_longer_time_out_of_the_hub_stays(
    hub: Any, ada: Visitor, controller: ScriptedController, notebook_url: str
) -> None:
    """An admin who leaves more time than a profile asks for has left it."""
    controller.validate = a_profile_that_takes(60)
    found = await deadline_of_a_start(hub, ada, controller, notebook_url)
    assert found == 90_000
