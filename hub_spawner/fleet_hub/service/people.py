"""Handlers for people: who they are is the Hub's word, what they may see is ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from jupyterhub.services.auth import (
    HubOAuthCallbackHandler,
    HubOAuthenticated,
    UserNotAllowed,
)
from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.language import mark
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.records import MachineRecord, Workload
from fleet_hub.service.base import FleetHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody the Hub knows."""

    name: str
    admin: bool = False
    groups: tuple[str, ...] = ()

    def may_see(self, record: Workload) -> bool:
        """Whether *record* is theirs, or they are an admin."""
        return self.admin or (bool(self.name) and record.principal.name == self.name)

    def may_see_machine(self, record: MachineRecord) -> bool:
        """Whether *record* is their machine, or they are an admin."""
        return self.admin or (bool(self.name) and record.owner == self.name)


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
        if "Authorization" not in self.request.headers:
            super().check_xsrf_cookie()

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
        self.visitor = Visitor(
            name=model["name"],
            admin=bool(model.get("admin")),
            groups=tuple(map(str, model.get("groups") or ())),
        )

    async def _identify(self) -> dict[str, Any] | None:
        if "Authorization" in self.request.headers:
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

    def actor(self, record: MachineRecord | None = None, why: str = "") -> Actor:
        """Return the visitor as the audit log knows them, of this machine if any.

        *why* is the reason that they gave.
        """
        name = self.visitor.name
        if record is not None and record.owner == name and not self.visitor.admin:
            return Actor(name=name, role=ActorRole.OWNER, why=why)
        role = ActorRole.ADMIN if self.visitor.admin else ActorRole.USER
        return Actor(name=name, role=role, why=why)

    def actor_of(self, record: Workload, why: str = "") -> Actor:
        """Return the visitor as the audit log knows them, of this workload."""
        own = record.principal.name == self.visitor.name
        role = ActorRole.USER if own else ActorRole.ADMIN
        return Actor(name=self.visitor.name, role=role, why=why)

    def require_admin(self) -> None:
        """End the request of anybody else.

        Raises:
            HTTPError: 403.
        """
        if not self.visitor.admin:
            raise HTTPError(403, reason=mark("This is for admins"))

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
