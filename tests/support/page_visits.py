"""Who visits the fleet's pages in tests, and fills in their forms."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from fleet_service import Service
from service_browser import Browser
from small_hub import SmallHub


def add_people(hub: SmallHub) -> None:
    """Add alice, bob and an admin."""
    hub.add_user("alice")
    hub.add_user("bob")
    hub.add_user("root", admin=True)


class Visit(Browser):
    """A browser that fills in forms."""

    async def submit(
        self, page: str, action: str, *, proof: str | None = None, **values: str
    ) -> tuple[int, str]:
        """Submit the form of *page* that leads to *action*; return what follows."""
        _, text = await self.visit(page)
        if proof is None:
            found = re.search(r'name="_xsrf" value="([^"]+)"', text)
            assert found is not None, f"no form on {page}"
            assert f'action="/services/fleet/{action}"' in text, action
            proof = found.group(1)
        body = urlencode(values | {"_xsrf": proof})
        code, location, text = await self.fetch(self.service.url + action, body=body)
        if code == 303:
            return await self.visit(location.removeprefix("/services/fleet/"))
        return code, text


async def entries(service: Service) -> list[tuple[str, str, str]]:
    """Return who did what to what, oldest first."""
    log = await service.json("internal/audit")
    return [
        (entry["actor"], entry["action"], entry["target"])
        for entry in reversed(log["entries"])
    ]
