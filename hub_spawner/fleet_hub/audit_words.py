"""The audit log in words, for its page and for the command line."""

from __future__ import annotations

from typing import Any, Final

from fleet_contracts.catalog import Relation
from fleet_contracts.language import mark, say, translated
from fleet_hub.controller.audit_entry import Action, ActorRole, Numbered, TargetKind
from fleet_hub.controller.enrolling import WITH_A_CODE
from fleet_hub.machine_words import plain


WORDS: Final = {
    Action.CODE_MADE: mark("made an enrolment code"),
    Action.ENROLLED: mark("enrolled it"),
    Action.ROTATED: mark("voided its token for a new one"),
    Action.REVOKED: mark("revoked its token"),
    Action.AUDIENCE_SET: mark("set whom it may serve, as an admin"),
    Action.LENDING_SET: mark("set whom it may serve, as its owner"),
    Action.MEMBERS_SET: mark("set who its members are"),
    Action.LABELS_SET: mark("set its labels"),
    Action.DRAINED: mark("drained it"),
    Action.RESUMED: mark("let it take work again"),
    Action.SET_ASIDE: mark("set it aside, because several starts went wrong there"),
    Action.LOOKED_AGAIN: mark("had it look at itself again"),
    Action.DECLARED_LOST: mark("declared it lost"),
    Action.ADDRESS_APPROVED: mark("had its address tried, with success"),
    Action.ADDRESS_REFUSED: mark("had its address tried, in vain"),
    Action.SECOND_LINK_REFUSED: mark("was refused as a second agent"),
    Action.LEFT_THE_LINE: mark("took it out of the line"),
    Action.MOVED_IN_LINE: mark("gave it another place in the line"),
    Action.FILES_COPIED: mark("had its files copied"),
    Action.RELEASE_ASKED: mark("asked for what it holds"),
}
ROLES: Final = {
    ActorRole.ADMIN: mark("admin"),
    ActorRole.OWNER: mark("its owner"),
    ActorRole.USER: mark("its user"),
    ActorRole.TERMINAL: mark("in a terminal"),
    ActorRole.CONTROLLER: mark("by its own rule"),
    ActorRole.MACHINE: mark("the machine"),
}


RELATIONS: Final = {
    Relation.OWNER: mark("its owner alone"),
    Relation.MEMBER: mark("its owner and its members"),
    Relation.GUEST: mark("everybody"),
}
"""How far a machine serves, in words."""
_RELATION_WORDS: Final = {name.value: text for name, text in RELATIONS.items()}
KINDS: Final = {
    TargetKind.MACHINE: mark("machine"),
    TargetKind.WORKLOAD: mark("workload"),
}


def told(item: Numbered) -> dict[str, Any]:
    """Return an entry as JSON, with its words."""
    entry = item.entry
    return {
        "seq": item.seq,
        "at": entry.at.isoformat(),
        "actor": entry.actor,
        "role": entry.role.value,
        "action": entry.action.value,
        "kind": entry.kind.value,
        "target": entry.target,
        "detail": entry.detail,
        "why": entry.why,
        "words": words(item),
    }


def words(item: Numbered) -> str:
    """Return what was done and the reason that was given, without who and to what."""
    entry = item.entry
    told = plain(entry.detail)
    if entry.action in {Action.CODE_MADE, Action.ENROLLED}:
        maker = told.removeprefix(WITH_A_CODE)
        if maker != told:
            told = say("with a code made by {name}", name=maker)
        else:
            told = say("for {owner}", owner=told.removeprefix("for "))
    elif entry.action in {Action.AUDIENCE_SET, Action.LENDING_SET}:
        told = translated(_RELATION_WORDS.get(entry.detail, told))
    detail = f" ({told})" if entry.detail else ""
    done = f"{translated(WORDS[entry.action])}{detail}"
    if not entry.why:
        return done
    return say("{done}, saying: {why}", done=done, why=plain(entry.why))


def line(document: dict[str, Any]) -> str:
    """Return an entry, as ``told`` wrote it, as one line for a terminal."""
    at = plain(document["at"])[:19].replace("T", " ")
    role = ROLES[ActorRole(document["role"])]
    return (
        f"{at}  {plain(document['kind'])} {plain(document['target'])}: "
        f"{plain(document['actor'])} ({role}) {plain(document['words'])}"
    )
