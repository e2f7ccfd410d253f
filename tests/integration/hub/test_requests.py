"""Asking for servers at the real Hub: by REST, under odd names, and in vain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fleet
import pytest
import requests
from bs4 import BeautifulSoup
from fleet import Fleet
from fleet_parts import NEEDS_HUB
from fleet_servers import begin
from odd_names import BEYOND, LONG, ODD, PUNCTUATION
from shared_fleet import as_found

from fleet_contracts.reasons import Explanation


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.timeout(300),
]
NUMBERS = count()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet with a machine of ada's."""
    folder: Path = tmp_path_factory.mktemp("fleet")
    with Fleet(
        folder=folder, queue_hold=30, slow_spawn_timeout=fleet.PATIENCE
    ) as started:
        started.token_of("ada")
        started.add_machine("box", owner="ada")
        yield started


@pytest.fixture
def running(shared: Fleet) -> Iterator[Fleet]:
    """That fleet, as each test finds it."""
    with as_found(shared) as fleet:
        yield fleet


@pytest.mark.parametrize(
    ("options", "status", "reason"),
    [
        (None, 400, "profile_required"),
        ({}, 400, "profile_required"),
        ({"profile": "none-such"}, 400, "profile_unknown"),
        ({"profile": "one", "class": "whole"}, 400, "class_unknown"),
        ({"profile": "one", "class": "none-such"}, 400, "class_unknown"),
        ({"profile": "one", "image": "x"}, 400, "option_unknown"),
        ({"profile": "../../etc/passwd"}, 400, "profile_unknown"),
        ({"profile": "ONE"}, 400, "profile_unknown"),
        ({"profile": "one\n"}, 400, "profile_unknown"),
        ({"profile": {"a": 1}}, 400, "invalid_request"),
    ],
)
def test_wrong_options_are_refused_by_rest_with_the_code(
    running: Fleet, options: dict[str, Any] | None, status: int, reason: str
) -> None:
    """For the default server and for a named one alike; nothing is left behind."""
    user = f"carol{next(NUMBERS)}"  # with no last choice to fall back on
    for server in ("", "wrong"):
        answer = running.ask(user, options, server)
        assert answer.status_code == status, answer.text
        assert answer.json()["message"].endswith(f"({reason})"), answer.text
        assert answer.headers["X-Fleet-Reason"] == reason
        assert running.server(user, server) is None


def test_a_second_user_is_told_why_in_one_sentence(running: Fleet) -> None:
    """By REST with the code; on the spawn page, and by its form, without it."""
    answer = running.ask("bob", {"profile": "one"})
    assert answer.status_code == 403
    message = answer.json()["message"]
    reason = answer.headers["X-Fleet-Reason"]
    assert message.endswith(f"({reason})")
    sentence = message.removesuffix(f" ({reason})")
    assert sentence.count(".") == 1

    browser = running.log_in("bob")
    page = browser.get(f"{running.url}/hub/spawn", timeout=fleet.PATIENCE)
    assert "Choose a server" in words_of(page)
    assert sentence in words_of(page)

    form = BeautifulSoup(page.content, "html.parser").select_one("form#spawn_form")
    assert form is not None
    page = browser.post(
        f"{running.url}{form['action']}",
        data={"profile": "one"},
        timeout=fleet.PATIENCE,
    )
    while "spawn-pending" in page.url and sentence not in words_of(page):
        page = browser.get(page.url, timeout=fleet.PATIENCE)
    assert sentence in words_of(page)
    assert f"({reason})" not in words_of(page)
    assert running.server("bob") is None


def test_a_waiting_start_gives_one_reason_wherever_somebody_looks(
    running: Fleet,
) -> None:
    """The spawn page, the pending page, the timeline and REST: one code, one sentence.

    Only who holds it is called by name for an operator, and "you" for that user.
    """
    running.start_server("ada", {"profile": "all"}, "holder")
    begin(running, {"profile": "all"}, "waits")
    status = running.wait_state("ada", "queued", server="waits")

    timeline = running.timeline("ada", "waits")
    why = running.controller("GET", f"explain?workload={status['workload']}")["why"]
    assert why["explanation"]["reason"] == "cpu_busy"
    assert timeline["explanation"] == status["explanation"] == why["explanation"]
    browser = running.log_in("ada")
    pending = browser.get(
        f"{running.url}/hub/spawn-pending/ada/waits", timeout=fleet.PATIENCE
    )
    shown = BeautifulSoup(pending.content, "html.parser").select_one("#fleet-document")
    assert shown is not None
    on_page = Explanation.model_validate(json.loads(shown.text)["explanation"])
    assert on_page == Explanation.model_validate(why["explanation"])
    assert timeline["headline"] in words_of(pending)
    spawn = browser.get(f"{running.url}/hub/spawn/ada/another", timeout=fleet.PATIENCE)
    assert "held by ada" in why["sentence"]
    for page in (pending, spawn):
        assert why["sentence"].replace("by ada", "by you") in words_of(page)

    running.stop_server("ada", "waits")
    running.stop_server("ada", "holder")


