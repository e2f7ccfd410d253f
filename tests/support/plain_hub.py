"""A JupyterHub of its own with its own proxy, in a temporary folder.

For tests of what a notebook server or a Hub does, without the fleet around it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import requests
from patience import free_port


REPOSITORY = Path(__file__).parents[2]


def proxy_command() -> str | None:
    """Return where configurable-http-proxy is, or None."""
    local = REPOSITORY / "node_modules/.bin/configurable-http-proxy"
    return str(local) if local.exists() else shutil.which("configurable-http-proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainHub:
    """A running Hub; *url* is the proxy's address, *token* an admin service's."""

    url: str
    token: str
    folder: Path

    def api(
        self, method: str, path: str, *, token: str | None = None, **more: Any
    ) -> requests.Response:
        """Call the Hub's REST API, by default as the admin service."""
        return requests.request(
            method,
            f"{self.url}/hub/api/{path}",
            headers={"Authorization": f"token {token or self.token}"},
            timeout=60,
            **more,
        )

    def start_server(self, user: str) -> None:
        """Start *user*'s default server and return when the Hub says that it is ready.

        Raises:
            RuntimeError: it did not become ready.
        """
        answer = self.api("POST", f"users/{user}/server")
        answer.raise_for_status()
        if answer.status_code == requests.codes.created:
            return
        with self.api("GET", f"users/{user}/server/progress", stream=True) as progress:
            told = [line for line in progress.iter_lines() if line]
        if b'"ready": true' not in told[-1]:
            raise RuntimeError(told[-1].decode())

    def token_of(self, user: str) -> str:
        """Return a new token with all that *user* may do."""
        answer = self.api("POST", f"users/{user}/tokens", json={})
        answer.raise_for_status()
        return str(answer.json()["token"])

    def browser(self, user: str) -> requests.Session:
        """Return a session in which *user* has logged in with the form."""
        session = requests.Session()
        session.get(f"{self.url}/hub/login", timeout=60)
        session.post(
            f"{self.url}/hub/login?next=/hub/home",
            data={
                "username": user,
                "password": "any",
                "_xsrf": session.cookies.get("_xsrf", path="/hub/"),
            },
            timeout=60,
        ).raise_for_status()
        return session


_CONFIG = """
c = get_config()
c.JupyterHub.bind_url = {url!r}
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.ConfigurableHTTPProxy.pid_file = "proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {{"boss"}}
c.JupyterHub.spawner_class = "simple"
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.SimpleLocalProcessSpawner.home_dir_template = {home!r} + "/{{username}}"
c.JupyterHub.services = [{{"name": "tests", "api_token": {token!r}, "admin": True}}]
c.JupyterHub.init_spawners_timeout = 1
"""


@contextmanager
def plain_hub(folder: Path, config: str) -> Iterator[PlainHub]:
    """Run a Hub with *config* added to the above, until the block ends.

    Raises:
        RuntimeError: it ended before it served; its log is in the message.
    """
    proxy = proxy_command()
    if proxy is None:
        raise RuntimeError("configurable-http-proxy is missing: run npm ci")
    url, token = f"http://127.0.0.1:{free_port()}", os.urandom(16).hex()
    (folder / "jupyterhub_config.py").write_text(
        _CONFIG.format(
            url=url,
            hub_port=free_port(),
            proxy_port=free_port(),
            proxy=proxy,
            python=sys.executable,
            home=str(folder / "home"),
            token=token,
        )
        + config
    )
    with (
        (folder / "hub.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", "jupyterhub_config.py"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                log.write(line)
                log.flush()
                if b"JupyterHub is now running" in line:
                    break
            else:
                raise RuntimeError((folder / "hub.log").read_text())
            # Somebody has to read on, or the Hub would block on a full pipe.
            Thread(
                target=shutil.copyfileobj, args=(process.stdout, log), daemon=True
            ).start()
            yield PlainHub(url=url, token=token, folder=folder)
        finally:
            process.terminate()
            process.wait(60)
