"""Who may use a native notebook server: its owner, and nobody else.

A native workload runs with weak isolation: whoever reaches the server acts as the
owner, on the owner's machine.  The Hub may hold others to be entitled, because a
server was shared with them or because they are admins; this identity provider does
not.  It is loaded in a single-user server only, as
``--ServerApp.identity_provider_class=fleet_lab.identity.OwnerIdentityProvider``.
"""

from __future__ import annotations

import os

from jupyter_server.auth import User
from jupyter_server.base.handlers import JupyterHandler
from jupyterhub.singleuser.extension import JupyterHubIdentityProvider
from tornado.web import HTTPError
from traitlets import Unicode, default
from typing_extensions import override


REFUSAL = (
    "This notebook server runs directly on its owner's machine, so it accepts "
    "nobody but its owner, shared access and Hub admins included."
)


class OwnerIdentityProvider(JupyterHubIdentityProvider):
    """Accepts the Hub user for whom the server was started, and no other identity.

    Cookies, tokens and WebSockets all come through ``get_user``, before any handler
    runs; a service that merely bears the owner's name is not the owner.
    """

    owner = Unicode(help="The Hub name of the only user that is accepted.")

    @default("owner")
    def _owner_from_environment(self) -> str:
        return os.environ.get("JUPYTERHUB_USER", "")

    @override
    async def get_user(self, handler: JupyterHandler) -> User | None:
        """Return the owner, or None for a visitor who has not logged in.

        Raises:
            HTTPError: 403, the visitor is known and is not the owner.
        """
        user: User | None = await super().get_user(handler)
        if user is None or self._is_owner(user):
            return user
        self.log.warning("refused somebody who is not the owner")
        # What renders the 403 asks who the current user is: nobody, from here on.
        # The first is where the base class caches, the others jupyter_server's own.
        for name in ("_jupyterhub_user", "_jupyter_current_user", "current_user"):
            setattr(handler, name, None)
        raise HTTPError(403, REFUSAL)

    def _is_owner(self, user: User) -> bool:
        known = getattr(user, "hub_user", {})
        return (
            bool(self.owner)
            and known.get("kind") == "user"
            and known.get("name") == self.owner
        )
