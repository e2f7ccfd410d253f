"""One line of the audit log: who did what to what, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ActorRole(StrEnum):
    """As what somebody acted."""

    ADMIN = "admin"
    OWNER = "owner"
    """Of the machine that it was done to."""
    USER = "user"
    TERMINAL = "terminal"
    """On the Hub's own machine, with the secret in its data folder."""
    CONTROLLER = "controller"
    """By a rule of its own."""
    MACHINE = "machine"
    """Its agent, with the machine's token or its enrolment code."""


class Action(StrEnum):
    """What can be done.  Stable: they are kept for as long as the log is."""

    CODE_MADE = "code_made"
    ENROLLED = "enrolled"
    ROTATED = "rotated"
    REVOKED = "revoked"
    AUDIENCE_SET = "audience_set"
    LENDING_SET = "lending_set"
    MEMBERS_SET = "members_set"
    LABELS_SET = "labels_set"
    DRAINED = "drained"
    RESUMED = "resumed"
    SET_ASIDE = "set_aside"
    LOOKED_AGAIN = "looked_again"
    DECLARED_LOST = "declared_lost"
    ADDRESS_APPROVED = "address_approved"
    ADDRESS_REFUSED = "address_refused"
    SECOND_LINK_REFUSED = "second_link_refused"
    LEFT_THE_LINE = "left_the_line"
    MOVED_IN_LINE = "moved_in_line"
    FILES_COPIED = "files_copied"
    RELEASE_ASKED = "release_asked"


class TargetKind(StrEnum):
    """What an action was done to."""

    MACHINE = "machine"
    WORKLOAD = "workload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, and as what."""

    name: str
    role: ActorRole
    why: str = ""
    """In their own words, for the audit log; empty: they gave no reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One action that was carried out."""

    at: datetime
    actor: str
    role: ActorRole
    action: Action
    kind: TargetKind
    target: str
    detail: str = ""
    why: str = ""
    """The reason that was given, in the actor's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """An entry with its number in the log, which only ever grows."""

    seq: int
    entry: AuditEntry
