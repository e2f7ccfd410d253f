"""Whether anybody has opened a server, as far as the Hub can know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from jupyterhub import orm


SETTLING: Final = timedelta(seconds=60)
"""So long after it became ready a server's activity is still that of its own start: its
first report, and the route that the proxy counts from the moment it is added.
"""


def was_opened(
    orm_spawner: orm.Spawner, oauth_client_id: str, *, ready_since: datetime
) -> bool:
    """Whether somebody has used the server since it became ready.

    A browser's first visit leaves a token of the server's OAuth client, at once.  A
    program with a token of its own leaves only activity, which the server and the
    proxy report every few minutes.  A proxy that was restarted counts anew, which
    reads as use: the error is on the side of keeping the server.
    """
    database: Any = orm.object_session(orm_spawner)
    visits = database.query(orm.APIToken).filter_by(client_id=oauth_client_id)
    if visits.first() is not None:
        return True
    last: datetime | None = orm_spawner.last_activity
    if last is None:
        return False
    # The Hub keeps UTC without saying so.
    return last.replace(tzinfo=UTC) > ready_since + SETTLING
