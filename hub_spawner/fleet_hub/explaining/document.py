"""The document that an explanation is: for pages, programs and the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from pydantic import AwareDatetime, Field, WrapValidator

from fleet_contracts.allocations import State
from fleet_contracts.base import Message, Slug
from fleet_contracts.changes import Change
from fleet_contracts.reasons import Explanation, Reason, ReasonKind
from fleet_contracts.time_limits import TimeLimits
from fleet_contracts.timeline import LikelyStart
from fleet_hub.admission import WayOut


SCHEMA: Final = "jupyterhub-fleet/explanation/v1"
_Text = Annotated[str, Field(max_length=300)]


def _as_made(
    given: object, read: Callable[[object], tuple[str, ...]]
) -> tuple[str, ...]:
    """Return *given*, read again only where it comes from outside: it may be long."""
    return given if isinstance(given, tuple) else read(given)


_Names = Annotated[tuple[str, ...], WrapValidator(_as_made)]


class Question(Message):
    """A workload, or what somebody could start."""

    workload: Annotated[str, Field(pattern="^[0-9A-Za-z]{1,64}$")] | None = None
    profile: Slug | None = None
    class_name: Slug | None = Field(default=None, alias="class")
    """None: the profile's first class."""
    user: _Text | None = None
    groups: tuple[_Text, ...] | None = None
    """None: as the controller knows the user."""
    server: _Text | None = None
    """The server that would be started, by name: it goes back to its files.

    None: any server, wherever there is room; what stands in the way of the user's
    default server is told beside that.
    """
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Which of the machines are told with their holders; the first is the nearest."""


class Asked(Message):
    """What the answer is about."""

    workload: str | None = None
    user: str
    groups: tuple[str, ...] = ()
    groups_known: bool = True
    """False: nobody said in which groups the user is."""
    server: str | None = None
    profile: str
    profile_version: str | None = None
    class_name: str | None = Field(default=None, alias="class")
    state: State | None = None
    """None: it is only asked what would be."""
    files_on: str | None = None
    """The machine with the files of the server, or of the user's default server where
    none is named: that one goes back there."""


class Told(Message):
    """One "no" as a code, its kind and a sentence."""

    explanation: Explanation
    kind: ReasonKind
    sentence: str
    remedy: str


class OnMachine(Message):
    """What one machine says."""

    machine: str
    takes_it: bool
    """It would take the request now."""
    why_not: Told | None = None


class SaidAlike(Message):
    """Machines that say the same, holders aside."""

    takes_it: bool
    why_not: Told | None = None
    """The code with its numbers, without a machine's name."""
    machines: _Names
    capacities: tuple[int, ...] = ()
    """In the order of the machines, where each has its own; otherwise empty."""
    frees: tuple[int, ...] = ()


class Help(Message):
    """A change that would make the request fit."""

    change: Change
    sentence: str


class Ends(Message):
    """When what is asked for ends by itself."""

    time_limits: TimeLimits
    sentence: str


class OtherWay(Message):
    """What may be done instead of a choice that can never run beside the files."""

    way: WayOut
    told: Told
    """The same as a code and a sentence."""


class Answer(Message):
    """The whole answer, as of one moment."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    as_of: AwareDatetime
    asked: Asked
    starts_now: bool
    may_be_asked: bool
    """It starts now, or it would wait; False: it can never run as asked, or must not."""
    headline: str
    of_another: bool = False
    """Its sentences name who asks; otherwise they speak to them, as "you"."""
    why: Told | None = None
    machine: str | None = None
    """Where it runs, or would start."""
    ahead: int | None = None
    no_later_than: AwareDatetime | None = None
    ends: Ends | None = None
    """None: it has no limit, it never runs, or it has ended."""
    likely: LikelyStart | None = None
    """None: no time is promised, or too few waits went like this one so far."""
    changes: tuple[Help, ...] = ()
    """The smallest change first."""
    ways_out: tuple[OtherWay, ...] = ()
    """The ways that keep the files first."""
    no_copy: Told | None = None
    """Why no copy of the files is among the ways; None: it is, or there are none."""
    profiles: tuple[str, ...] | None = None
    """Those of the user, where there is none of the name; None: there is."""
    counts: dict[Reason, int] = Field(default_factory=dict)
    """How many machines give each reason."""
    alike: tuple[SaidAlike, ...] = ()
    """Every machine: those that take it first, then the nearest misses."""
    page: int = 1
    pages: int = 1
    machines: tuple[OnMachine, ...] = ()
    """The machines of the page in the same order, with holders, each in a sentence."""


class InLine(Message):
    """One workload of the line."""

    workload: str
    user: str
    server: str
    profile: str
    class_name: str | None = Field(default=None, alias="class")
    asked_at: AwareDatetime
    parked: bool = False
    ahead: int
    """How many before it want the same machines."""
    why: Told
    no_later_than: AwareDatetime | None = None
    likely: LikelyStart | None = None


class LineDocument(Message):
    """Everybody who waits, in the order in which turns come."""

    schema_: str = Field(default="jupyterhub-fleet/line/v1", alias="schema")
    as_of: AwareDatetime
    waiting: tuple[InLine, ...] = ()
