"""Whatever comes as options, by whichever way: one judge, one answer, nothing left over.

Real Hub, proxy, controller and agents; the machine with GPUs is a pretended one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import fleet
import pytest
import requests
from bs4 import BeautifulSoup
from fleet import Fleet
from fleet_parts import NEEDS_HUB, server_path
from shared_fleet import as_found


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.timeout(300),
]
NUMBERS = count()
CATALOG = """
classes:
  - {name: small, title: Small, description: "Little.", cpu: 0.1, memory: 64M}
  - {name: gpu, title: GPU, description: "A GPU.", cpu: 0.1, memory: 64M, accelerator: cuda}
  - {name: eight, title: Eight, description: "GPUs.", cpu: 0.1, memory: 64M, accelerator: cuda, devices: 8}
runtimes:
  - {name: pretend, title: Pretended, accelerators: [cpu, cuda], ref: pretended}
profiles:
  - {name: one, title: One, description: "CPU.", classes: [small], runtimes: [pretend]}
  - {name: both, title: Both, description: "Either.", classes: [small, gpu], runtimes: [pretend]}
  - {name: much, title: Much, description: "GPUs.", classes: [eight], runtimes: [pretend]}
"""
SHAPE = {
    "cores": 8,
    "memory": "32G",
    "gpus": [{"name": "NVIDIA A100", "memory": "40G", "count": 2}],
}
MORE = """
c.JupyterHub.allow_named_servers = True
c.FleetSpawner.consecutive_failure_limit = 5
"""
LARGE = "x" * 1_000_000


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet with one machine of two GPUs that serves everybody."""
    folder: Path = tmp_path_factory.mktemp("fleet")
    with Fleet(
        folder=folder,
        catalog=CATALOG,
        more_config=MORE,
        queue_hold=30,
        slow_spawn_timeout=fleet.PATIENCE,
    ) as started:
        started.token_of("ada")
        settings = {"drivers": ["simulation"], "simulated_machine": SHAPE}
        started.add_agent("box", owner="ada", settings=settings)
        yield started


@pytest.fixture
def running(shared: Fleet) -> Iterator[Fleet]:
    """That fleet, as each test finds it."""
    with as_found(shared) as fleet:
        yield fleet


def devices_held(running: Fleet) -> dict[str, list[str]]:
    """Return which GPUs are held, by server."""
    return {
        held["server"]: held["resources"]["devices"]
        for held in running.told_of("box")["holds"]
    }


def post(running: Fleet, user: str, body: bytes, server: str = "") -> requests.Response:
    """Ask for a server with exactly this body."""
    return requests.post(
        f"{running.url}/hub/api/{server_path(user, server)}",
        headers={"Authorization": f"token {running.token_of(user)}"},
        data=body,
        timeout=fleet.PATIENCE,
    )


