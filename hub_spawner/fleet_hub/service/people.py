"""Handlers for people: who they are is the Hub's word, what they may see is ours."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from jupyterhub.services.auth import (
    HubOAuthCallbackHandler,
    HubOAuthenticated,
    UserNotAllowed,
)
from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.language import mark
from fleet_hub.controller.records import MachineRecord, Workload
from fleet_hub.service.base import FleetHandler
from fleet_hub.service.visitors import Visitor, visitor_of


FOR_ADMINS: Final = mark("This is for admins")
ONLY_LOOKS: Final = mark(
    "You may see all of the fleet, and act on what is yours alone. Ask an admin of the "
    "fleet to do this"
)


class PersonHandler(HubOAuthenticated, FleetHandler):
    """Needs a Hub user: by OAuth cookie, or by a Hub token in the header.

    JupyterHub's own ``get_current_user`` blocks the loop; here the Hub is asked
    before the handler runs.
    """

    visitor: Visitor
    wants_page = False
    """A page leads strangers to the login; an API answers 401."""

    @property
    def hub_auth(self) -> Any:
        """The service's OAuth client."""
        return self.context.hub_auth

    @override
    def check_xsrf_cookie(self) -> None:
        """A header that no other site's page can send needs no second proof."""
        if not self.shows_token:
            super().check_xsrf_cookie()

    @property
    def shows_token(self) -> bool:
        """Whether the request says by itself who asks, and no cookie does."""
        return "Authorization" in self.request.headers

    @override
    async def prepare(self) -> None:
        """Find out who asks, or end the request here."""
        model = await self._identify()
        self._hub_auth_user_cache = model
        if model is None:
            if self.wants_page and self.request.method == "GET":
                self.redirect(self.get_login_url())
                return
            raise HTTPError(401, reason=mark("Log in to JupyterHub first"))
        if model.get("kind", "user") != "user":
            raise HTTPError(403, reason=mark("This is for people"))
        self.visitor = visitor_of(model, by_token=self.shows_token)

    async def _identify(self) -> dict[str, Any] | None:
        if self.shows_token:
            # No cookie beside it: a wrong token is nobody.
            token = self.hub_auth.get_token(self, in_cookie=False)
            model = (
                await self.hub_auth.user_for_token(token, sync=False) if token else None
            )
        else:
            model = await self.hub_auth.get_user(self, sync=False)
        if not model:
            return None
        try:
            allowed: dict[str, Any] | None = self.check_hub_user(model)
        except UserNotAllowed as error:
            raise HTTPError(403, reason=mark("You may not use this service")) from error
        return allowed

    def seen(self, workload: str) -> Workload:
        """Return a workload that the visitor may see.

        Raises:
            HTTPError: 404; it does not exist, or it is somebody else's, which a
                stranger cannot tell apart.
        """
        record = self.core.model.workloads.get(workload)
        if record is None or not self.visitor.may_see(record):
            raise HTTPError(
                404, reason=mark("There is no such workload, or it is not yours")
            )
        return record

    def seen_machine(self, machine: str) -> MachineRecord:
        """Return a machine that the visitor may see.

        Raises:
            HTTPError: 404; it does not exist, or it is somebody else's, which a
                stranger cannot tell apart.
        """
        record = self.core.model.machines.get(machine)
        if record is None or not self.visitor.may_see_machine(record):
            raise HTTPError(
                404, reason=mark("There is no such machine, or it is not yours")
            )
        return record

    def acted_on(self, workload: str) -> Workload:
        """Return a workload that the visitor may act on.

        Raises:
            HTTPError: as ``seen``, and 403 where they may only see it.
        """
        record = self.seen(workload)
        if not self.visitor.may_act_on(record):
            raise HTTPError(403, reason=ONLY_LOOKS)
        return record

    def governed(self, machine: str) -> MachineRecord:
        """Return a machine that the visitor may act on.

        Raises:
            HTTPError: as ``seen_machine``, and 403 where they may only see it.
        """
        record = self.seen_machine(machine)
        if not self.visitor.may_govern(record):
            raise HTTPError(403, reason=ONLY_LOOKS)
        return record

    def require_sight(self) -> None:
        """End the request of whoever may not see all of the fleet.

        Raises:
            HTTPError: 403.
        """
        if not self.visitor.sees_all:
            raise HTTPError(403, reason=FOR_ADMINS)

    def require_admin(self) -> None:
        """End the request of anybody but admins.

        Raises:
            HTTPError: 403.
        """
        if not self.visitor.admin:
            reason = ONLY_LOOKS if self.visitor.reader else FOR_ADMINS
            raise HTTPError(403, reason=reason)

    def server_url(self, record: Workload) -> str:
        """Return where the Hub's proxy serves *record*."""
        url = f"{self.context.hub_base}user/{quote(record.principal.name, safe='')}/"
        return (
            f"{url}{quote(record.server_name, safe='')}/" if record.server_name else url
        )


class CallbackHandler(HubOAuthCallbackHandler):
    """The end of a login through the Hub."""

    def initialize(self, *, context: Any) -> None:
        """Use the service's OAuth client."""
        self.hub_auth = context.hub_auth

    @override
    def get_current_user(self) -> None:
        """Look at no earlier login: asking the Hub would block the loop."""
        return
