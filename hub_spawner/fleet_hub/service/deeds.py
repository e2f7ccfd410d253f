"""What can be done to a machine by people, and who may: one table for all ways.

The pages, the API and the command line carry the same deeds out.  Whoever may not see
a machine is told that there is none; see ``people.seen_machine``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fleet_contracts.catalog import Relation
from fleet_contracts.language import mark, translated
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import enrolling, governing
from fleet_hub.controller.audit_entry import Actor
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import RequestRefusedError


MOST_MEMBERS: Final = 200
MOST_LABELS: Final = 50
LONGEST_NAME: Final = 255
LONGEST_CHOICE: Final = MOST_MEMBERS * (LONGEST_NAME + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a deed."""

    word: str
    """Which sentence of ``SAID`` tells it."""
    code: str | None = None
    """An enrolment code, shown this once."""
    asked: bool = True
    """False: the machine is away, so it could not be asked."""

    @property
    def said(self) -> str:
        """One sentence or two for whoever did it."""
        return translated(SAID[self.word])


SAID: Final = {
    "drain": mark("It takes nothing new. What runs there runs on."),
    "resume": mark("It takes work again."),
    "redetect": mark(
        "Asked to look at itself again. What has changed is shown as soon as it "
        "has answered."
    ),
    "redetect-away": mark(
        "It is away, so it could not be asked. It looks at itself again "
        "when it comes back."
    ),
    "rotate": mark(
        "Its token is void and its link has ended. What runs there runs on."
    ),
    "revoke": mark(
        "Its token is void and its link has ended. What runs there runs on; a new "
        "enrolment lets it come back."
    ),
    "lost": mark("Declared lost: everything that it held was given back."),
    "audience": mark("The admins' word on whom it serves was changed."),
    "members": mark("Its members were changed."),
    "label": mark("Its labels were changed."),
    "lending": mark("The owner's word on whom it serves was changed."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One thing that can be done."""

    run: Callable[[Core, Actor, str, str], Outcome]
    """With the machine's name, and the choice where there is one."""
    needs_admin: bool = False


def _drain(core: Core, actor: Actor, machine: str, choice: str) -> Outcome:
    governing.drain(core, actor, machine)
    return Outcome(word="drain")


def _resume(core: Core, actor: Actor, machine: str, choice: str) -> Outcome:
    governing.resume(core, actor, machine)
    return Outcome(word="resume")


def _redetect(core: Core, actor: Actor, machine: str, choice: str) -> Outcome:
    if governing.look_again(core, actor, machine):
        return Outcome(word="redetect")
    return Outcome(word="redetect-away", asked=False)


def _rotate(core: Core, actor: Actor, machine: str, choice: str) -> Outcome:
    return Outcome(word="rotate", code=enrolling.rotate(core, actor, machine))


def _revoke(core: Core, actor: Actor, machine: str, choice: str) -> Outcome:
    enrolling.revoke(core, actor, machine)
    return Outcome(word="revoke")


def _lost(core: Core, actor: Actor, machine: str, choice: str) -> Outcome:
    governing.declare_lost(core, actor, machine)
    return Outcome(word="lost")


def _audience(core: Core, actor: Actor, machine: str, choice: str) -> Outcome:
    governing.set_audience(core, actor, machine, _relation(choice))
    return Outcome(word="audience")


def _lending(core: Core, actor: Actor, machine: str, choice: str) -> Outcome:
    governing.set_lending(core, actor, machine, _relation(choice))
    return Outcome(word="lending")


def _members(core: Core, actor: Actor, machine: str, choice: str) -> Outcome:
    names = dict.fromkeys(filter(None, (part.strip() for part in choice.split(","))))
    fits = all(
        len(name) <= LONGEST_NAME and name.isprintable() and name != "@"
        for name in names
    )
    if len(names) > MOST_MEMBERS or not fits:
        raise RequestRefusedError(
            Explanation(
                reason=Reason.INVALID_REQUEST,
                subject="members",
                detail=mark("Write user names and @groups, with commas between them."),
            )
        )
    governing.set_members(
        core,
        actor,
        machine,
        users=tuple(name for name in names if not name.startswith("@")),
        groups=tuple(name[1:] for name in names if name.startswith("@")),
    )
    return Outcome(word="members")


def _label(core: Core, actor: Actor, machine: str, choice: str) -> Outcome:
    labels: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in choice.split(","))):
        name, sign, value = (text.strip() for text in part.partition("="))
        fits = part.isprintable() and len(part) <= LONGEST_NAME
        if not (fits and name and sign and value):
            raise _unfit_labels()
        labels[name] = value
    if len(labels) > MOST_LABELS:
        raise _unfit_labels()
    governing.set_labels(core, actor, machine, labels)
    return Outcome(word="label")


def _unfit_labels() -> RequestRefusedError:
    return RequestRefusedError(
        Explanation(
            reason=Reason.INVALID_REQUEST,
            subject="labels",
            detail=mark("Write NAME=VALUE, with commas between them."),
        )
    )


def _relation(choice: str) -> Relation:
    try:
        return Relation(choice)
    except ValueError:
        raise RequestRefusedError(
            Explanation(
                reason=Reason.INVALID_REQUEST,
                subject="relation",
                detail=mark("Choose owner, member or guest."),
            )
        ) from None


DEEDS: Final[Mapping[str, Deed]] = {
    "redetect": Deed(run=_redetect),
    "drain": Deed(run=_drain),
    "resume": Deed(run=_resume),
    "rotate": Deed(run=_rotate),
    "revoke": Deed(run=_revoke),
    "lending": Deed(run=_lending),
    "members": Deed(run=_members),
    "audience": Deed(run=_audience, needs_admin=True),
    "label": Deed(run=_label, needs_admin=True),
    "lost": Deed(run=_lost, needs_admin=True),
}
PATTERN: Final = "|".join(DEEDS)