def a_newcomer() -> str:
    """Return a user who has never chosen anything to fall back on."""
    return f"newcomer{next(NUMBERS)}"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("{}", "profile_required"),
        ('{"class": "small"}', "profile_required"),
        ('{"profile": null}', "profile_required"),
        ('{"profile": ""}', "profile_required"),
        # no type but a text, and no text but one
        ('{"profile": 0}', "invalid_request"),
        ('{"profile": -1}', "invalid_request"),
        ('{"profile": true}', "invalid_request"),
        ('{"profile": false}', "invalid_request"),
        ('{"profile": NaN}', "invalid_request"),
        ('{"profile": Infinity}', "invalid_request"),
        ('{"profile": []}', "invalid_request"),
        ('{"profile": ["one"]}', "invalid_request"),
        ('{"profile": {"one": 1}}', "invalid_request"),
        ('{"profile": {"name": {"of": {"it": "one"}}}}', "invalid_request"),
        ('{"profile": ' + "[" * 500 + "]" * 500 + "}", "invalid_request"),
        ('{"profile": "\\ud800"}', "invalid_request"),
        ('{"profile": "one", "class": true}', "invalid_request"),
        ('{"profile": "one", "class": 0}', "invalid_request"),
        ('{"profile": "one", "class": NaN}', "invalid_request"),
        ('{"profile": "one", "class": {"small": 1}}', "invalid_request"),
        ('{"profile": "one", "class": "small\\udfff"}', "invalid_request"),
        ('{"profile": "one", "files": "copy\\n"}', "invalid_request"),
        ('{"profile": "one", "files": false}', "invalid_request"),
        ('{"profile": "one", "files": -Infinity}', "invalid_request"),
        # the whole name, and no other
        ('{"profile": "one\\n"}', "profile_unknown"),
        ('{"profile": "one\\u0000"}', "profile_unknown"),
        ('{"profile": "one\\r\\nX-Evil: 1"}', "profile_unknown"),
        ('{"profile": " one"}', "profile_unknown"),
        ('{"profile": "ones"}', "profile_unknown"),
        ('{"profile": "on"}', "profile_unknown"),
        ('{"profile": "ONE"}', "profile_unknown"),
        ('{"profile": "\\u043ene"}', "profile_unknown"),
        ('{"profile": "\\uff4fne"}', "profile_unknown"),
        ('{"profile": "\\u202eeno"}', "profile_unknown"),
        ('{"profile": ".*"}', "profile_unknown"),
        ('{"profile": "../one"}', "profile_unknown"),
        ('{"profile": "%(one)s"}', "profile_unknown"),
        ('{"profile": "{one}"}', "profile_unknown"),
        ('{"profile": "one", "profile": "two"}', "profile_unknown"),
        (json.dumps({"profile": LARGE}), "profile_unknown"),
        ('{"profile": "one", "class": "gpu"}', "class_unknown"),
        ('{"profile": "one", "class": "small\\n"}', "class_unknown"),
        (json.dumps({"profile": "one", "class": LARGE}), "class_unknown"),
        # and nothing beside it, bounds of somebody's own included
        ('{"profile": "one", "": 1}', "option_unknown"),
        ('{"profile": "one", "cpu": -4}', "option_unknown"),
        ('{"profile": "one", "mem_limit": "-1G"}', "option_unknown"),
        ('{"profile": "one", "devices": 8}', "option_unknown"),
        ('{"profile": "one", "image": "mine"}', "option_unknown"),
        ('{"profile": "one", "choice": "one"}', "option_unknown"),
        ('{"profile": "one", "__class__": "x"}', "option_unknown"),
        ('{"Profile": "one"}', "option_unknown"),
        ('{"profile": "one", "a\\r\\nX-Evil: 1": 1}', "option_unknown"),
        (json.dumps({"profile": "one", LARGE: 1}), "option_unknown"),
        (
            json.dumps(
                {"profile": "one"} | {f"k{number}": 1 for number in range(5000)}
            ),
            "option_unknown",
        ),
    ],
)
def test_options_by_rest_are_a_choice_or_a_400_with_a_code(
    running: Fleet, options: str, reason: str
) -> None:
    """With a profile or without: never a default, an error of the Hub, or a start."""
    user = a_newcomer()
    for server in ("", "lab"):
        answer = post(running, user, f'{{"user_options": {options}}}'.encode(), server)
        assert answer.status_code == 400, answer.text
        assert answer.headers["X-Fleet-Reason"] == reason
        assert "X-Evil" not in answer.headers
        message = answer.json()["message"]
        assert message.endswith(f"({reason})")
        # A page of somebody's input is not sent back to them, nor kept.
        assert len(message) < 300
        assert running.server(user, server) is None
    assert running.api("GET", "users/ada").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        *(b"[]", b'"one"', b"5", b"true", b"{", b"\xff\xfe"),
        *(b'{"user_options": "one"}', b'{"user_options": ["profile", "one"]}'),
        *(b'{"user_options": 5}', b'{"user_options": true}'),
        b'{"user_options": {"profile": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    ],
)
def test_a_body_that_is_none_starts_nothing(running: Fleet, body: bytes) -> None:
    """JupyterHub refuses it itself; nobody is started with what it would have guessed."""
    user = a_newcomer()
    answer = post(running, user, body)
    assert answer.status_code == 400, answer.text
    assert running.server(user) is None


