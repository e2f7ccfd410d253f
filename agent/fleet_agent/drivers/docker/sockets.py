"""Where is this machine's container engine?  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from fleet_agent.addresses import is_loopback


DEFAULT_HOST = "unix:///var/run/docker.sock"


def engine_host(configured: str, environment: Mapping[str, str]) -> str:
    """Return where the engine answers: as configured, as DOCKER_HOST says, or as usual.

    Raises:
        ValueError: it is another machine's, or no address that Docker knows.
    """
    host = configured or environment.get("DOCKER_HOST") or DEFAULT_HOST
    parts = urlsplit(host)
    if parts.scheme == "unix" and parts.path.startswith("/"):
        return host
    if parts.scheme in {"tcp", "http", "https"} and is_loopback(parts.hostname or ""):
        return host
    if parts.scheme in {"tcp", "http", "https", "ssh"}:
        raise ValueError(
            f"the container engine at {host} is another machine's: notebooks' folders "
            "are on this one, so run an agent there instead"
        )
    raise ValueError(
        f"{host} is no address of a container engine: it begins with unix:/// or tcp://"
    )
