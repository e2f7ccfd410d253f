"""Where the controller's service is, for the Hub and for browsers."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from jupyterhub.utils import url_path_join

from fleet_hub.places import SERVICE_NAME


def public_url(hub_base_url: str) -> str:
    """Return the service's path next to the Hub's, which is ``…/hub/``."""
    base = hub_base_url.removesuffix("hub/")
    path: str = url_path_join(base, "services", SERVICE_NAME) + "/"
    return path


def internal_url(controller_url: str, hub_base_url: str) -> str:
    """Return *controller_url* with the service's path, where it has none."""
    parts = urlsplit(controller_url)
    if parts.path in {"", "/"}:
        parts = parts._replace(path=public_url(hub_base_url))
    elif not parts.path.endswith("/"):
        parts = parts._replace(path=parts.path + "/")
    return urlunsplit(parts)
