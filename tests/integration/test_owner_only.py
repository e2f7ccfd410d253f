"""A native notebook of the real fleet is its owner's alone, from the form to the server.

Real Hub, proxy, controller, agent, environment and sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
import websocket
from fleet import Fleet
from fleet_parts import NEEDS_HUB
from native_fleet import (
    NATIVE_PATIENCE,
    add_native_machine,
    keep_environments,
    missing_for_native,
)

from fleet_lab.identity import REFUSAL


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.timeout(NATIVE_PATIENCE + 120),
]

SHARING = """
c.JupyterHub.load_roles.append({
    "name": "user",
    "scopes": [
        "self", "access:services!service=fleet", "shares!user", "read:users:name",
        "list:users",
    ],
})
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Ada's machine runs her notebook, which she has shared with eve."""
    if (reason := missing_for_native()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("fleet")
    with Fleet(folder=folder, catalog=None, more_config=SHARING) as running:
        running.token_of("eve")
        machine = add_native_machine(running, owner="ada")
        answer = running.ask("ada", {"profile": "cpu-small"})
        assert answer.status_code in {201, 202}, answer.text
        running.wait_ready("ada", patience=NATIVE_PATIENCE)
        keep_environments(machine)
        running.api(
            "POST", "shares/ada/", user="ada", json={"user": "eve"}
        ).raise_for_status()
        yield running


def visit(fleet: Fleet, visitor: str) -> requests.Response:
    """Ask ada's server through the proxy with all that *visitor* may do."""
    return requests.get(
        f"{fleet.url}/user/ada/api/status",
        headers={"Authorization": f"token {fleet.token_of(visitor)}"},
        timeout=60,
    )


def test_the_owner_works_on_it(fleet: Fleet) -> None:
    """Or the refusals below would prove nothing."""
    assert visit(fleet, "ada").status_code == 200


@pytest.mark.parametrize("visitor", ["eve", "admin"], ids=["shared", "admin"])
def test_whom_the_hub_would_let_in_is_refused(fleet: Fleet, visitor: str) -> None:
    """A user it is shared with, and a Hub admin, get 403 and one sentence."""
    scopes = fleet.api("GET", "user", user=visitor).json()["scopes"]
    assert {"access:servers", "access:servers!server=ada/"} & set(scopes)

    answer = visit(fleet, visitor)

    assert answer.status_code == 403
    assert answer.json()["message"] == REFUSAL


@pytest.mark.parametrize("visitor", ["eve", "admin"], ids=["shared", "admin"])
def test_no_websocket_opens_for_others(fleet: Fleet, visitor: str) -> None:
    """Kernels, terminals and events are closed to everybody else as well."""
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(
            f"{fleet.url.replace('http', 'ws')}/user/ada/api/events/subscribe",
            header={"Authorization": f"token {fleet.token_of(visitor)}"},
            timeout=60,
        )


def test_another_user_is_told_in_one_sentence(fleet: Fleet) -> None:
    """By REST: a 4xx with the reason's code; the machine is not theirs."""
    answer = fleet.ask("eve", {"profile": "cpu-small"})

    assert answer.status_code == 403
    assert "only its owner may run them" in answer.json()["message"]
    assert "isolation_too_weak" in answer.json()["message"]
    assert fleet.server("eve") is None
