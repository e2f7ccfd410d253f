"""What an admin sets for FleetSpawner, and who and where it acts for."""

from __future__ import annotations

from typing import Any

from jupyterhub.utils import url_escape_path, url_path_join
from traitlets import Float, HasTraits, Unicode, default

from fleet_contracts.workloads import Principal, ServerKey
from fleet_hub.controller_client import ControllerClient
from fleet_hub.service_urls import internal_url, public_url


class FleetSettings(HasTraits):
    """The settings of FleetSpawner; mixed into it, because they fill a page."""

    hub: Any
    user: Any
    orm_spawner: Any
    name: str
    _client: ControllerClient | None = None

    controller_url = Unicode(
        "http://127.0.0.1:8098",
        help="""
        Where the Hub reaches the controller.

        An origin is completed with the service's path under the Hub's base URL.
        Directly, not through the proxy, so that a proxy restart ends no start.
        """,
    ).tag(config=True)

    service_url = Unicode(
        "",
        help="""
        Where browsers reach the controller's pages, ending with a slash.

        Empty: the service's path under the Hub's base URL.  Needed with
        `JupyterHub.subdomain_host`, where services have a host of their own.
        """,
    ).tag(config=True)

    spawner_secret = Unicode(
        "",
        help="""
        The secret that the controller expects from this Hub; `configure()` sets it.
        """,
    ).tag(config=True)

    queue_hold = Float(
        60.0,
        min=0,
        help="""
        How many seconds a start waits in line before it is parked.

        A parked start keeps its place: its page leads to the workload's own page, and
        the server starts when its turn comes.  Longer holds keep a browser tab's
        progress page alive for longer, and a Hub restart ends them all.
        """,
    ).tag(config=True)

    controller_patience = Float(
        60.0,
        min=0,
        help="""
        How many seconds the controller may be away before a start says so.

        A restart of the controller takes well under a second.
        """,
    ).tag(config=True)

    stop_wait = Float(
        45.0,
        min=0,
        help="""
        How many seconds a stop waits for the machine's word that it is over.

        Afterwards the controller sees to it alone, and the server counts as stopped
        for the Hub.  Longer than the 10 seconds that a notebook gets to end by itself.
        """,
    ).tag(config=True)

    @default("start_timeout")
    def _start_timeout(self) -> int:
        # Above every limit of the controller and the agents (30 min to prepare): the
        # Hub's own timeout ends in an empty message.  A profile that may take longer
        # makes it longer for its own starts.
        return 3600

    @default("env_keep")
    def _env_keep(self) -> list[str]:
        # The Hub's PATH and PYTHONPATH mean nothing on another machine.
        return []

    @property
    def key(self) -> ServerKey:
        """The controller's key of this server."""
        return ServerKey(user_id=self.user.orm_user.id, server_id=self.orm_spawner.id)

    @property
    def principal(self) -> Principal:
        """The server's owner; never whoever sent the request."""
        return Principal(
            user_id=self.user.orm_user.id,
            name=self.user.name,
            groups=tuple(sorted(group.name for group in self.user.groups)),
            admin=bool(self.user.admin),
        )

    @property
    def controller(self) -> ControllerClient:
        """The wire to the controller."""
        if self._client is None:
            url = internal_url(self.controller_url, self.hub.base_url)
            self._client = ControllerClient(url=url, secret=self.spawner_secret)
        return self._client

    def workload_page(self, workload: str | None) -> str:
        """Return the URL of the controller's page about *workload*."""
        base = self.service_url or public_url(self.hub.base_url)
        return f"{base}workloads/{workload}" if workload else base

    @property
    def why_page(self) -> str:
        """The URL of the controller's page on what each machine says to a profile."""
        return f"{self.workload_page(None)}why"

    @property
    def fleet_stop_url(self) -> str:
        """The REST URL that stops this server, whoever looks at its page."""
        server = f"servers/{url_escape_path(self.name)}" if self.name else "server"
        url: str = url_path_join(
            self.hub.base_url, "api/users", self.user.escaped_name, server
        )
        return url

    @property
    def fleet_gone_url(self) -> str:
        """The Hub's page about this server once it is not running.

        Not the pending page: for a named server that is stopped JupyterHub has none.
        """
        path = url_path_join("user", self.user.escaped_name, url_escape_path(self.name))
        url: str = url_path_join(self.hub.base_url, path, "/")
        return url
