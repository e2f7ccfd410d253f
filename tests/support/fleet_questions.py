"""What tests ask of a fleet: of its Hub, as a user or an admin, and of its controller."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from fleet_parts import (
    ADMIN_TOKEN,
    PATIENCE,
    events,
    key_in,
    logged_in,
    server_path,
    wait_until,
)
from patience import free_port


@dataclass(kw_only=True)
class FleetQuestions:
    """Where a fleet is, and whom to ask there."""

    folder: Path
    host: str = "127.0.0.1"
    """Where the proxy listens."""
    public_port: int = field(default_factory=free_port)
    controller_port: int = field(default_factory=free_port)
    _tokens: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """What people open."""
        return f"http://{self.host}:{self.public_port}"

    @property
    def service(self) -> str:
        """The controller's service, directly."""
        return f"http://127.0.0.1:{self.controller_port}/services/fleet/"

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    # --------------------------------------------------------------- the Hub's API

    def api(
        self,
        method: str,
        path: str,
        *,
        user: str | None = None,
        **more: Any,
    ) -> requests.Response:
        """Call the Hub's REST API as *user*, or as an admin service."""
        token = self.token_of(user) if user else ADMIN_TOKEN
        return requests.request(
            method,
            f"{self.url}/hub/api/{path}",
            headers={"Authorization": f"token {token}"},
            timeout=PATIENCE,
            **more,
        )

    def token_of(self, user: str) -> str:
        """Return a token with all that *user* may do, making the user if need be."""
        if user not in self._tokens:
            if self.api("GET", f"users/{user}").status_code == 404:
                self.api("POST", f"users/{user}").raise_for_status()
            answer = self.api("POST", f"users/{user}/tokens", json={"note": "harness"})
            answer.raise_for_status()
            self._tokens[user] = answer.json()["token"]
        return self._tokens[user]

    def log_in(self, user: str) -> requests.Session:
        """Return a browser's cookies after *user* logged in."""
        return logged_in(self.url, user)

    def ask(
        self, user: str, options: dict[str, Any] | None, server: str = ""
    ) -> requests.Response:
        """Ask for a server; the answer comes after ``slow_spawn_timeout`` at the latest."""
        body = None if options is None else {"user_options": options}
        return self.api("POST", server_path(user, server), user=user, json=body)

    def start_server(
        self, user: str, options: dict[str, Any], server: str = ""
    ) -> dict[str, Any]:
        """Start a server, and return the Hub's model of it once it is ready."""
        answer = self.ask(user, options, server)
        assert answer.status_code in {201, 202}, answer.text
        return self.wait_ready(user, server)

    def stop_server(self, user: str, server: str = "", **more: Any) -> None:
        """Stop a server, and wait until the Hub says so.

        A Hub that just started looks first at all that ran before it, and answers 500
        to whoever stops a server under its eyes.
        """
        wait_until(
            lambda: (self.server(user, server) or {}).get("pending") != "check",
            f"the Hub has looked at {user}/{server}",
        )
        answer = self.api("DELETE", server_path(user, server), user=user, **more)
        assert answer.status_code in {202, 204}, answer.text
        wait_until(
            lambda: self.server(user, server) is None, f"{user}/{server} stopped"
        )

    def server(self, user: str, server: str = "") -> dict[str, Any] | None:
        """Return the Hub's model of an active server, or None."""
        answer = self.api("GET", f"users/{user}")
        answer.raise_for_status()
        model: dict[str, Any] | None = answer.json()["servers"].get(server)
        return model

    def wait_ready(
        self, user: str, server: str = "", *, patience: float = PATIENCE
    ) -> dict[str, Any]:
        """Wait until a server is ready for the Hub."""

        def ready() -> dict[str, Any] | None:
            model = self.server(user, server)
            return model if model and model["ready"] else None

        return wait_until(ready, f"{user}/{server} is ready", patience=patience)

    def progress(self, user: str, server: str = "") -> list[dict[str, Any]]:
        """Return all events of a start's progress stream, read to its end."""
        path = f"{server_path(user, server)}/progress"
        return events(f"{self.url}/hub/api/{path}", self.token_of(user))

    # ---------------------------------------------------------------- the controller

    def controller(
        self, method: str, path: str, *, raw: bool = False, **more: Any
    ) -> Any:
        """Call the controller's internal API as the Spawner does."""
        secret = (self.data / "controller" / "spawner.secret").read_text().strip()
        answer = requests.request(
            method,
            f"{self.service}internal/{path}",
            headers={"Authorization": f"Bearer {secret}"},
            timeout=PATIENCE,
            **more,
        )
        if raw:
            return answer
        answer.raise_for_status()
        return answer.json() if answer.text else None

    def key(self, user: str, server: str = "") -> str:
        """Return the controller's key of a server, from the Hub's database.

        Raises:
            LookupError: the Hub has not written it yet.
        """
        return key_in(self.data / "hub" / "jupyterhub.sqlite", user, server)

    def status(self, user: str, server: str = "") -> dict[str, Any]:
        """Return what the controller knows about a server."""
        status: dict[str, Any] = self.controller(
            "GET", f"servers/{self.key(user, server)}"
        )
        return status

    def wait_state(
        self, user: str, *states: str, server: str = "", patience: float = PATIENCE
    ) -> dict[str, Any]:
        """Wait until the controller says that a server is in one of *states*."""

        def there() -> dict[str, Any] | None:
            with suppress(requests.ConnectionError, requests.HTTPError, LookupError):
                status = self.status(user, server)
                return status if status["state"] in states else None
            return None

        return wait_until(there, f"{user}/{server} is {states}", patience=patience)

    def timeline(self, user: str, server: str = "") -> dict[str, Any]:
        """Return the timeline's document of a server."""
        document: dict[str, Any] = self.controller(
            "GET", f"servers/{self.key(user, server)}/timeline"
        )
        return document
