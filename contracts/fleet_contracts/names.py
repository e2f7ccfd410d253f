"""What is left of an explanation where other people's names are nobody's business."""

from __future__ import annotations

from typing import Final

from fleet_contracts.reasons import Explanation, Holder, Reason


_ABOUT_A_PERSON: Final = frozenset({Reason.OWNER_FORBIDS, Reason.RELEASE_WISHED})
"""Their subject is somebody's name: a machine's owner, and who asks for something."""


def without_names(explanation: Explanation) -> Explanation:
    """Return *explanation* without anybody's name but the reader's own.

    Amounts and times stay: the explanation says as much as one that was made where
    names are hidden.
    """
    changes: dict[str, object] = {}
    if any(_is_named(holder) for holder in explanation.holders):
        changes["holders"] = tuple(map(_unnamed, explanation.holders))
    if explanation.reason in _ABOUT_A_PERSON and explanation.subject is not None:
        changes["subject"] = None
    return explanation.model_copy(update=changes) if changes else explanation


def _is_named(holder: Holder) -> bool:
    return not holder.own and (holder.owner is not None or holder.title is not None)


def _unnamed(holder: Holder) -> Holder:
    if not _is_named(holder):
        return holder
    return holder.model_copy(update={"owner": None, "title": None})
