"""What tests ask about the servers of one user of a fleet."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import Any

import requests
from fleet import Fleet
from fleet_parts import PATIENCE, server_path, wait_until


def begin(
    running: Fleet, options: dict[str, Any], server: str = "", *, user: str = "ada"
) -> None:
    """Ask for a server, and return when the Hub has heard of it; its answer is to come."""
    token = running.token_of(user)

    def ask() -> None:
        # The Hub may end before it answers.
        with suppress(requests.RequestException):
            requests.post(
                f"{running.url}/hub/api/{server_path(user, server)}",
                headers={"Authorization": f"token {token}"},
                json={"user_options": options},
                timeout=PATIENCE,
            )

    asking = Thread(target=ask, daemon=True)
    asking.start()
    wait_until(
        lambda: running.server(user, server) is not None or not asking.is_alive(),
        f"the Hub is asked for {user}/{server}",
    )


def kinds(running: Fleet, server: str = "", *, user: str = "ada") -> list[str]:
    """Return the kinds of the timeline's entries."""
    return [event["kind"] for event in running.timeline(user, server)["events"]]


def is_served(running: Fleet, server: str = "", *, user: str = "ada") -> bool:
    """Whether the proxy leads to the server that runs."""
    path = f"user/{user}/{server}/api" if server else f"user/{user}/api"
    return requests.get(f"{running.url}/{path}", timeout=PATIENCE).status_code == 200


def holders(
    running: Fleet, servers: Sequence[str] = ("", "first", "second")
) -> list[str]:
    """Return which of ada's *servers* hold something of a machine now."""
    return [name for name in servers if running.status("ada", name)["holds"]]