def test_the_form_meets_the_same_judge(running: Fleet) -> None:
    """Bounds that only its fields keep would be no bounds: whoever posts may write any."""
    browser = running.log_in("ada")
    page = browser.get(f"{running.url}/hub/spawn/ada/form", timeout=fleet.PATIENCE)
    form = BeautifulSoup(page.content, "html.parser").select_one("form#spawn_form")
    assert form is not None
    for fields, code in (
        ({}, "names none"),
        ({"profile": "one\n"}, "no profile called"),
        ({"profile": ["one", "both"]}, "must be one name"),
        ({"profile": "one", "class-one": "gpu"}, "no class called gpu"),
        ({"profile": "one", "memory": "-1G"}, "no option called"),
        ({"profile": LARGE}, "no profile called"),
    ):
        answer = browser.post(
            f"{running.url}{form['action']}", data=fields, timeout=fleet.PATIENCE
        )
        words = BeautifulSoup(answer.content, "html.parser").get_text(" ")
        assert code in " ".join(words.split()), fields
        assert running.server("ada", "form") is None


def test_six_requests_in_a_row_that_can_never_run_do_not_end_the_hub(
    running: Fleet,
) -> None:
    """JupyterHub ends after five failures: what is refused is none."""
    for options in 6 * ({"profile": "much"}, {"profile": "none"}, {"profile": {}}):
        assert running.ask("ada", options).status_code == 400
    running.start_server("ada", {"profile": "one"})
    running.stop_server("ada")


def test_after_a_gpu_start_that_failed_a_cpu_start_holds_no_gpu(running: Fleet) -> None:
    """Another class is chosen, nothing of the first one is left: not here, not there."""
    running.restart_agent("box", fault="start_fails")
    answer = running.ask("ada", {"profile": "both", "class": "gpu"}, "turns")
    assert answer.status_code == 500, answer.text
    fleet.wait_until(lambda: devices_held(running) == {}, "the GPU is given back")

    running.restart_agent("box")
    running.start_server("ada", {"profile": "both", "class": "small"}, "turns")
    assert devices_held(running) == {"turns": []}
    limits = running.timeline("ada", "turns")["limits"]
    assert not limits.get("devices")
    running.stop_server("ada", "turns")


def test_each_choice_is_what_is_used_however_often_it_changes(running: Fleet) -> None:
    """The first one does not stick, for a server that was used before."""
    for class_name, gpus in (("small", 0), ("gpu", 1), ("small", 0), ("gpu", 1)):
        running.start_server("ada", {"profile": "both", "class": class_name}, "again")
        assert [len(gpu) for gpu in devices_held(running).values()] == [gpus]
        assert running.timeline("ada", "again")["class"] == class_name
        running.stop_server("ada", "again")


def test_a_call_without_options_takes_the_last_choice_and_not_a_default(
    running: Fleet,
) -> None:
    """The controller starts a waiting server like that; a newcomer has none."""
    running.start_server("ada", {"profile": "both", "class": "gpu"}, "last")
    running.stop_server("ada", "last")
    assert running.ask("ada", {"profile": "none"}, "last").status_code == 400
    answer = running.ask("ada", None, "last")
    assert answer.status_code in {201, 202}, answer.text
    running.wait_ready("ada", "last")
    assert [len(gpus) for gpus in devices_held(running).values()] == [1]
    running.stop_server("ada", "last")
    assert running.ask(a_newcomer(), None).headers["X-Fleet-Reason"] == (
        "profile_required"
    )


def test_two_servers_of_one_gpu_each_have_different_gpus(running: Fleet) -> None:
    """Both count one, of two; the third waits for one of them and says so."""
    for server in ("first", "second"):
        running.start_server("ada", {"profile": "both", "class": "gpu"}, server)
    held = devices_held(running)
    assert sorted(map(len, held.values())) == [1, 1]
    assert held["first"] != held["second"]
    third = running.controller(
        "POST",
        "offers",
        json={"principal": {"user_id": 1, "name": "ada"}},
    )
    (gpu,) = [
        offer
        for offer in third["offers"]
        if (offer["profile"], offer["class_name"]) == ("both", "gpu")
    ]
    assert gpu["explanation"]["reason"] == "gpu_busy"
    for server in ("first", "second"):
        running.stop_server("ada", server)


def test_progress_that_is_asked_for_too_early_is_no_error(running: Fleet) -> None:
    """Before any start there is none to tell of; the Hub says so and goes on."""
    running.token_of("ada")
    answer = running.api("GET", "users/ada/server/progress", user="ada")
    assert answer.status_code in {400, 404}
    running.start_server("ada", {"profile": "one"})
    assert running.progress("ada")[-1]["progress"] == 100
    running.stop_server("ada")
