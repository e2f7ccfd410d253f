"""The environment of a workload, rewritten for the network that this machine sees.

The Hub made the environment for itself.  From here the fleet service and the Hub's
API may have another address; the port of the server is chosen here as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from fleet_agent.addresses import is_loopback


_HUB_URLS = ("JUPYTERHUB_API_URL", "JUPYTERHUB_ACTIVITY_URL")


def for_this_machine(
    environment: Mapping[str, str], *, fleet_url: str, hub_api_url: str | None
) -> dict[str, str]:
    """Return *environment* with addresses that are reachable from this machine.

    *fleet_url* is the fleet service as this agent reaches it.  *hub_api_url* is the
    Hub's API as this machine reaches it; None leaves it as the Hub said, unless that
    is the Hub's own loopback and the Hub is another machine.  Then it is where the
    agent found the fleet service: the Hub's proxy leads to both.
    """
    rewritten = dict(environment)
    rewritten["JUPYTERHUB_FLEET_URL"] = fleet_url
    for name in _HUB_URLS:
        if name in rewritten:
            origin = hub_api_url or _elsewhere(fleet_url, rewritten[name])
            rewritten[name] = _with_origin_of(origin, rewritten[name])
    return rewritten


def _elsewhere(fleet_url: str, told: str) -> str:
    """Return where the Hub answers that said *told* of itself."""
    on_the_hub, here = (
        is_loopback(urlsplit(url).hostname or "") for url in (told, fleet_url)
    )
    return fleet_url if on_the_hub and not here else told


def with_service_url(environment: Mapping[str, str], url: str) -> dict[str, str]:
    """Return *environment* with the address that the server must listen at."""
    return {**environment, "JUPYTERHUB_SERVICE_URL": url}


def _with_origin_of(origin: str, url: str) -> str:
    wanted = urlsplit(origin)
    return urlunsplit(
        urlsplit(url)._replace(scheme=wanted.scheme, netloc=wanted.netloc)
    )
