"""``configure(c)``: everything that JupyterHub needs to know about the fleet.

Called from ``jupyterhub_config.py``.  What it sets may be changed after the call, and
each setting says why it is what it is.  It checks what it can, and raises one
``ConfigurationError`` that says what to do.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from fleet_hub.errors import ConfigurationError
from fleet_hub.hub_database import use_write_ahead_log
from fleet_hub.pages import template_paths
from fleet_hub.places import (
    CATALOG_VARIABLE,
    CONTROLLER_PORT_VARIABLE,
    DATA_DIR_VARIABLE,
    DEFAULT_CONTROLLER_PORT,
    SERVICE_NAME,
    Places,
    default_data_dir,
    read_secret,
    secret_of,
)


ROLE: Final = "fleet-controller"
SCOPES: Final = ("start:servers", "proxy")
"""All that the controller may do at the Hub: start a server whose turn has come, and
have the routes checked.  No tokens, no admin."""
ACCESS: Final = f"access:services!service={SERVICE_NAME}"
MAX_PORT: Final = 65535


def configure(
    c: Any,
    *,
    data_dir: str | Path | None = None,
    controller_port: int | None = None,
    catalog: str | Path | None = None,
    external_controller: str | None = None,
    service_token_file: str | Path | None = None,
) -> Places:
    """Set up JupyterHub's configuration *c* for the fleet; return where things are.

    Args:
        c: JupyterHub's configuration object, from ``get_config()``.
        data_dir: The data folder.  Default: ``/var/lib/jupyterhub-fleet`` for root and
            ``~/.local/share/jupyterhub-fleet`` for others.
            ``$JUPYTERHUB_FLEET_DATA_DIR`` outranks both.
        controller_port: The port, on this machine alone, where the controller listens.
            Default: 8098.  ``$JUPYTERHUB_FLEET_CONTROLLER_PORT`` outranks both.
        catalog: The catalog file.  Default: the built-in catalog.
        external_controller: The origin of a controller that something else starts
            (systemd, a pod), such as ``http://10.0.0.5:8098``.  Default: the Hub starts
            and supervises one.
        service_token_file: For an external controller, the file with the Hub API token
            that it uses.

    Raises:
        ConfigurationError: something must be changed first; the message says what.
    """
    named = os.environ.get(DATA_DIR_VARIABLE) or data_dir
    places = Places(root=Path(named or default_data_dir()).absolute())
    places.make()
    _check_catalog(catalog)
    port = _port(controller_port)
    secret = secret_of(places.spawner_secret)
    _hub(c, places)
    _spawner(c, external_controller or f"http://127.0.0.1:{port}", secret)
    _access(c)
    if external_controller is None:
        service = _managed_service(places, port, catalog)
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
    hub.cookie_secret_file = str(places.cookie_secret)
    hub.template_paths = [*template_paths(), *_listed(hub, "template_paths")]
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
        "oauth_no_confirm": True,
        "display": True,
    }


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
        "oauth_no_confirm": True,
        "display": True,
    }


def _check_catalog(catalog: str | Path | None) -> None:
    if catalog is not None and not Path(catalog).is_file():
        raise ConfigurationError(f"there is no catalog file {catalog}")


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


def find_proxy() -> list[str] | None:
    """Return the command of configurable-http-proxy, from PATH or a checkout."""
    found = shutil.which("configurable-http-proxy")
    if found is None:
        folders = [Path.cwd(), *Path(__file__).resolve().parents]
        for folder in folders:
            script = folder / "node_modules" / ".bin" / "configurable-http-proxy"
            if script.exists():
                return [str(script)]
        return None
    return [found]


def _listed(section: Any, name: str) -> list[Any]:
    """Return what the configuration already lists under *name*."""
    return list(section.get(name) or ()) if name in section else []


def _add(section: Any, name: str, items: list[Any]) -> None:
    setattr(section, name, [*_listed(section, name), *items])
