"""The controller's process: every setting, and the one place where parts meet."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from functools import partial
from math import ceil
from pathlib import Path
from typing import Final, Never
from urllib.parse import urlsplit

import structlog
from jupyterhub.services.auth import HubOAuth
from tornado.httpserver import HTTPServer
from traitlets import Bool, Float, List, TraitError, Unicode, default
from traitlets.config import Application
from typing_extensions import override

from fleet_contracts.catalog_file import CatalogError
from fleet_hub.adapters.clock import RandomIds, SystemClock
from fleet_hub.adapters.hub_rest import HubRest
from fleet_hub.adapters.link_registry import LinkRegistry
from fleet_hub.adapters.network import HostNetwork
from fleet_hub.adapters.sqlite_store import SqliteStore
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import StoreError
from fleet_hub.controller.settings import Settings, heartbeat_within
from fleet_hub.errors import ConfigurationError
from fleet_hub.places import (
    CATALOG_VARIABLE,
    CONTROLLER_PORT_VARIABLE,
    DEFAULT_CONTROLLER_PORT,
    OPEN_METRICS_VARIABLE,
    SERVICE_NAME,
    TRUSTED_NETWORKS_VARIABLE,
    USERS_MAY_ENROL_VARIABLE,
    Places,
    default_data_dir,
    secret_of,
    write_private,
)
from fleet_hub.service import supervisor
from fleet_hub.service.catalogs import (
    CatalogSource,
    DefaultCatalog,
    FileCatalog,
    refresh,
)
from fleet_hub.service.context import Context
from fleet_hub.service.kept_catalog import CatalogKeeper
from fleet_hub.service.listening import listen, raise_open_files_limit
from fleet_hub.service.logs import configure_logs
from fleet_hub.service.metrics import Metrics
from fleet_hub.service.runner import Runner
from fleet_hub.service.tokens import ViewTokens
from fleet_hub.service.web import make_application
from fleet_hub.service.written import bytes_of, networks_of
from fleet_hub.service_settings import settings_told


log = structlog.get_logger()

_RESOLVE_AGAIN_SECONDS: Final = 60.0
MAX_BODY_BYTES: Final = 1024 * 1024
"""Of one request; nobody has more to say."""


class FleetService(Application):
    """Places notebooks on the fleet's machines, and tells why they wait."""

    name = "fleet-controller"
    description = "The controller of JupyterHub Fleet."

    data_dir = Unicode(
        help="The data folder; the controller keeps its store in `controller/` below."
    ).tag(config=True)

    catalog = Unicode(
        help="The catalog file, or a folder of them.  Empty: the one that comes with us."
    ).tag(config=True)

    url = Unicode(
        help="""
        Where to listen, as an origin.

        Default: what the Hub expects of its service, else this machine's loopback.
        """
    ).tag(config=True)

    allow_remote = Bool(
        default_value=False,
        help="""
        Listen beyond this machine's loopback.

        The Spawner's secret and machines' tokens then travel the network: put TLS in
        front, or use a network that you trust.
        """,
    ).tag(config=True)

    hub_api_url_for_machines = Unicode(
        "",
        help="""
        The Hub's API as remote machines reach it.  Empty: as the Hub itself says, or
        through its proxy where it names its own loopback.
        """,
    ).tag(config=True)

    silence_seconds = Float(
        30.0,
        min=1,
        help="""
        How long a machine may be silent before what it runs is shown as unknown.

        Nothing is freed then or later: only its agent or an admin can do that.  Agents
        speak every 10 seconds, and three times within so long a silence at least.
        """,
    ).tag(config=True)

    claim_seconds = Float(
        120.0,
        min=1,
        help="""
        How long a place is held for a start that the Hub was asked for.

        Longer than a Hub needs to begin a start, so that a busy Hub loses nobody
        their turn.
        """,
    ).tag(config=True)

    open_seconds = Float(
        900.0,
        min=0,
        help="""
        How long a server that came up for somebody absent waits to be opened.

        Then its machine is given back, and the timeline says so.  Long enough to come
        back from a break, and longer than the 5 minutes in which the Hub learns of
        programs that use a server without a browser.  0 lets it wait for ever.
        """,
    ).tag(config=True)

    lock_seconds = Float(
        10.0,
        min=0,
        help="""
        How long to wait for a controller that is going away to let go of the store.
        """,
    ).tag(config=True)

    names_visible = Bool(
        default_value=True,
        help="""
        Whether users may read who holds what they wait for, in what was told before as
        well.
        """,
    ).tag(config=True)

    copy_limit = Unicode(
        "50G",
        help="""
        The most files that a start may begin with a copy of, where a new choice cannot
        run beside them, such as 50G.  They travel through this service.  0 copies none.
        """,
    ).tag(config=True)

    public_url = Unicode(
        help="""
        Where people reach the fleet service, such as
        https://hub.example.org/services/fleet/.  It is shown in the command that
        enrols a machine.  Default: the Hub's public URL, else what the browser says.
        """
    ).tag(config=True)

    trusted_networks = List(
        Unicode(),
        help="""
        Networks, such as 10.20.0.0/16, where nobody listens between the Hub and its
        machines: notebooks of machines there are reached without TLS.

        Machines of other networks get no work.
        """,
    ).tag(config=True)

    hub_addresses = List(
        Unicode(),
        help="""
        Further names or addresses of the Hub and its proxy.  No machine may claim
        one: notebook traffic must not be led there.
        """,
    ).tag(config=True)

    identity_seconds = Float(
        30.0,
        min=1,
        help="""
        How long the Hub's word on who somebody is, and on what they may do, is
        believed: so long a role that was taken away, or a revoked token, still works.
        """,
    ).tag(config=True)

    users_may_enrol = Bool(
        help="""
        Whether everybody may enrol a machine of their own, not only admins.

        A machine serves content on the Hub's origin unless the Hub gives each user a
        subdomain.
        """
    ).tag(config=True)

    authenticate_metrics = Bool(
        help="""
        Whether metrics need the scope `read:metrics`, as the Hub's own do.

        Default: as the Hub's `authenticate_prometheus` says.
        """
    ).tag(config=True)

    config_file = Unicode("", help="A file of Python that sets these.").tag(config=True)

    @default("data_dir")
    def _data_dir(self) -> str:
        return str(default_data_dir())

    @default("catalog")
    def _catalog(self) -> str:
        return os.environ.get(CATALOG_VARIABLE, "")

    @default("public_url")
    def _public_url(self) -> str:
        return os.environ.get("JUPYTERHUB_PUBLIC_URL", "")

    @default("trusted_networks")
    def _trusted_networks(self) -> list[str]:
        named = os.environ.get(TRUSTED_NETWORKS_VARIABLE, "")
        return [part.strip() for part in named.split(",") if part.strip()]

    @default("users_may_enrol")
    def _users_may_enrol(self) -> bool:
        return os.environ.get(USERS_MAY_ENROL_VARIABLE) == "1"

    @default("authenticate_metrics")
    def _authenticate_metrics(self) -> bool:
        return os.environ.get(OPEN_METRICS_VARIABLE) != "1"

    @default("url")
    def _url(self) -> str:
        port = os.environ.get(CONTROLLER_PORT_VARIABLE, str(DEFAULT_CONTROLLER_PORT))
        return os.environ.get("JUPYTERHUB_SERVICE_URL", f"http://127.0.0.1:{port}")

    @override
    def initialize(self, argv: list[str] | None = None) -> None:
        try:
            self.parse_command_line(argv)
            command_line = self.config
            self.update_config(settings_told())
            if self.config_file:
                self.load_config_file(self.config_file)
            self.update_config(command_line)
        except TraitError as error:
            end_for_good(f"a wrong setting: {error}")

    @override
    def start(self) -> None:
        """Run until asked to end; exits with status 3 where a restart cannot help."""
        configure_logs()
        os.umask(0o077)
        raise_open_files_limit()
        try:
            places = Places(root=Path(self.data_dir).absolute())
            places.make()
            asyncio.run(self._serve(places))
        except (StoreError, ConfigurationError, CatalogError) as error:
            end_for_good(str(error))

    async def _serve(self, places: Places) -> None:
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, ending.set)
        sockets = await listen(self.url, beyond_loopback=self.allow_remote)
        store = SqliteStore.open(
            places.controller / "store.sqlite", wait_seconds=self.lock_seconds
        )
        try:
            context = self._compose(places, store)
            application = make_application(
                context,
                cookie_secret=secret_of(places.controller / "cookie.secret").encode(),
            )
            server = HTTPServer(
                application, xheaders=False, max_body_size=MAX_BODY_BYTES
            )
            server.add_sockets(sockets)
            # Unsearched: that takes longer than all of the start. See ``garbage``.
            gc.freeze()
            context.runner.start()
            write_private(
                places.controller_address, f"{self.url.rstrip('/')}{context.prefix}\n"
            )
            log.info("controller listens", url=self.url, prefix=context.prefix)
            refreshing = asyncio.create_task(_keep_fresh(context.network))
            await ending.wait()
            refreshing.cancel()
            await asyncio.gather(refreshing, return_exceptions=True)
            server.stop()
            await context.runner.close()
        finally:
            store.close()

    def _catalogs(self, places: Places) -> CatalogSource:
        if not self.catalog:
            return DefaultCatalog()
        keeper = CatalogKeeper(file=places.controller / "catalog.json")
        catalogs = FileCatalog(Path(self.catalog), keeper=keeper)
        catalogs.settle()
        return catalogs

    def _compose(self, places: Places, store: SqliteStore) -> Context:
        registry = LinkRegistry()
        api_url = os.environ.get("JUPYTERHUB_API_URL", "http://127.0.0.1:8081/hub/api")
        prefix = os.environ.get(
            "JUPYTERHUB_SERVICE_PREFIX", f"/services/{SERVICE_NAME}/"
        )
        network = HostNetwork(self._hub_hosts(api_url))
        catalogs = self._catalogs(places)
        core = Core(
            store=store,
            links=registry,
            hub=HubRest(api_url, os.environ.get("JUPYTERHUB_API_TOKEN", "")),
            clock=SystemClock(),
            ids=RandomIds(),
            catalogs=catalogs,
            network=network,
            settings=Settings(
                service_url=self.url.rstrip("/") + prefix,
                hub_api_url=self.hub_api_url_for_machines or None,
                heartbeat_seconds=heartbeat_within(self.silence_seconds),
                silence_seconds=self.silence_seconds,
                claim_seconds=self.claim_seconds,
                open_seconds=self.open_seconds,
                copy_limit_bytes=bytes_of(self.copy_limit),
                names_visible=self.names_visible,
                trusted_networks=networks_of(self.trusted_networks),
            ),
        )
        return Context(
            core=core,
            catalogs=catalogs,
            runner=Runner(core, refresh_catalog=partial(refresh, catalogs)),
            registry=registry,
            network=network,
            public_url=self.public_url,
            users_may_enrol=self.users_may_enrol,
            hub_auth=HubOAuth(
                base_url=prefix,
                api_url=api_url,
                # Whole seconds, and never 0, by which it would mean for ever.
                cache_max_age=ceil(self.identity_seconds),
            ),
            spawner_secret=secret_of(places.spawner_secret),
            view_tokens=ViewTokens(
                secret_of(places.controller / "view.secret").encode()
            ),
            prefix=prefix,
            hub_base=os.environ.get("JUPYTERHUB_BASE_URL", "/"),
            metrics=Metrics(core),
            metrics_are_open=not self.authenticate_metrics,
        )

    def _hub_hosts(self, api_url: str) -> list[str]:
        """Return the names under which the Hub and its proxy are known to us."""
        urls = [
            api_url,
            self.hub_api_url_for_machines,
            self.public_url,
            os.environ.get("JUPYTERHUB_PUBLIC_HUB_URL", ""),
        ]
        named = [urlsplit(url).hostname or "" for url in urls]
        return [*named, *self.hub_addresses]


def end_for_good(message: str) -> Never:
    """End with *message* where a restart of this process cannot help."""
    sys.stderr.write(f"fleet controller: {message}\n")
    sys.exit(supervisor.FATAL_EXIT)


async def _keep_fresh(network: HostNetwork) -> None:
    """Resolve the Hub's names now and then: addresses change."""
    while True:
        await network.refresh()
        await asyncio.sleep(_RESOLVE_AGAIN_SECONDS)


def main() -> None:
    """Run the controller's process."""
    FleetService.launch_instance()


if __name__ == "__main__":
    main()
