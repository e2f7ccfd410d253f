"""What a browser or a script does at the Hub, without a browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import requests
from bs4 import BeautifulSoup
from jupyterhub.tests.utils import public_host
from jupyterhub.utils import url_path_join
from patience import PATIENCE


@dataclass(kw_only=True)
class Visitor:
    """One user's browser: cookies, and no script."""

    hub: Any
    name: str
    session: requests.Session = field(repr=False)

    @classmethod
    async def log_in(cls, hub: Any, name: str) -> Self:
        """Log *name* in; the test Hub's password is the name."""
        session = requests.Session()
        session.cookies = await hub.login_user(name)
        return cls(hub=hub, name=name, session=session)

    def absolute(self, path: str) -> str:
        """Return *path* as a URL."""
        return path if path.startswith("http") else str(public_host(self.hub)) + path

    def hub_url(self, path: str) -> str:
        """Return a URL below the Hub's own path."""
        return self.absolute(url_path_join(self.hub.hub.base_url, path))

    async def send(self, method: str, url: str, **more: Any) -> Page:
        """Send a request without blocking the Hub, which runs in this process."""
        answer = await asyncio.to_thread(
            self.session.request, method, url, timeout=PATIENCE, **more
        )
        return Page(
            status=answer.status_code,
            url=answer.url,
            # the Hub names no charset in the header, but in the page
            text=answer.content.decode(),
            headers=answer.headers,
        )

    async def get(self, path: str, **more: Any) -> Page:
        """Fetch one of the Hub's pages."""
        return await self.send("GET", self.hub_url(path), **more)

    async def start(self, path: str = "spawn", **fields: str) -> Page:
        """Open the spawn form and submit it; the answer is the page that follows."""
        form = (await self.get(path)).form()
        return await self.send("POST", self.absolute(form["action"]), data=fields)

    async def api(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Call the REST API as this user; return status, JSON and headers."""
        page = await asyncio.to_thread(
            requests.request,
            method,
            self.hub_url(f"api/{path}"),
            data=None if body is None else json.dumps(body),
            headers={"Authorization": f"token {self.token()}"},
            timeout=PATIENCE,
        )
        return page.status_code, page.json() if page.text else None, page.headers

    def token(self) -> str:
        """Return a token with all that this user may do."""
        return str(self.hub.users[self.name].new_api_token())

    async def close(self) -> None:
        """Forget the cookies."""
        self.session.close()


@dataclass(kw_only=True)
class Page:
    """A page that came back."""

    status: int
    url: str
    text: str
    headers: Mapping[str, str]

    @property
    def soup(self) -> BeautifulSoup:
        """The page, parsed."""
        return BeautifulSoup(self.text, "html.parser")

    def form(self) -> Any:
        """Return the page's form."""
        return self.soup.find("form")

    def says(self) -> str:
        """Return all that a person can read in the page, on one line."""
        soup = self.soup
        for hidden in soup(["script", "style", "noscript"]):
            hidden.decompose()
        return " ".join(soup.get_text(" ").split())
