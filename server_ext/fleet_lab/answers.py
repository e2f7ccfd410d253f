"""What a panel is told: the timeline, or in one word and one sentence why not.

An answer never raises and is never empty: each standing has its words.  The words are
an English fallback; a panel translates the codes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


SCHEMA = "jupyterhub-fleet/notebook-timeline/v1"


class Standing(StrEnum):
    """How much a panel may trust what it is shown."""

    LIVE = "live"
    """The controller answered just now."""
    NO_HUB = "no_hub"
    """This server was not started by a Hub with admission control."""
    NO_PERMISSION = "no_permission"
    """The timeline token is missing, was revoked, or is another server's."""
    AWAY = "away"
    """The controller does not answer; the last known timeline stays."""
    EXPIRED = "expired"
    """The older steps are no longer kept; what is known is shown."""


class Cause(StrEnum):
    """What exactly is wrong, where the standing alone does not say what to do."""

    TOKEN_MISSING = "token_missing"  # noqa: S105 - a code, not a secret
    TOKEN_REVOKED = "token_revoked"  # noqa: S105 - a code, not a secret
    OTHER_SERVER = "other_server"
    UNREACHABLE = "unreachable"
    NOT_UNDERSTOOD = "not_understood"
    FORGOTTEN = "forgotten"


WORDS: dict[tuple[Standing, Cause | None], str] = {
    (Standing.LIVE, None): "",
    (Standing.NO_HUB, None): (
        "This server was not started by a JupyterHub with admission control."
    ),
    (Standing.NO_PERMISSION, Cause.TOKEN_MISSING): (
        "This server was started without a timeline token; restart it to see its "
        "admission timeline."
    ),
    (Standing.NO_PERMISSION, Cause.TOKEN_REVOKED): (
        "This server's timeline token is no longer valid; restart the server to see "
        "its admission timeline."
    ),
    (Standing.NO_PERMISSION, Cause.OTHER_SERVER): (
        "The timeline token belongs to another server; restart this one to see its "
        "own admission timeline."
    ),
    (Standing.AWAY, Cause.UNREACHABLE): "The fleet's controller does not answer.",
    (Standing.AWAY, Cause.NOT_UNDERSTOOD): (
        "The fleet's controller answered something that is not understood here."
    ),
    (Standing.EXPIRED, None): "Older steps are no longer kept.",
    (Standing.EXPIRED, Cause.FORGOTTEN): (
        "The controller no longer keeps this server's timeline."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer to one panel."""

    standing: Standing
    cause: Cause | None = None
    heard_at: str | None = None
    """When the controller last answered, in its own time."""
    heard_seconds_ago: float | None = None
    timeline: dict[str, Any] | None = None

    @property
    def message(self) -> str:
        """What the standing means, as an English sentence; empty: all is well."""
        return WORDS[self.standing, self.cause]

    def body(self, *, after: int = 0) -> dict[str, Any]:
        """Return the JSON document, with the events after number *after* only."""
        timeline = self.timeline
        if timeline is not None and after:
            events = [event for event in timeline["events"] if event["seq"] > after]
            timeline = {**timeline, "events": events}
        return {
            "schema": SCHEMA,
            "standing": self.standing.value,
            "cause": None if self.cause is None else self.cause.value,
            "message": self.message,
            "heard_at": self.heard_at,
            "heard_seconds_ago": self.heard_seconds_ago,
            "timeline": timeline,
        }

    def etag(self) -> str:
        """Return a tag of the whole answer; time passing alone does not change it.

        A panel that asks again with this tag gets 304.  That matters beyond traffic:
        the Hub's proxy counts each 200 as activity of the server, so a panel that
        was told the same again and again would keep an idle server alive.
        """
        told = self.body()
        del told["heard_at"], told["heard_seconds_ago"]
        if told["timeline"] is not None:
            told["timeline"] = {**told["timeline"], "as_of": None}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
