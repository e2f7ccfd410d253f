"""Turns this process into the notebook server of one user."""

from __future__ import annotations

import os
import socket
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from fleet_agent.drivers.native.inside import overlay, trimming


_MODULES = (
    "fleet_lab.identity",
    "jupyter_lsp",
    "jupyter_server.serverapp",
    "jupyter_server_terminals.app",
    "jupyterhub.singleuser.extension",
    "jupyterlab.labapp",
    "notebook.app",
)
"""What the server imports while it starts: by name, because the agent has no Lab."""

_SETTINGS = (
    "--ServerApp.identity_provider_class=fleet_lab.identity.OwnerIdentityProvider",
    "--ServerApp.port_retries=0",
    # The environment is read-only: installing extensions could only fail.
    "--LabApp.extension_manager=readonly",
    "--LabApp.news_url=None",
)


def import_everything() -> None:
    """Import what the server needs, which is most of the time that a start takes."""
    with trimming.trimmed():
        # Both ask node at each start, Lab even while it is imported.  Yarn's settings
        # serve to build Lab, npm's prefix to find language servers: neither is done.
        lab: Any = import_module("jupyterlab.commands")
        lab._yarn_config = lambda logger: {"yarn config": {}, "npm config": {}}  # noqa: SLF001 - there is no public way
        languages: Any = import_module("jupyter_lsp.types").LanguageServerManagerAPI
        languages._npm_prefix = lambda manager, npm: ""  # noqa: SLF001 - as above
        for name in _MODULES:
            import_module(name)


def become(
    environment: dict[str, str], arguments: list[str], listener: socket.socket
) -> None:
    """Run the notebook server on *listener* until it ends."""
    os.environ.update(environment)
    own = overlay.make(Path(os.environ["HOME"]), Path(sys.prefix))
    os.environ["PATH"] = f"{own}/bin:{os.environ['PATH']}"
    os.environ["JUPYTER_PATH"] = f"{own}/share/jupyter"
    os.environ["VIRTUAL_ENV"] = str(own)
    _serve_on(listener)
    sys.argv = ["jupyterhub-singleuser", *_SETTINGS, *arguments]
    extension = import_module("jupyterhub.singleuser.extension")
    extension.main(sys.argv[1:])


def _serve_on(listener: socket.socket) -> None:
    """Make the server use a socket that listens already, instead of choosing a port.

    A port that is only chosen can be taken by another process before it is bound, and
    the Hub would send the user's credentials there.
    """

    def keep_port(app: Any) -> None:
        app.port = listener.getsockname()[1]

    def add_listener(app: Any) -> bool:
        listener.setblocking(False)  # noqa: FBT003 - positional only
        app.http_server.add_sockets([listener])
        return True

    application: Any = import_module("jupyter_server.serverapp").ServerApp
    application._find_http_port = keep_port  # noqa: SLF001 - there is no public way
    application._bind_http_server_tcp = add_listener  # noqa: SLF001 - as above
