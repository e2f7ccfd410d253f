"""The controller's process: every setting, and the one place where parts meet."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog
from jupyterhub.services.auth import HubOAuth
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from traitlets import Bool, Float, Unicode, default
from traitlets.config import Application
from typing_extensions import override

from fleet_contracts.catalog_file import CatalogError
from fleet_hub.adapters.clock import RandomIds, SystemClock
from fleet_hub.adapters.hub_rest import HubRest
from fleet_hub.adapters.link_registry import LinkRegistry
from fleet_hub.adapters.sqlite_store import SqliteStore
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import StoreError
from fleet_hub.controller.settings import Settings
from fleet_hub.errors import ConfigurationError
from fleet_hub.places import (
    CATALOG_VARIABLE,
    CONTROLLER_PORT_VARIABLE,
    DEFAULT_CONTROLLER_PORT,
    SERVICE_NAME,
    Places,
    default_data_dir,
    secret_of,
    write_private,
)
from fleet_hub.service import supervisor
from fleet_hub.service.catalogs import DefaultCatalog, FileCatalog
from fleet_hub.service.context import Context
from fleet_hub.service.logs import configure_logs
from fleet_hub.service.runner import Runner
from fleet_hub.service.tokens import ViewTokens
from fleet_hub.service.web import make_application


log = structlog.get_logger()

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_IDENTITY_CACHE_SECONDS: Final = 30
_BIND_SECONDS: Final = 3.0
_BIND_POLL_SECONDS: Final = 0.05


class FleetService(Application):
    """Places notebooks on the fleet's machines, and tells why they wait."""

    name = "fleet-controller"
    description = "The controller of JupyterHub Fleet."

    data_dir = Unicode(
        help="The data folder; the controller keeps its store in `controller/` below."
    ).tag(config=True)

    catalog = Unicode(
        help="The catalog file.  Empty: the catalog that comes with the program."
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
        The Hub's API as remote machines reach it.  Empty: as the Hub itself says,
        which is right for machines that share the Hub's network.
        """,
    ).tag(config=True)

    silence_seconds = Float(
        30.0,
        min=1,
        help="""
        How long a machine may be silent before what it runs is shown as unknown.

        Nothing is freed then or later: only its agent or an admin can do that.
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

    lock_seconds = Float(
        10.0,
        min=0,
        help="""
        How long to wait for a controller that is going away to let go of the store.
        """,
    ).tag(config=True)

    names_visible = Bool(
        default_value=True, help="Whether users may read who holds what they wait for."
    ).tag(config=True)

    config_file = Unicode("", help="A file of Python that sets these.").tag(config=True)

    @default("data_dir")
    def _data_dir(self) -> str:
        return str(default_data_dir())

    @default("catalog")
    def _catalog(self) -> str:
        return os.environ.get(CATALOG_VARIABLE, "")

    @default("url")
    def _url(self) -> str:
        port = os.environ.get(CONTROLLER_PORT_VARIABLE, str(DEFAULT_CONTROLLER_PORT))
        return os.environ.get("JUPYTERHUB_SERVICE_URL", f"http://127.0.0.1:{port}")

    @override
    def initialize(self, argv: list[str] | None = None) -> None:
        self.parse_command_line(argv)
        if self.config_file:
            command_line = self.config
            self.load_config_file(self.config_file)
            self.update_config(command_line)

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
            sys.stderr.write(f"fleet controller: {error}\n")
            sys.exit(supervisor.FATAL_EXIT)

    async def _serve(self, places: Places) -> None:
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, ending.set)
        sockets = await self._listen()
        store = SqliteStore.open(
            places.controller / "store.sqlite", wait_seconds=self.lock_seconds
        )
        try:
            context = self._compose(places, store)
            application = make_application(
                context,
                cookie_secret=secret_of(places.controller / "cookie.secret").encode(),
            )
            server = HTTPServer(application, xheaders=False)
            server.add_sockets(sockets)
            context.runner.start()
            write_private(
                places.controller_address, f"{self.url.rstrip('/')}{context.prefix}\n"
            )
            log.info("controller listens", url=self.url, prefix=context.prefix)
            await ending.wait()
            server.stop()
            await context.runner.close()
        finally:
            store.close()

    def _compose(self, places: Places, store: SqliteStore) -> Context:
        registry = LinkRegistry()
        api_url = os.environ.get("JUPYTERHUB_API_URL", "http://127.0.0.1:8081/hub/api")
        prefix = os.environ.get(
            "JUPYTERHUB_SERVICE_PREFIX", f"/services/{SERVICE_NAME}/"
        )
        catalogs = FileCatalog(Path(self.catalog)) if self.catalog else DefaultCatalog()
        core = Core(
            store=store,
            links=registry,
            hub=HubRest(api_url, os.environ.get("JUPYTERHUB_API_TOKEN", "")),
            clock=SystemClock(),
            ids=RandomIds(),
            catalogs=catalogs,
            settings=Settings(
                service_url=self.url.rstrip("/") + prefix,
                hub_api_url=self.hub_api_url_for_machines or None,
                silence_seconds=self.silence_seconds,
                claim_seconds=self.claim_seconds,
                names_visible=self.names_visible,
            ),
        )
        return Context(
            core=core,
            runner=Runner(core, refresh_catalog=catalogs.refresh),
            registry=registry,
            hub_auth=HubOAuth(
                base_url=prefix, api_url=api_url, cache_max_age=_IDENTITY_CACHE_SECONDS
            ),
            spawner_secret=secret_of(places.spawner_secret),
            view_tokens=ViewTokens(
                secret_of(places.controller / "view.secret").encode()
            ),
            prefix=prefix,
            hub_base=os.environ.get("JUPYTERHUB_BASE_URL", "/"),
        )

    async def _listen(self) -> list[socket.socket]:
        """Return the listening sockets.

        Raises:
            ConfigurationError: the address is taken, or reaches beyond this machine.
        """
        parts = urlsplit(self.url)
        host, port = parts.hostname or "127.0.0.1", parts.port or 80
        if host not in _LOOPBACK and not self.allow_remote:
            raise ConfigurationError(
                f"{self.url} can be reached from other machines. Use 127.0.0.1, or set "
                "FleetService.allow_remote if TLS or a trusted network is in front."
            )
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _BIND_SECONDS
        while True:
            try:
                return bind_sockets(port, address=host)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                if loop.time() < deadline:
                    # A controller that was killed a moment ago may not be gone yet.
                    await asyncio.sleep(_BIND_POLL_SECONDS)
                    continue
                raise ConfigurationError(
                    f"port {port} on {host} is in use. Is another JupyterHub Fleet "
                    "running? Stop it, or choose another port with "
                    f"{CONTROLLER_PORT_VARIABLE}."
                ) from error


def raise_open_files_limit() -> None:
    """Allow a socket for each agent and each waiting reader, as far as we may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    """Run the controller's process."""
    FleetService.launch_instance()


if __name__ == "__main__":
    main()
