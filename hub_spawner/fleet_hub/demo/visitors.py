"""The people of the demo: they ask for their servers as everybody does."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import quote

from fleet_hub.asking_controller import ask
from fleet_hub.demo.fleet_file import DemoFleet, DemoMachine, DemoPerson
from fleet_hub.errors import ConfigurationError
from fleet_hub.places import Places, secret_of


SERVICE: Final = "demo"
_READY_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2
_ANSWER_SECONDS: Final = 60.0


def token_of(places: Places) -> str:
    """Return the API token of the demo's own service, made on first use."""
    return secret_of(places.root / "demo.secret")


def open_to_everybody(
    places: Places, machines: Iterable[DemoMachine], check: Callable[[], None]
) -> None:
    """Let the machines serve everybody, and return once all have told what they are.

    *check* raises when there is no use in waiting.

    Raises:
        ConfigurationError: one of them does not come.
    """
    names = [machine.name for machine in machines]
    for name in names:
        body = json.dumps({"by": SERVICE, "choice": "guest"}).encode()
        for deed in ("audience", "lending"):
            ask(places, f"machines/{name}/{deed}", body=body)
    deadline = time.monotonic() + _READY_SECONDS
    while missing := _missing(places, names):
        check()
        if time.monotonic() > deadline:
            raise ConfigurationError(
                f"{', '.join(missing)} did not say within {_READY_SECONDS:.0f} s what "
                "it can do; --data-dir keeps the logs"
            )
        time.sleep(_LOOK_SECONDS)  # another process is waited for, on this side of HTTP


def _missing(places: Places, names: list[str]) -> list[str]:
    told = {
        document["name"]
        for document in ask(places, "machines")["machines"]
        if document["online"] and document["capabilities"]["settled"]
    }
    return [name for name in names if name not in told]


def let_in(places: Places, fleet: DemoFleet, hub_url: str) -> None:
    """Have the fleet's people ask for their servers, one after the other.

    Raises:
        ConfigurationError: the Hub does not know what one of them asks for.
    """
    hub = _Hub(f"{hub_url}/hub/api", token_of(places))
    for person in fleet.people:
        hub.start(person)


class _Hub:
    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        # The token must not travel through a proxy.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def start(self, person: DemoPerson) -> None:
        name = quote(person.name, safe="")
        self._post(f"users/{name}", None, person)
        server = (
            f"servers/{quote(person.server, safe='')}" if person.server else "server"
        )
        options = {"user_options": person.options()}
        self._post(f"users/{name}/{server}", options, person)

    def _post(self, path: str, body: Any, person: DemoPerson) -> None:
        request = urllib.request.Request(  # noqa: S310 - our own loopback
            f"{self._url}/{path}",
            method="POST",
            data=json.dumps(body).encode() if body is not None else b"",
            headers={"Authorization": f"token {self._token}"},
        )
        try:
            self._opener.open(request, timeout=_ANSWER_SECONDS).close()
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(10_000).decode(errors="replace")
            raise ConfigurationError(
                f"{person.name} of the demo got no server "
                f"(profile {person.profile}): {error.code} {said}"
            ) from error
