"""What a start, a line and a running server go through when processes are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fleet
import pytest
import requests
from fleet import Fleet, wait_until


pytestmark = [
    pytest.mark.hub,
    pytest.mark.timeout(300),
    pytest.mark.skipif(fleet.missing() is not None, reason=str(fleet.missing())),
]
ALL, ONE = {"profile": "all"}, {"profile": "one"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Fleet]:
    """A fleet with one machine of ada's, whose starts park after two seconds."""
    with Fleet(folder=tmp_path, queue_hold=2) as started:
        started.add_machine("box", owner="ada")
        started.token_of("ada")
        yield started


def begin(running: Fleet, options: dict[str, Any], server: str = "") -> None:
    """Ask for a server in a way that does not wait for the answer."""
    path = f"users/ada/servers/{server}" if server else "users/ada/server"
    try:
        requests.post(
            f"{running.url}/hub/api/{path}",
            headers={"Authorization": f"token {running.token_of('ada')}"},
            json={"user_options": options},
            timeout=(5, 0.5),
        )
    except requests.ReadTimeout:
        return


def kinds(running: Fleet, server: str = "") -> list[str]:
    """Return the kinds of the timeline's entries."""
    return [event["kind"] for event in running.timeline("ada", server)["events"]]


def is_served(running: Fleet, server: str = "") -> bool:
    """Whether the proxy leads to the server that runs."""
    path = f"user/ada/{server}/api" if server else "user/ada/api"
    return requests.get(f"{running.url}/{path}", timeout=10).status_code == 200


def test_a_running_server_is_found_again_after_the_hub_was_killed(
    running: Fleet,
) -> None:
    """It ran on meanwhile, keeps its token, and the proxy leads to it again."""
    running.start_server("ada", ONE)
    before = running.status("ada")
    running.kill_hub()
    running.start_hub()
    running.wait_ready("ada")

    after = running.status("ada")
    assert after["url"] == before["url"]
    assert after["generation"] == before["generation"]
    wait_until(lambda: is_served(running), "the route is there again")
    assert kinds(running).count("starting") == 1

    running.stop_server("ada")
    assert running.wait_state("ada", "stopped")


def test_a_start_that_was_being_prepared_goes_on_after_the_hub_was_killed(
    running: Fleet,
) -> None:
    """The new Hub waits for it, and takes it over; it is not begun a second time."""
    running.restart_agent(prepare_seconds=15)
    begin(running, ONE)
    running.wait_state("ada", "preparing")
    running.kill_hub()
    running.start_hub()

    assert running.server("ada")["pending"] == "check"  # type: ignore[index]
    running.wait_ready("ada")
    wait_until(lambda: is_served(running), "the route is there")
    assert kinds(running).count("preparing") == 1


def test_a_waiting_start_keeps_its_place_when_the_hub_is_killed(
    running: Fleet,
) -> None:
    """It starts by itself when its turn comes, in the order of the line."""
    running.start_server("ada", ALL)
    begin(running, ALL, "first")
    running.wait_state("ada", "queued", server="first")
    begin(running, ALL, "second")
    running.wait_state("ada", "queued", server="second")
    running.kill_hub()
    running.start_hub()

    places = {"first": 0, "second": 1}
    wait_until(
        lambda: (
            {name: running.status("ada", name)["position"] for name in places} == places
        ),
        "the line is as it was",
    )
    running.wait_ready("ada")
    running.stop_server("ada")
    running.wait_ready("ada", "first")
    assert running.status("ada", "second")["state"] == "queued"


def test_a_parked_start_comes_up_by_itself_and_its_old_token_is_void(
    running: Fleet,
) -> None:
    """The line outlives the start; each launch has a token of its own."""
    running.start_server("ada", ALL)
    answer = running.ask("ada", ALL, "lab")
    assert answer.status_code == 503
    assert "(place_kept)" in answer.json()["message"]
    assert running.status("ada", "lab")["parked"]

    running.stop_server("ada")
    running.wait_ready("ada", "lab")
    assert not running.status("ada", "lab")["parked"]
    notes = [
        token["note"]
        for token in running.api("GET", "users/ada/tokens").json()["api_tokens"]
    ]
    assert notes.count("Server at /user/ada/lab/") == 1
    assert notes.count("Server at /user/ada/") == 0


def test_a_start_goes_on_through_a_kill_of_the_controller(running: Fleet) -> None:
    """The same start is attended again, and ends well."""
    running.restart_agent(prepare_seconds=5)
    begin(running, ONE)
    running.wait_state("ada", "preparing")
    running.kill_controller()
    running.wait_ready("ada")
    assert running.status("ada")["generation"] == 1


def test_cancelling_ends_a_start_at_each_of_its_stages(running: Fleet) -> None:
    """DELETE while it waits, prepares or starts gives everything back."""
    running.restart_agent(prepare_seconds=30, start_seconds=30)
    begin(running, ALL)
    running.wait_state("ada", "preparing")
    begin(running, ALL, "lab")
    running.wait_state("ada", "queued", server="lab")

    running.stop_server("ada", "lab")
    assert running.wait_state("ada", "stopped", server="lab")
    running.stop_server("ada")
    assert not running.wait_state("ada", "stopped")["holds"]

    running.restart_agent(start_seconds=30)
    begin(running, ALL)
    running.wait_state("ada", "starting")
    running.stop_server("ada")
    assert not running.wait_state("ada", "stopped")["holds"]


def test_no_token_and_no_ref_is_in_any_log(running: Fleet) -> None:
    """Logs are read by more people than may act as a user."""
    running.start_server("ada", ONE)
    running.stop_server("ada")
    secret = (running.data / "controller" / "spawner.secret").read_text().strip()
    logs = "".join(path.read_text() for path in running.folder.glob("*.log"))

    assert running.token_of("ada") not in logs
    assert secret not in logs
    assert "JUPYTERHUB_API_TOKEN" not in logs
    assert "pretended" not in logs
