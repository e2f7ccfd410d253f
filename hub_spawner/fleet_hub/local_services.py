"""The ports of a local run, and what is asked of its services."""

from __future__ import annotations

import json
import random
import re
import socket
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

import psutil

from fleet_contracts.base import MACHINE_NAME_PATTERN
from fleet_hub.errors import ConfigurationError
from fleet_hub.places import SERVICE_NAME, Places, secret_of


ANSWER_SECONDS: Final = 5.0
_INNER: Final = range(20_000, 32_000)
"""Below the ports that systems give to outgoing connections, which may come at any time:
a part that starts slowly, or is started again, still finds its own free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where each part of the run listens, all of them on this machine's loopback."""

    public: int
    hub: int
    proxy: int
    controller: int

    @property
    def public_url(self) -> str:
        """What people open."""
        return f"http://127.0.0.1:{self.public}"

    @property
    def service_url(self) -> str:
        """The controller's service, directly."""
        return f"http://127.0.0.1:{self.controller}/services/{SERVICE_NAME}/"

    @property
    def hub_health(self) -> str:
        """Answers once the Hub does, through its proxy."""
        return f"{self.public_url}/hub/health"

    @property
    def controller_health(self) -> str:
        """Answers once the controller does."""
        return f"{self.service_url}health"


def choose_ports(public: int) -> Ports:
    """Return the ports to use: *public*, and whichever are free for the inner ones.

    Not the usual inner ports: two runs that begin together would both find them free.

    Raises:
        ConfigurationError: the public port is taken; it is not swapped silently.
    """
    if not is_free(public):
        raise ConfigurationError(
            f"port {public} is taken{_by_whom(public)}. End that program, or choose "
            "another port: jupyter-fleet run --port 8010 (make run PORT=8010)"
        )
    hub, proxy, controller = _free_ports(3)
    return Ports(public=public, hub=hub, proxy=proxy, controller=controller)


def is_free(port: int) -> bool:
    """Whether something could listen on *port* of the loopback now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_ports(count: int) -> list[int]:
    """Return so many different ports that nobody uses.

    Raises:
        ConfigurationError: there are not as many.
    """
    # At random: two runs that begin together hardly choose the same ones.
    free = filter(is_free, random.sample(_INNER, len(_INNER)))
    found = list(islice(free, count))
    if len(found) < count:
        raise ConfigurationError(
            f"no ports are free between {_INNER[0]} and {_INNER[-1]} on this machine. "
            "End some of the programs that listen there"
        )
    return found


def _by_whom(port: int) -> str:
    """Return who listens on *port*, where the system tells us."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN
            there = connection.laddr and connection.laddr.port == port
            if listens and there and connection.pid:
                name = psutil.Process(connection.pid).name()
                return f" by {name} (process {connection.pid})"
    return ""


def machine_name() -> str:
    """Return this machine's name, as a machine of a fleet may be called."""
    name = re.sub(r"[^a-z0-9]+", "-", socket.gethostname().split(".")[0].lower())
    name = name.strip("-")[:63].strip("-")
    return name if re.fullmatch(MACHINE_NAME_PATTERN, name) else "this-machine"


def answers(url: str) -> bool:
    """Whether *url* answers well."""
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:  # noqa: S310 - our own loopback
            return bool(answer.status == 200)  # noqa: PLR2004 - HTTP's "OK"
    except (OSError, urllib.error.URLError):
        return False


def enrol(
    places: Places, ports: Ports, *, name: str, owner: str, provider: str | None = None
) -> str:
    """Have the controller record a machine that runs here; return its new token.

    Raises:
        ConfigurationError: the controller refused.
    """
    body = {"name": name, "owner": owner, "local": True}
    if provider is not None:
        body["provider"] = provider
    request = urllib.request.Request(  # noqa: S310 - our own loopback
        f"{ports.service_url}internal/machines",
        data=json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {secret_of(places.spawner_secret)}",
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:  # noqa: S310 - our own loopback
            return str(json.load(answer)["token"])
    except urllib.error.URLError as error:
        raise ConfigurationError(
            f"the controller did not enrol {name}: {error.reason}"
        ) from error
