"""``configure(c)``: everything that JupyterHub needs to know about the fleet.

Called from ``jupyterhub_config.py``.  What it sets may be changed after the call, and
each setting says why it is what it is.  It checks what it can, and raises one
``ConfigurationError`` that says what to do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

from fleet_hub import fleet_scopes
from fleet_hub.errors import ConfigurationError
from fleet_hub.hub_database import use_write_ahead_log
from fleet_hub.pages import template_paths
from fleet_hub.pages.words import TEMPLATE_VARIABLES
from fleet_hub.places import (
    CATALOG_VARIABLE,
    CONTROLLER_PORT_VARIABLE,
    DATA_DIR_VARIABLE,
    DEFAULT_CONTROLLER_PORT,
    OPEN_METRICS_VARIABLE,
    SERVICE_NAME,
    TRUSTED_NETWORKS_VARIABLE,
    USERS_MAY_ENROL_VARIABLE,
    Places,
    default_data_dir,
    read_secret,
    secret_of,
)
from fleet_hub.proxy_program import find_proxy
from fleet_hub.quick_end import end_quickly
from fleet_hub.service_settings import SETTINGS_VARIABLE, settings_in, tell_settings


ROLE: Final = "fleet-controller"
SCOPES: Final = ("start:servers", "proxy")
"""All that the controller may do at the Hub: start a server whose turn has come, and
have the routes checked.  No tokens, no admin."""
ACCESS: Final = f"access:services!service={SERVICE_NAME}"
MAX_PORT: Final = 65535
_SHOWN: Final = {
    "oauth_no_confirm": True,
    # A log-in takes along which of these the person holds, and gives none.
    "oauth_client_allowed_scopes": [*fleet_scopes.DEFINITIONS],
    "display": True,
}
"""How people come to the service."""
_OF_CONFIGURE: Final = {"data_dir": "data_dir", "url": "controller_port"}


def configure(
    c: Any,
    *,
    data_dir: str | Path | None = None,
    controller_port: int | None = None,
    catalog: str | Path | None = None,
    external_controller: str | None = None,
    service_token_file: str | Path | None = None,
    trusted_networks: Sequence[str] = (),
    users_may_enrol: bool = False,
    machines_share_the_hubs_origin: bool = False,
) -> Places:
    """Set up JupyterHub's configuration *c* for the fleet; return where things are.

    Further settings of the controller are ``c.FleetService.…``, before or after.

    Args:
        c: JupyterHub's configuration object, from ``get_config()``.
        data_dir: The data folder.  Default: ``/var/lib/jupyterhub-fleet`` for root and
            ``~/.local/share/jupyterhub-fleet`` for others.
            ``$JUPYTERHUB_FLEET_DATA_DIR`` outranks both.
        controller_port: The port, on this machine alone, where the controller listens.
            Default: 8098.  ``$JUPYTERHUB_FLEET_CONTROLLER_PORT`` outranks both.
        catalog: The catalog file, or a folder of them.  Default: the built-in catalog.
        external_controller: The origin of a controller that something else starts
            (systemd, a pod), such as ``http://10.0.0.5:8098``.  Default: the Hub starts
            and supervises one.
        service_token_file: For an external controller, the file with the Hub API token
            that it uses.
        trusted_networks: Networks, such as ``10.20.0.0/16``, where nobody listens
            between the Hub and its machines.  Machines of other networks get no work,
            since notebook traffic would travel unprotected.
        users_may_enrol: Let everybody enrol a machine of their own, not only admins.
            Needs ``c.JupyterHub.subdomain_host``, set before this call: otherwise such
            a machine serves its pages on the Hub's own origin.
        machines_share_the_hubs_origin: Your word that you trust the owners of all
            machines as much as the Hub, so that no subdomains are needed.

    Raises:
        ConfigurationError: something must be changed first; the message says what.
    """
    named = os.environ.get(DATA_DIR_VARIABLE) or data_dir
    places = Places(root=Path(named or default_data_dir()).absolute())
    places.make()
    _check_catalog(catalog)
    _check_networks(trusted_networks)

    def check(settings: dict[str, Any]) -> None:
        _check_placed_right(settings)
        if settings.get("users_may_enrol") and not machines_share_the_hubs_origin:
            _check_origin(c)

    def check_at_start(settings: dict[str, Any]) -> None:
        check(settings)
        _check_scopes(c)

    check({"users_may_enrol": users_may_enrol})
    port = _port(controller_port)
    secret = secret_of(places.spawner_secret)
    _hub(c, places)
    _spawner(c, external_controller or f"http://127.0.0.1:{port}", secret)
    _access(c)
    if external_controller is not None:
        _check_nothing_is_lost(c, trusted_networks, users_may_enrol)
    if external_controller is None:
        service = _managed_service(places, port, catalog)
        service["environment"] |= _enrolment(trusted_networks, users_may_enrol)
        service["environment"][SETTINGS_VARIABLE] = tell_settings(c, check_at_start)
        if c.JupyterHub.get("authenticate_prometheus") is False:
            service["environment"][OPEN_METRICS_VARIABLE] = "1"
    else:
        service = _external_service(external_controller, service_token_file)
    _add(c.JupyterHub, "services", [service])
    return places


def _hub(c: Any, places: Places) -> None:
    hub = c.JupyterHub
    # SQLite makes its files readable by all, but keeps the mode that it finds.
    places.hub_database.touch(mode=0o600)
    hub.db_url = f"sqlite:///{places.hub_database}"
    use_write_ahead_log()
    end_quickly()
    hub.cookie_secret_file = str(places.cookie_secret)
    hub.template_paths = [*template_paths(), *_listed(hub, "template_paths")]
    hub.template_vars = {**dict(hub.get("template_vars") or {}), **TEMPLATE_VARIABLES}
    hub.allow_named_servers = True
    # Starts that wait in line count as pending: any limit would let people who wait
    # for a GPU keep others from starting at all.
    hub.concurrent_spawn_limit = 0
    # The Hub stops its services before its servers, so that a stop would find no
    # controller; and a Hub restart must end nobody's notebook.
    hub.cleanup_servers = False
    # Servers that are still being prepared are waited for in the background.
    hub.init_spawners_timeout = 1
    proxy = find_proxy()
    if proxy is not None and "command" not in c.ConfigurableHTTPProxy:
        c.ConfigurableHTTPProxy.command = proxy
    c.ConfigurableHTTPProxy.pid_file = str(places.hub / "proxy.pid")


def _spawner(c: Any, controller_url: str, secret: str) -> None:
    c.JupyterHub.spawner_class = "fleet_hub.spawner.FleetSpawner"
    c.FleetSpawner.controller_url = controller_url
    c.FleetSpawner.spawner_secret = secret


def _access(c: Any) -> None:
    _add(
        c.JupyterHub,
        "load_roles",
        [
            {
                "name": ROLE,
                "description": "Starts servers whose turn has come, and their routes",
                "services": [SERVICE_NAME],
                "scopes": list(SCOPES),
            }
        ],
    )
    scopes = c.JupyterHub.get("extra_user_scopes")
    c.JupyterHub.extra_user_scopes = {*(scopes or ()), ACCESS}
    # Known to the Hub, and in nobody's role: an admin gives them, or nobody has them.
    defined = dict(c.JupyterHub.get("custom_scopes") or {})
    c.JupyterHub.custom_scopes = {**fleet_scopes.DEFINITIONS, **defined}


def _managed_service(
    places: Places, port: int, catalog: str | Path | None
) -> dict[str, Any]:
    environment = {
        DATA_DIR_VARIABLE: str(places.root),
        CONTROLLER_PORT_VARIABLE: str(port),
    }
    if catalog is not None:
        environment[CATALOG_VARIABLE] = str(Path(catalog).absolute())
    return {
        "name": SERVICE_NAME,
        "url": f"http://127.0.0.1:{port}",
        "command": [sys.executable, "-m", "fleet_hub.service"],
        "environment": environment,
        "cwd": str(places.controller),
        # The Hub ends itself if it is not up by then; a busy machine takes long.
        "timeout": 120,
        **_SHOWN,
    }


def _enrolment(networks: Sequence[str], users_may_enrol: bool) -> dict[str, str]:  # noqa: FBT001 - a setting's own name
    environment = {}
    if networks:
        environment[TRUSTED_NETWORKS_VARIABLE] = ",".join(networks)
    if users_may_enrol:
        environment[USERS_MAY_ENROL_VARIABLE] = "1"
    return environment


def _external_service(url: str, token_file: str | Path | None) -> dict[str, Any]:
    if token_file is None:
        raise ConfigurationError(
            "an external controller needs its Hub API token: pass "
            "service_token_file= with a file that holds it (openssl rand -hex 32)"
        )
    return {
        "name": SERVICE_NAME,
        "url": url,
        "api_token": read_secret(Path(token_file)),
        **_SHOWN,
    }


def _check_catalog(catalog: str | Path | None) -> None:
    if catalog is not None and not Path(catalog).exists():
        raise ConfigurationError(f"there is no catalog file or folder {catalog}")


def _check_networks(networks: Sequence[str]) -> None:
    for network in networks:
        try:
            ip_network(network)
        except ValueError as error:
            raise ConfigurationError(
                f"trusted_networks: {error}. Write it like 10.20.0.0/16."
            ) from error


def _check_placed_right(settings: Iterable[str]) -> None:
    """Refuse a setting of the controller that the Hub has to know as well."""
    for name, argument in _OF_CONFIGURE.items():
        if name in settings:
            raise ConfigurationError(
                f"c.FleetService.{name} is the Hub's business too: pass {argument}= to "
                "configure() instead"
            )


def _check_scopes(c: Any) -> None:
    """Refuse a configuration that has dropped our scopes again: log-ins would fail."""
    if not fleet_scopes.DEFINITIONS.keys() <= c.JupyterHub.custom_scopes.keys():
        raise ConfigurationError(
            "c.JupyterHub.custom_scopes was replaced after configure(): set it before, "
            "or add to it with c.JupyterHub.custom_scopes.update(…)"
        )


def _check_nothing_is_lost(
    c: Any,
    networks: Sequence[str],
    users_may_enrol: bool,  # noqa: FBT001 - a setting's own name
) -> None:
    """Refuse what an external controller would never hear of."""
    names = {*settings_in(c)}
    names |= {"trusted_networks"} if networks else set()
    names |= {"users_may_enrol"} if users_may_enrol else set()
    if names:
        lost = " and ".join(f"c.FleetService.{name}" for name in sorted(names))
        raise ConfigurationError(
            f"an external controller has settings of its own: set {lost} there"
        )


def _check_origin(c: Any) -> None:
    """A machine of somebody else must not speak with the Hub's voice."""
    if not c.JupyterHub.get("subdomain_host"):
        raise ConfigurationError(
            "with users_may_enrol, machines that you do not own serve pages on the "
            "Hub's own origin, where they could act for whoever opens them. Set "
            "c.JupyterHub.subdomain_host before calling configure(), or pass "
            "machines_share_the_hubs_origin=True if you trust their owners that far"
        )


def _port(asked: int | None) -> int:
    named = os.environ.get(CONTROLLER_PORT_VARIABLE)
    try:
        port = int(named) if named else asked or DEFAULT_CONTROLLER_PORT
    except ValueError:
        raise ConfigurationError(
            f"{CONTROLLER_PORT_VARIABLE} is no port: {named!r}"
        ) from None
    if not 0 < port <= MAX_PORT:
        raise ConfigurationError(f"{port} is no port for the controller")
    return port


def _listed(section: Any, name: str) -> list[Any]:
    """Return what the configuration already lists under *name*."""
    return list(section.get(name) or ()) if name in section else []


def _add(section: Any, name: str, items: list[Any]) -> None:
    setattr(section, name, [*_listed(section, name), *items])
