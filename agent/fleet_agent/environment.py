"""The environment of a workload, rewritten for the network that this machine sees.

The Hub made the environment for itself.  From here the fleet service and the Hub's
API may have another address; the port of the server is chosen here as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit


_HUB_URLS = ("JUPYTERHUB_API_URL", "JUPYTERHUB_ACTIVITY_URL")


def for_this_machine(
    environment: Mapping[str, str], *, fleet_url: str, hub_api_url: str | None
) -> dict[str, str]:
    """Return *environment* with addresses that are reachable from this machine.

    *fleet_url* is the fleet service as this agent reaches it.  *hub_api_url* is the
    Hub's API as this machine reaches it; None leaves it as the Hub said.
    """
    rewritten = dict(environment)
    rewritten["JUPYTERHUB_FLEET_URL"] = fleet_url
    if hub_api_url is not None:
        for name in _HUB_URLS:
            if name in rewritten:
                rewritten[name] = _with_origin_of(hub_api_url, rewritten[name])
    return rewritten


def with_service_url(environment: Mapping[str, str], url: str) -> dict[str, str]:
    """Return *environment* with the address that the server must listen at."""
    return {**environment, "JUPYTERHUB_SERVICE_URL": url}


def _with_origin_of(origin: str, url: str) -> str:
    wanted = urlsplit(origin)
    return urlunsplit(
        urlsplit(url)._replace(scheme=wanted.scheme, netloc=wanted.netloc)
    )
