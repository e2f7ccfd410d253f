"""A panel that looks at the timeline keeps no server alive, behind the real proxy.

A Hub hears of activity in two ways: from the notebook server, and from its proxy, which
counts every answer below 300.  A culler believes either.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from plain_hub import REPOSITORY, PlainHub, plain_hub, proxy_command


pytestmark = [
    pytest.mark.hub,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        proxy_command() is None or shutil.which("node") is None,
        reason="configurable-http-proxy is not installed (npm ci)",
    ),
]

CONFIG = f"""
c.Spawner.args = ["--allow-root"]
c.Spawner.environment = {{
    "JUPYTER_CONFIG_PATH": "{REPOSITORY / "server_ext/fleet_lab/jupyter-config"}"
}}
c.JupyterHub.load_roles = [
    {{"name": "watcher", "scopes": ["proxy"], "services": ["watcher"]}}
]
c.JupyterHub.services += [{{"name": "watcher", "api_token": "watches-the-routes-1"}}]
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainHub]:
    """A Hub where ada's server runs, with the extension switched on as installed."""
    with plain_hub(tmp_path_factory.mktemp("hub"), CONFIG) as running:
        running.browser("ada")
        running.start_server("ada")
        yield running
        running.api("DELETE", "users/ada/server").raise_for_status()


def route(hub: PlainHub) -> dict[str, Any]:
    """Return what the proxy knows about ada's server, its last activity included."""
    routes = hub.api("GET", "proxy", token="watches-the-routes-1").json()
    found: dict[str, Any] = routes["/user/ada/"]
    return found


def look(
    hub: PlainHub, etag: str | None = None, path: str = "fleet/api/timeline"
) -> requests.Response:
    """Ask ada's server through the proxy, as her browser does."""
    return requests.get(
        f"{hub.url}/user/ada/{path}",
        headers={
            "Authorization": f"token {hub.token_of('ada')}",
            **({} if etag is None else {"If-None-Match": etag}),
        },
        timeout=60,
    )


def test_looking_again_is_no_activity(hub: PlainHub) -> None:
    """An unchanged timeline moves neither the proxy's time nor the server's."""
    first = look(hub)
    assert first.status_code == 200
    before = route(hub)

    answers = [look(hub, first.headers["ETag"]) for _ in range(5)]

    assert {answer.status_code for answer in answers} == {304}
    assert route(hub) == before


def test_the_server_itself_counts_no_look(hub: PlainHub) -> None:
    """Not even a first look, with an answer, moves what the server reports."""
    before = look(hub, path="api/status").json()["last_activity"]

    assert look(hub).status_code == 200

    assert look(hub, path="api/status").json()["last_activity"] == before


def test_real_use_still_counts(hub: PlainHub) -> None:
    """The proxy's time is one that moves, or the tests above would prove nothing."""
    before = route(hub)

    assert look(hub, path="api/contents").status_code == 200

    assert route(hub) != before
