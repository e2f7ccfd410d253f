"""A browser without scripts, for the service's pages."""

from __future__ import annotations

from http.cookies import SimpleCookie

from fleet_service import Service
from tornado.httpclient import AsyncHTTPClient, HTTPRequest


class Browser:
    """A browser of one user: it keeps cookies and follows the Hub's login."""

    def __init__(self, service: Service, who: str) -> None:
        """Log in as *who* whenever the Hub asks."""
        self.service = service
        self.cookies = {"who": f"hub-token-of-{who}"}

    async def fetch(self, url: str, **options: str) -> tuple[int, str, str]:
        """Return status, location and text of one request."""
        header = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        body = options.get("body")
        request = HTTPRequest(
            url,
            method="GET" if body is None else "POST",
            body=body,
            headers={"Cookie": header, "Sec-Fetch-Mode": "navigate"},
            follow_redirects=False,
        )
        response = await AsyncHTTPClient().fetch(request, raise_error=False)
        for line in response.headers.get_list("Set-Cookie"):
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.coded_value
        location = response.headers.get("Location", "")
        return response.code, location, response.body.decode()

    async def visit(self, path: str) -> tuple[int, str]:
        """Return status and text after all redirects."""
        url = self.service.url + path
        for _ in range(6):
            code, location, text = await self.fetch(url)
            if not location:
                return code, text
            if location.startswith("/hub"):
                location = f"http://127.0.0.1:{self.service.hub.port}{location}"
            elif location.startswith("/"):
                location = f"http://127.0.0.1:{self.service.port}{location}"
            url = location
        raise AssertionError("redirected for ever")
