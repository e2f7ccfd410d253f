"""Which API tokens of a server the Hub still honours.

JupyterHub deletes a server's token on stop only if it still remembers it, and after
a restart it remembers none.  The note that it writes into each token says whose it is.
"""

from __future__ import annotations

from typing import Any

from jupyterhub import orm
from jupyterhub.utils import url_escape_path, url_path_join


def server_base_url(user: Any, server_name: str) -> str:
    """Return the URL path of a server, made as ``User.spawn`` makes it."""
    path: str = url_path_join(user.base_url, url_escape_path(server_name), "/")
    return path


def revoke_server_tokens(
    user: Any, server_name: str, *, keep: str | None = None
) -> int:
    """Delete the tokens issued to a server of *user*; return how many there were.

    *keep* is the one token that stays valid, if any.
    """
    database = user.db
    kept = orm.APIToken.find(database, keep) if keep else None
    note = f"Server at {server_base_url(user, server_name)}"
    stale = [
        token
        for token in database.query(orm.APIToken).filter_by(
            user_id=user.orm_user.id, note=note
        )
        if token is not kept
    ]
    for token in stale:
        database.delete(token)
    if stale:
        database.commit()
    return len(stale)
