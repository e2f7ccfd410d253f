"""Logging in with single-use codes: for a JupyterHub on one's own machine.

Whoever may run programs here can open the login page, so a login without a secret
would hand the owner's rights to every local user.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyterhub.auth import Authenticator
from traitlets import Unicode
from typing_extensions import override

from fleet_hub.errors import ConfigurationError
from fleet_hub.local_plan import local_owner
from fleet_hub.login_codes import LoginCodes
from fleet_hub.places import Places


class LoginCodeAuthenticator(Authenticator):
    """Lets a user in who brings the code that was made for that name."""

    codes_file = Unicode(
        help="The file of codes, which `jupyter-fleet login-code` writes."
    ).tag(config=True)

    uses_login_codes = True
    """Tells the login page what to ask for."""

    @override
    async def authenticate(self, handler: Any, data: dict[str, str]) -> str | None:
        if not self.codes_file:
            raise ConfigurationError("LoginCodeAuthenticator.codes_file is not set")
        name = self.normalize_username(data["username"])
        # spent under the name that the Hub will know the user by
        codes = LoginCodes(Path(self.codes_file))
        return name if codes.spend(name, data.get("password", "")) else None


def login_with_codes(c: Any, places: Places) -> None:
    """Have JupyterHub's configuration *c* ask for codes, and make the owner an admin.

    Anybody for whom a code was made may log in.
    """
    c.JupyterHub.authenticator_class = LoginCodeAuthenticator
    c.LoginCodeAuthenticator.codes_file = str(places.login_codes)
    c.LoginCodeAuthenticator.allow_all = True
    c.LoginCodeAuthenticator.admin_users = {local_owner()}
