"""Answers from a fleet's state: the same in the controller and from a file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from fleet_contracts.allocations import State
from fleet_contracts.changes import change_sentence
from fleet_contracts.language import said, speaks_of_another
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.sentences import headline, prospect
from fleet_contracts.telling import ends_after
from fleet_contracts.time_limits import NO_LIMITS, TimeLimits
from fleet_contracts.timeline import LikelyStart
from fleet_contracts.timeline_phrases import TEXTS
from fleet_contracts.workloads import Principal
from fleet_hub.explaining.document import (
    Answer,
    Asked,
    Ends,
    Help,
    InLine,
    LineDocument,
    OnMachine,
    OtherWay,
    Question,
    SaidAlike,
)
from fleet_hub.explaining.state import Subject
from fleet_hub.explaining.told import RecentWords, told
from fleet_hub.explaining.view import View
from fleet_hub.explaining.ways import way_out
from fleet_hub.scheduling.alike import Alike
from fleet_hub.scheduling.decisions import Verdict, Wait
from fleet_hub.scheduling.inspection import (
    PAGE,
    Inspection,
    MachineAnswer,
    inspect_request,
    inspect_waiting,
)
from fleet_hub.scheduling.likely import Likely, Outset
from fleet_hub.scheduling.likely_ends import Runs, likely_ends, with_likely_ends
from fleet_hub.scheduling.snapshot import Pin, Waiting
from fleet_hub.scheduling.ways_out import explained, ways_back


_WAITING: Final = frozenset({State.REQUESTED, State.QUEUED})
_ASKED: Final = "\N{WHITE QUESTION MARK ORNAMENT}"
"""No workload is called like this: it sorts after all that are in the line."""
_RECENT: Final = RecentWords()


class UnknownSubjectError(Exception):
    """The question is about nothing that the fleet knows; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What was found out, before it is put into words."""

    as_of: datetime
    asked: Asked
    found: Inspection | None = None
    """None: nothing is decided about it any more."""
    subject: Subject | None = None
    likely: Likely | None = None
    runs: Runs = field(default_factory=Runs)
    """How long earlier holders held on."""
    time_limits: TimeLimits = NO_LIMITS
    instead: tuple[OtherWay, ...] = ()
    no_copy: Explanation | None = None
    profiles: tuple[str, ...] | None = None
    """What there is instead of a profile that there is not."""


def answer(view: View, question: Question) -> Answer:
    """Return why, down to each machine.

    Raises:
        UnknownSubjectError: there is no such workload, or nothing was asked about.
    """
    return written(inquire(view, question))


def inquire(view: View, question: Question) -> Inquiry:
    """Find out what *question* asks: quick, and only as long as the view is true.

    Raises:
        UnknownSubjectError: there is no such workload, or nothing was asked about.
    """
    if question.workload is not None:
        subject = view.subject(question.workload)
        if subject is None:
            raise UnknownSubjectError(f"there is no workload {question.workload}")
        return _about(view, subject, question.page)
    if question.profile is None or question.user is None:
        raise UnknownSubjectError("name a workload, or a profile and a user")
    return _what_if(view, question, question.profile, question.user)


def written(inquiry: Inquiry) -> Answer:
    """Return what was found out, in words.  It may be done beside other work."""
    no_copy = inquiry.no_copy
    ways = {
        "of_another": speaks_of_another(),
        "ways_out": inquiry.instead,
        "no_copy": None if no_copy is None else told(no_copy, inquiry.as_of),
        "profiles": inquiry.profiles,
        "ends": _ends(inquiry),
    }
    if inquiry.found is not None:
        return _answer(inquiry, inquiry.found).model_copy(update=ways)
    subject = inquiry.subject
    if subject is None:
        raise UnknownSubjectError("nothing was asked about")
    explanation = subject.explanation
    ended = Answer(
        as_of=inquiry.as_of,
        asked=inquiry.asked,
        starts_now=False,
        may_be_asked=True,
        headline=subject.headline,
        why=None if explanation is None else told(explanation, inquiry.as_of),
        machine=subject.machine,
    )
    return ended.model_copy(update=ways)


def line(view: View) -> LineDocument:
    """Return everybody who waits, in the order in which turns come."""
    everybody = (_in_line(view, wait) for wait in view.waits())
    return LineDocument(
        as_of=view.as_of, waiting=tuple(one for one in everybody if one is not None)
    )


def _in_line(view: View, wait: Wait) -> InLine | None:
    subject = view.subject(wait.workload)
    if subject is None:
        return None
    return InLine.model_validate(
        {
            "workload": subject.workload,
            "user": subject.principal.name,
            "server": subject.server,
            "profile": subject.profile,
            "class": subject.class_name,
            "asked_at": subject.asked_at,
            "parked": subject.parked,
            "ahead": wait.position,
            "why": told(
                with_likely_ends(wait.explanation, view.runs, now=view.planner.now),
                view.as_of,
            ),
            "no_later_than": _instant(wait.no_later_than),
            "likely": _likely_start(
                _likely(view, subject.outset, wait.workload, wait.no_later_than)
            ),
        }
    )


def _about(view: View, subject: Subject, page: int) -> Inquiry:
    asked = Asked.model_validate(
        {
            "workload": subject.workload,
            "user": subject.principal.name,
            "groups": subject.principal.groups,
            "server": subject.server,
            "profile": subject.profile,
            "profile_version": subject.profile_version,
            "class": subject.class_name,
            "state": subject.state,
            "files_on": subject.files.machine if subject.files else None,
        }
    )
    found = _waits(view, subject, page) if subject.state in _WAITING else None
    bound = None if found is None else found.verdict.no_later_than
    likely = _likely(view, subject.outset, subject.workload, bound)
    inquiry = Inquiry(
        as_of=view.as_of,
        asked=asked,
        found=found,
        subject=subject,
        likely=likely,
        runs=view.runs,
        time_limits=subject.time_limits,
    )
    is_no = subject.state is State.REFUSED or (
        found is not None and _is_hindered(found.verdict)
    )
    return _with_ways(view, inquiry, subject.principal, subject.files, is_no=is_no)


_NOT_SENT: Final = frozenset({Reason.COPY_SOURCE_AWAY, Reason.AGENT_TOO_OLD})
"""Why whoever is to begin with a copy of files waits for them."""


def _is_hindered(verdict: Verdict) -> bool:
    """Return whether files stand in the way, for ever or as long as they are away."""
    why = verdict.explanation
    is_away = why is not None and why.reason in _NOT_SENT
    return is_away or not verdict.choosable


def _with_ways(
    view: View, inquiry: Inquiry, principal: Principal, pin: Pin | None, *, is_no: bool
) -> Inquiry:
    """Return *inquiry* with what may be done instead, where files stand in the way."""
    if pin is None or not is_no:
        return inquiry
    found = ways_back(
        view.planner,
        principal,
        inquiry.asked.profile,
        inquiry.asked.class_name,
        pin=pin,
        copying=view.copying(),
    )
    return replace(
        inquiry,
        instead=tuple(
            OtherWay(
                way=way_out(way),
                told=told(explained(way, view.catalog), view.as_of),
            )
            for way in found.ways
        ),
        no_copy=found.no_copy,
    )


def _likely(
    view: View, outset: Outset | None, workload: str, bound: float | None
) -> Likely | None:
    """Return when a workload of the line likely starts; None: nobody knows."""
    waiter = view.planner.waiters.get(workload)
    if waiter is None or outset is None or bound is None:
        return None
    name = waiter.request.chosen.name
    return view.history.likely(name, outset, now=view.planner.now, bound=bound)


def _waits(view: View, subject: Subject, page: int) -> Inspection | None:
    planner, name = view.planner, subject.workload
    if name in planner.waiters:
        return inspect_waiting(planner, name, page)
    if name in view.starts:
        starts = Verdict(startable=True, choosable=True, machine=view.starts[name])
        return Inspection(verdict=starts)
    # The next look at the line refuses it, for what every machine says of it.
    return inspect_request(
        planner,
        Waiting(
            workload=_ASKED,
            principal=subject.principal,
            profile=subject.profile,
            class_name=subject.class_name,
            asked_at=subject.asked_at.timestamp(),
            pin=subject.pin,
        ),
        page,
    )


def _what_if(view: View, question: Question, profile: str, user: str) -> Inquiry:
    known = view.principal(user)
    principal = known or Principal(user_id=0, name=user)
    if question.groups is not None:
        principal = principal.model_copy(update={"groups": question.groups})
    pin = view.files(user, question.server or "")
    asked = Asked.model_validate(
        {
            "user": user,
            "groups": principal.groups,
            "groups_known": known is not None or question.groups is not None,
            "server": question.server,
            "files_on": pin.machine if pin else None,
            "profile": profile,
            "profile_version": _version(view, profile),
            "class": question.class_name or _first_class(view, profile),
        }
    )
    found = inspect_request(
        view.planner,
        Waiting(
            workload=_ASKED,
            principal=principal,
            profile=profile,
            class_name=question.class_name,
            asked_at=view.planner.now,
            pin=None if question.server is None else pin,
        ),
        question.page,
    )
    now, bound, likely = view.planner.now, found.verdict.no_later_than, None
    if bound is not None and asked.class_name is not None:
        outset = Outset(now, bound)
        likely = view.history.likely(asked.class_name, outset, now=now, bound=bound)
    inquiry = Inquiry(
        as_of=view.as_of,
        asked=asked,
        found=found,
        likely=likely,
        runs=view.runs,
        time_limits=_time_limits(view, asked),
        profiles=_instead_of(view, profile, principal),
    )
    is_no = question.server is None or not found.verdict.choosable
    return _with_ways(view, inquiry, principal, pin, is_no=is_no)


def _time_limits(view: View, asked: Asked) -> TimeLimits:
    """Return under which limits a choice would run."""
    profile = view.catalog.profile_named(asked.profile)
    chosen = view.catalog.class_named(asked.class_name or "")
    if profile is None or chosen is None:
        return NO_LIMITS
    return view.catalog.time_limits(profile, chosen)


def _ends(inquiry: Inquiry) -> Ends | None:
    """Return when it ends by itself; None: it has no limit, or never runs."""
    limits, found = inquiry.time_limits, inquiry.found
    words = ends_after(limits)
    if not words or (found is not None and not found.verdict.choosable):
        return None
    return Ends(time_limits=limits, sentence=said(TEXTS["sentence"], {"what": words}))


def _instead_of(
    view: View, profile: str, principal: Principal
) -> tuple[str, ...] | None:
    """Return the profiles that there are for *principal*; None: this one exists."""
    if view.catalog.profile_named(profile) is not None:
        return None
    return tuple(
        item.name for item in view.catalog.profiles if item.audience.includes(principal)
    )


def _answer(inquiry: Inquiry, found: Inspection) -> Answer:
    now, asked, runs = inquiry.as_of, inquiry.asked, inquiry.runs
    verdict = found.verdict
    if verdict.explanation is not None:
        why = with_likely_ends(verdict.explanation, runs, now=now.timestamp())
        verdict = replace(verdict, explanation=why)
    total = sum(len(one.machines) for one in found.alike)
    return Answer(
        as_of=now,
        asked=asked,
        starts_now=verdict.startable,
        may_be_asked=verdict.choosable,
        headline=_headline(asked, verdict, now),
        why=None if verdict.explanation is None else told(verdict.explanation, now),
        machine=verdict.machine,
        ahead=verdict.ahead if verdict.choosable and not verdict.startable else None,
        no_later_than=_instant(verdict.no_later_than),
        likely=_likely_start(inquiry.likely),
        changes=tuple(
            Help(change=change, sentence=change_sentence(change))
            for change in found.changes
        ),
        counts=dict(sorted(found.counts.items(), key=_most_first)),
        alike=tuple(_alike(one, now) for one in found.alike),
        page=found.page,
        pages=max(1, -(-total // PAGE)),
        machines=tuple(_on_machine(one, runs, now) for one in found.machines),
    )


def _on_machine(said: MachineAnswer, runs: Runs, now: datetime) -> OnMachine:
    why = said.explanation
    if why is None:
        return OnMachine(machine=said.machine, takes_it=True)
    ends = likely_ends(why, runs, now=now.timestamp(), most=1)
    words = _RECENT.told(why, ends, now)
    return OnMachine(machine=said.machine, takes_it=False, why_not=words)


def _alike(said: Alike, now: datetime) -> SaidAlike:
    why = said.explanation
    return SaidAlike(
        takes_it=why is None,
        why_not=None if why is None else told(why, now),
        machines=said.machines,
        capacities=said.capacities,
        frees=said.frees,
    )


def _headline(asked: Asked, verdict: Verdict, now: datetime) -> str:
    """Return what the pages say of a workload, or what would be of a mere question."""
    explanation, ahead = verdict.explanation, verdict.ahead
    if asked.workload is None or verdict.startable:
        return prospect(explanation, position=ahead, now=now)
    state = State.QUEUED if verdict.choosable else State.REFUSED
    return headline(state, explanation=explanation, position=ahead, now=now)


def _likely_start(likely: Likely | None) -> LikelyStart | None:
    if likely is None:
        return None
    return LikelyStart(
        early=datetime.fromtimestamp(likely.early, UTC),
        late=datetime.fromtimestamp(likely.late, UTC),
        samples=likely.samples,
    )


def _most_first(item: tuple[Reason, int]) -> tuple[int, str]:
    return -item[1], item[0].value


def _version(view: View, profile: str) -> str | None:
    found = view.catalog.profile_named(profile)
    return None if found is None else found.version


def _first_class(view: View, profile: str) -> str | None:
    found = view.catalog.profile_named(profile)
    return None if found is None else found.classes[0]


def _instant(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
