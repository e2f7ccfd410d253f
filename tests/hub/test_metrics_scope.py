"""What a real Hub says of a token that may read metrics: the service goes by it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from jupyterhub.services.auth import HubAuth
from plain_hub import proxy_command
from traitlets.config import Config

from fleet_hub.service.metrics_page import SCOPE


READER, OTHER = "r" * 40, "o" * 40


@pytest.mark.parametrize(("token", "may"), [(READER, True), (OTHER, False)])
async def test_the_hub_names_the_scope_of_a_service_that_may_read_metrics(
    hub_app: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    token: str,
    *,
    may: bool,
) -> None:
    """The role that opens the Hub's own metrics is the one that opens ours."""
    proxy = proxy_command()
    if proxy is None:
        pytest.skip("configurable-http-proxy is not installed (npm ci)")
    monkeypatch.setenv("PATH", f"{Path(proxy).parent}{os.pathsep}{os.environ['PATH']}")
    c = Config()
    c.JupyterHub.cookie_secret_file = str(tmp_path / "cookie_secret")
    c.JupyterHub.services = [
        {"name": "prometheus", "api_token": READER},
        {"name": "other", "api_token": OTHER},
    ]
    c.JupyterHub.load_roles = [
        {"name": "metrics", "scopes": [SCOPE], "services": ["prometheus"]}
    ]
    hub = await hub_app(config=c)
    auth = HubAuth(api_url=f"{hub.hub.url}api", api_token=OTHER)
    model = await auth.user_for_token(token, sync=False)
    assert model is not None
    assert model["kind"] == "service"
    assert (SCOPE in model["scopes"]) is may
