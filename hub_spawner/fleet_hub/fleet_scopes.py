"""The Hub's scopes for the fleet: who sees all of it, and who administers it.

Nobody holds one until a role of the Hub gives it.  The Hub's own admins need none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final


READ: Final = "custom:fleet:read"
ADMIN: Final = "custom:fleet:admin"
DEFINITIONS: Final[dict[str, dict[str, Any]]] = {
    READ: {
        "description": "See all of the fleet: machines, line, decisions, use, audit log."
    },
    ADMIN: {
        "description": "Administer the fleet: machines, the line, and what is on them.",
        "subscopes": [READ],
    },
}
"""As JupyterHub's ``custom_scopes`` wants them."""
_OF_HUB_ADMINS: Final = "admin:users"
"""Every token that may do all that a Hub admin may has this."""


def reads(scopes: Collection[str]) -> bool:
    """Return whether *scopes*, as the Hub told them, let somebody see all of it.

    One with a filter, such as ``custom:fleet:read!user=ada``, is about less than the
    fleet, and lets nobody see anything.
    """
    return READ in scopes or administers(scopes)


def administers(scopes: Collection[str]) -> bool:
    """Return whether *scopes*, as the Hub told them, let somebody administer it."""
    return ADMIN in scopes


def only_reads(scopes: Collection[str]) -> bool:
    """Return whether a token with *scopes* was made to look and not to act.

    Then it does no more in the hands of a Hub admin either.
    """
    return READ in scopes and not ({ADMIN, _OF_HUB_ADMINS} & {*scopes})
