"""What a start, a line and a running server go through when processes are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import held_agent
import pytest
from fleet import Fleet, wait_until
from fleet_parts import NEEDS_HUB, PATIENCE
from fleet_servers import begin, holders, is_served, kinds


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.timeout(300),
]
ALL, ONE = {"profile": "all"}, {"profile": "one"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Fleet]:
    """A fleet with one machine of ada's, whose starts park after two seconds."""
    with Fleet(folder=tmp_path, queue_hold=2, slow_spawn_timeout=PATIENCE) as started:
        started.add_machine("box", owner="ada")
        started.token_of("ada")
        yield started


def held_while_preparing(running: Fleet) -> Path:
    """Let the box prepare what it is given until the file that is returned is there."""
    go_on = running.folder / "go-on"
    running.machines["box"].program = (held_agent.__file__, str(go_on))
    running.restart_agent(pause_at="preparing")
    return go_on


def notes(running: Fleet) -> list[str]:
    """Return what each valid token of ada's is for."""
    tokens = running.api("GET", "users/ada/tokens").json()["api_tokens"]
    return [token["note"] for token in tokens]


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

    assert notes(running).count("Server at /user/ada/") == 1
    running.stop_server("ada")
    assert running.wait_state("ada", "stopped")
    # The new Hub never had the token; JupyterHub alone would leave it valid for ever.
    assert notes(running).count("Server at /user/ada/") == 0


def test_a_start_that_was_being_prepared_goes_on_after_the_hub_was_killed(
    running: Fleet,
) -> None:
    """The new Hub waits for it, and takes it over; it is not begun a second time."""
    go_on = held_while_preparing(running)
    begin(running, ONE)
    running.wait_state("ada", "preparing")
    running.kill_hub()
    running.start_hub()

    assert running.server("ada")["pending"] == "check"  # type: ignore[index]
    go_on.touch()
    running.wait_ready("ada")
    wait_until(lambda: is_served(running), "the route is there")
    assert kinds(running).count("preparing") == 1


@pytest.mark.parametrize("end", ["kill_hub", "end_hub"])
def test_a_waiting_start_keeps_its_place_when_the_hub_ends(
    running: Fleet, end: str
) -> None:
    """Killed or told to end: it starts by itself when its turn comes, in the order of
    the line.
    """
    running.start_server("ada", ALL)
    begin(running, ALL, "first")
    running.wait_state("ada", "queued", server="first")
    begin(running, ALL, "second")
    running.wait_state("ada", "queued", server="second")
    getattr(running, end)()
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
    assert notes(running).count("Server at /user/ada/lab/") == 1
    assert notes(running).count("Server at /user/ada/") == 0


def test_a_start_goes_on_through_a_kill_of_the_controller(running: Fleet) -> None:
    """The same start is attended again, and ends well."""
    go_on = held_while_preparing(running)
    begin(running, ONE)
    running.wait_state("ada", "preparing")
    running.kill_controller()
    go_on.touch()
    running.wait_ready("ada")
    assert running.status("ada")["generation"] == 1


def test_what_runs_and_who_waits_outlive_a_kill_of_the_controller(
    running: Fleet,
) -> None:
    """The server answers all the time, the line keeps its order, and one machine is
    never given twice, nor kept by nobody.
    """
    running.start_server("ada", ALL)
    url = running.status("ada")["url"]
    for name in ("first", "second"):
        begin(running, ALL, name)
        running.wait_state("ada", "queued", server=name)
    running.kill_controller()
    assert is_served(running)
    running.wait_for_controller()

    # Nobody is ahead of anybody before the machine has told what it holds.
    wait_until(
        lambda: running.status("ada", "second")["position"] == 1,
        "the line is known again",
    )
    assert running.status("ada", "first")["position"] == 0
    assert running.status("ada")["url"] == url
    assert holders(running) == [""]

    for left, next_one in (("", "first"), ("first", "second")):
        running.stop_server("ada", left)
        running.wait_ready("ada", next_one)
        assert holders(running) == [next_one]
    running.stop_server("ada", "second")
    assert holders(running) == []


def test_cancelling_ends_a_start_at_each_of_its_stages(running: Fleet) -> None:
    """DELETE while it waits, prepares or starts gives everything back."""
    running.restart_agent(pause_at="preparing")
    begin(running, ALL)
    running.wait_state("ada", "preparing")
    begin(running, ALL, "lab")
    running.wait_state("ada", "queued", server="lab")

    running.stop_server("ada", "lab")
    assert running.wait_state("ada", "stopped", server="lab")
    running.stop_server("ada")
    assert not running.wait_state("ada", "stopped")["holds"]

    running.restart_agent(pause_at="named")
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
