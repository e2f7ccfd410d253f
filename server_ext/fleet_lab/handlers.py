"""The server's own timeline over HTTP: ``GET <base>/fleet/api/timeline``."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web
from typing_extensions import override

from fleet_lab.answers import Answer, Standing
from fleet_lab.document import MAX_COUNT
from fleet_lab.reader import TimelineReader


class TimelineHandler(APIHandler):
    """Tells what this server waited for, where it runs and until when.

    Query: ``after`` (the last event's number that is known) and ``wait`` (how many
    seconds to wait for news).  With ``If-None-Match`` the wait ends at any difference,
    and an unchanged answer is 304.
    """

    auth_resource = "fleet"
    # Being looked at must not keep a server alive.
    _track_activity = False

    @override
    def initialize(self, reader: TimelineReader | None) -> None:
        """Answer from *reader*; None: no Hub with admission control started us."""
        self._reader = reader
        self._etag: str | None = None

    @override
    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer 200 with the document of ``answers.py``, 304, 400, or 403.

        Whoever the server was shared with may use it, but its timeline names what its
        owner holds and waits for: that is for the owner, and for the Hub's admins.
        """
        if not self._is_for_visitor():
            raise web.HTTPError(403, "this timeline is its owner's")
        after = int(self._bounded("after", int))
        wait_seconds = self._bounded("wait", float)
        answer = Answer(standing=Standing.NO_HUB)
        if self._reader is not None:
            answer = await self._reader.answer(
                after=after,
                wait_seconds=wait_seconds,
                known_etag=self.request.headers.get("If-None-Match"),
            )
        self._etag = answer.etag()
        self.set_header("Cache-Control", "no-cache")
        self.finish(answer.body(after=after))

    @override
    def compute_etag(self) -> str | None:
        """Return the tag of what is told, which the body's age does not change."""
        return self._etag

    def _is_for_visitor(self) -> bool:
        # Without a Hub there is one person, who knows the server's token.
        visitor = getattr(self.current_user, "hub_user", None)
        if visitor is None or self._reader is None:
            return True
        is_owner = visitor.get("name") == self._reader.address.user
        return bool(is_owner or visitor.get("admin"))

    def _bounded(self, name: str, kind: type[int | float]) -> float:
        try:
            value = kind(self.get_query_argument(name, "0"))
        except ValueError:
            value = -1
        if not 0 <= value <= MAX_COUNT:
            raise web.HTTPError(400, f"{name} must be a number, 0 or more")
        return value