def words_of(page: requests.Response) -> str:
    """Return what *page* says."""
    return " ".join(BeautifulSoup(page.content, "html.parser").get_text(" ").split())


def test_named_servers_are_servers_like_any_other(running: Fleet) -> None:
    """Each has its own place, timeline and end."""
    running.start_server("ada", {"profile": "one"})
    running.start_server("ada", {"profile": "both", "class": "small"}, "lab")
    assert running.key("ada") != running.key("ada", "lab")
    assert running.status("ada")["url"] != running.status("ada", "lab")["url"]
    running.stop_server("ada")
    assert running.server("ada", "lab") is not None
    running.stop_server("ada", "lab")


def test_a_renamed_server_keeps_its_key(running: Fleet) -> None:
    """Files and history belong to the server, not to its name."""
    running.start_server("ada", {"profile": "one"}, "before")
    running.stop_server("ada", "before")
    key, workload = running.key("ada", "before"), running.status("ada", "before")
    answer = running.api(
        "PATCH", "users/ada/servers/before", user="ada", json={"name": "after"}
    )
    assert answer.status_code == 200, answer.text
    running.start_server("ada", {"profile": "one"}, "after")
    assert running.key("ada", "after") == key
    assert running.status("ada", "after")["workload"] == workload["workload"]
    running.stop_server("ada", "after")


def test_a_removed_server_gives_its_key_back(running: Fleet) -> None:
    """JupyterHub reuses ids: the next server must not find this one's history."""
    running.start_server("ada", {"profile": "one"}, "gone")
    key = running.key("ada", "gone")
    running.stop_server("ada", "gone")
    answer = running.api(
        "DELETE", "users/ada/servers/gone", user="ada", json={"remove": True}
    )
    assert answer.status_code == 204, answer.text
    assert running.controller("GET", f"servers/{key}").get("workload") is None


def test_a_deleted_user_holds_nothing(running: Fleet) -> None:
    """Their server ends with them, and whoever gets the id finds nothing of it."""
    running.token_of("erin")
    running.add_machine("erins", owner="erin")
    running.start_server("erin", {"profile": "one"})
    key = running.key("erin")
    assert running.status("erin")["holds"]
    assert running.api("DELETE", "users/erin").status_code == 204
    fleet.wait_until(
        lambda: running.controller("GET", f"servers/{key}").get("workload") is None,
        "nothing of it is known any more",
    )


@pytest.mark.parametrize(
    "name", [ODD, PUNCTUATION, BEYOND, "ünïcode-名前", "under_score", "a.b", LONG]
)
def test_any_name_that_jupyterhub_takes_can_have_a_server(
    running: Fleet, name: str
) -> None:
    """It starts, is reached below its own path, and stops."""
    running.api("POST", f"users/{quote(name, safe='')}").raise_for_status()
    running.add_machine(f"box{next(NUMBERS)}", owner=name)
    path = f"users/{quote(name, safe='')}/server"
    answer = running.api("POST", path, json={"user_options": {"profile": "one"}})
    assert answer.status_code == 201, answer.text
    url = running.api("GET", f"users/{quote(name, safe='')}").json()["server"]
    fleet.wait_until(
        lambda: requests.get(f"{running.url}{url}api", timeout=fleet.PATIENCE).ok,
        "it is reached",
    )
    assert running.api("DELETE", path).status_code in {202, 204}


def test_a_server_that_fails_to_start_says_so_in_the_stream(running: Fleet) -> None:
    """The stream's last event carries the sentence, never an empty one."""
    running.add_machine("broken", owner="dora", fault="start_fails")
    answer = running.ask("dora", {"profile": "one"})
    assert answer.status_code == 500, answer.text
    assert "(start_failed)" in answer.json()["message"]
    last = running.progress("dora")[-1]
    assert last["failed"]
    assert last["html_message"].endswith(".")
