"""A native notebook server accepts its owner and nobody else, whatever the Hub says.

A real Hub, its proxy and a real single-user server, started the plain way with the
owner's identity provider.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import websocket
from bs4 import BeautifulSoup
from plain_hub import PlainHub, plain_hub, proxy_command

from fleet_lab.identity import REFUSAL


pytestmark = [
    pytest.mark.hub,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        proxy_command() is None or shutil.which("node") is None,
        reason="configurable-http-proxy is not installed (npm ci)",
    ),
]

CONFIG = """
c.Spawner.args = [
    "--allow-root",
    "--ServerApp.identity_provider_class=fleet_lab.identity.OwnerIdentityProvider",
]
c.JupyterHub.load_roles = [
    {"name": "user", "scopes": ["self", "shares!user", "read:users:name", "list:users"]},
    {
        "name": "namesake",
        "scopes": ["access:servers"],
        "services": ["ada"],
    },
]
c.JupyterHub.services += [{"name": "ada", "api_token": "namesake-of-the-owner-1"}]
"""
NAMESAKE_TOKEN = "namesake-of-the-owner-1"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainHub]:
    """A Hub where ada's server runs, is shared with eve, and boss is an admin."""
    folder: Path = tmp_path_factory.mktemp("hub")
    with plain_hub(folder, CONFIG) as running:
        for name in ("ada", "eve", "boss"):
            running.browser(name)
        running.start_server("ada")
        shared = running.api(
            "POST", "shares/ada/", json={"user": "eve"}, token=running.token_of("ada")
        )
        shared.raise_for_status()
        (folder / "home/ada/hello.txt").write_text("hello")
        yield running
        running.api("DELETE", "users/ada/server").raise_for_status()


def entitled(hub: PlainHub, token: str) -> bool:
    """Whether the Hub itself would let this token into ada's server."""
    scopes = hub.api("GET", "user", token=token).json()["scopes"]
    return any(
        scope in scopes
        for scope in (
            "access:servers",
            "access:servers!user=ada",
            "access:servers!server=ada/",
        )
    )


def visit(hub: PlainHub, visitor: str) -> requests.Response:
    """Open ada's file as *visitor* in a browser, granting what the Hub asks for."""
    browser = hub.browser(visitor)
    page = browser.get(f"{hub.url}/user/ada/files/hello.txt", timeout=60)
    if "/oauth2/authorize" not in page.url:
        return page
    form = [
        (field["name"], field["value"])
        for field in BeautifulSoup(page.text, "html.parser").select("[type=hidden]")
    ]
    return browser.post(page.url, form, headers={"Referer": page.url}, timeout=60)


def test_the_owner_is_accepted(hub: PlainHub) -> None:
    """By token, by the browser's cookie, and on a WebSocket."""
    token = hub.token_of("ada")

    by_token = hub.api("GET", "../../user/ada/api/status", token=token)
    page = visit(hub, "ada")
    websocket.create_connection(
        f"{hub.url.replace('http', 'ws')}/user/ada/api/events/subscribe",
        header={"Authorization": f"token {token}"},
        timeout=60,
    ).close()

    assert by_token.status_code == 200
    assert page.text == "hello"


@pytest.mark.parametrize("visitor", ["eve", "boss"], ids=["shared", "admin"])
def test_whom_the_hub_would_let_in_is_refused(hub: PlainHub, visitor: str) -> None:
    """A user it is shared with, and an admin, read one sentence with a 403."""
    token = hub.token_of(visitor)
    assert entitled(hub, token)

    answer = hub.api("GET", "../../user/ada/api/status", token=token)

    assert answer.status_code == 403
    assert answer.json()["message"] == REFUSAL


@pytest.mark.parametrize("visitor", ["eve", "boss"], ids=["shared", "admin"])
def test_a_browser_shows_the_sentence(hub: PlainHub, visitor: str) -> None:
    """The page after the Hub's own login says why, and serves nothing."""
    page = visit(hub, visitor)

    assert page.status_code == 403
    assert page.url.startswith(f"{hub.url}/user/ada/")
    assert "nobody but its owner" in page.text


@pytest.mark.parametrize("visitor", ["eve", "boss"], ids=["shared", "admin"])
def test_a_websocket_is_refused(hub: PlainHub, visitor: str) -> None:
    """The way to kernels and terminals is closed as well."""
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(
            f"{hub.url.replace('http', 'ws')}/user/ada/api/events/subscribe",
            header={"Authorization": f"token {hub.token_of(visitor)}"},
            timeout=60,
        )


def test_a_service_with_the_owners_name_is_not_the_owner(hub: PlainHub) -> None:
    """Names of services and users may be equal; only the user is accepted."""
    assert entitled(hub, NAMESAKE_TOKEN)

    answer = hub.api("GET", "../../user/ada/api/status", token=NAMESAKE_TOKEN)

    assert answer.status_code == 403
    assert answer.json()["message"] == REFUSAL


def test_without_a_login_the_hub_asks_for_one(hub: PlainHub) -> None:
    """Nobody is not refused but sent to the Hub's login."""
    answer = hub.api("GET", "../../user/ada/api/status", token="unknown")

    assert answer.status_code == 403
    assert answer.json()["message"] == "Forbidden"
