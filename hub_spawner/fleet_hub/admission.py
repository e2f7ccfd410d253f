"""The wire between the Spawner and the controller: what is asked, what is answered.

One WebSocket per start (``internal/attend``).  As long as it is open, somebody
attends the start; when it closes without ``park``, the Hub has gone or gave up, and
the controller keeps the workload: only ``stop`` and ``leave`` end it.  Everything else
is plain HTTP below ``internal/servers/<user id>-<server id>``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from fleet_contracts.allocations import State
from fleet_contracts.base import Message
from fleet_contracts.changes import Change
from fleet_contracts.reasons import Explanation
from fleet_contracts.time_limits import NO_LIMITS, TimeLimits
from fleet_contracts.timeline import TimelineEvent
from fleet_contracts.workloads import Choice, Principal, ServerKey


class Ask(Message):
    """Start this server, or attend the start that is under way for it."""

    type: Literal["ask"] = "ask"
    key: ServerKey
    attempt: str
    """Made anew by each ``start()``; repeated when the socket was lost."""
    principal: Principal
    server_name: str
    choice: Choice
    environment: dict[str, str] = Field(repr=False)
    arguments: tuple[str, ...] = ()


class Park(Message):
    """The Hub lets go of the start; the place in the line is kept."""

    type: Literal["park"] = "park"


class OutcomeKind(StrEnum):
    """How a start ended."""

    READY = "ready"
    PARKED = "parked"
    REFUSED = "refused"
    FAILED = "failed"
    STOPPED = "stopped"


class Update(Message):
    """A new entry of the timeline, with the sentence of the moment."""

    type: Literal["update"] = "update"
    event: TimelineEvent
    headline: str
    position: int | None = None


class Outcome(Message):
    """The last message of an attended start."""

    type: Literal["outcome"] = "outcome"
    kind: OutcomeKind
    workload: str | None = None
    url: str | None = None
    headline: str
    """One sentence for the user."""
    explanation: Explanation | None = None


class ServerStatus(Message):
    """What the controller knows about one server."""

    key: ServerKey
    workload: str | None = None
    """None: the controller has never heard of this server."""
    generation: int = 0
    state: State = State.STOPPED
    parked: bool = False
    attended: bool = False
    holds: bool = False
    """It holds resources of a machine: for the Hub it runs."""
    unclaimed: bool = False
    """Its turn has come, and it waits for the Hub to start it."""
    unopened_since: AwareDatetime | None = None
    """Since when it is ready for somebody absent: the Hub is to say who has come.

    None: it need not be opened.
    """
    url: str | None = None
    position: int | None = None
    headline: str = ""
    explanation: Explanation | None = None
    view_token: str | None = Field(default=None, repr=False)
    """Reads this workload's timeline, and nothing else; for the Hub's own pages."""


class StopRequest(Message):
    """End a server: *by* is user, admin or hub."""

    by: str = "user"
    now: bool = False


class OpenedRequest(Message):
    """Whether anybody has opened a server that came up for somebody absent."""

    opened: bool


class WayOut(Message):
    """What a user may do instead of a choice that cannot run where their files are.

    ``keep_class``: choose *class_name* again.  ``copy_files`` and ``fresh_folder``:
    choose as before with the option ``files`` set to ``copy`` or ``fresh``; the files
    stay on their machine.
    """

    kind: Literal["keep_class", "copy_files", "fresh_folder"]
    class_name: str
    machine: str | None = None
    """Where it would start at once, or where the files are."""


class Offer(Message):
    """One profile and class as this principal sees it now."""

    profile: str
    class_name: str
    title: str
    description: str = ""
    class_title: str
    accelerator: str
    cpu_milli: int
    memory_bytes: int
    devices: int = 0
    time_limits: TimeLimits = NO_LIMITS
    startable: bool
    """It would start at once."""
    choosable: bool
    """It may be asked for: it starts now, or waits."""
    waiting: int = 0
    headline: str
    explanation: Explanation | None = None
    ways_out: tuple[WayOut, ...] = ()
    """Offered only where the choice can never run on the machine with the files."""
    no_copy: Explanation | None = None
    """Why no copy of the files is among the ways out; None: it is, or there are none."""
    change: Change | None = None
    """The smallest change that would make it fit, if one would."""


class OffersRequest(Message):
    """Ask what a principal could start."""

    principal: Principal
    key: ServerKey | None = None


class Offers(Message):
    """All profiles, in the order of the catalog, as of one moment."""

    as_of: AwareDatetime
    offers: tuple[Offer, ...]


class ValidateRequest(Message):
    """Ask whether this choice may be asked for, machines aside."""

    principal: Principal
    options: dict[str, object]


class ValidateAnswer(Message):
    """The normalised choice, or why not."""

    choice: Choice | None = None
    start_seconds: float | None = None
    """How long its start may take once it has its turn; None: it is not known."""
    explanation: Explanation | None = None
    headline: str = ""


FromSpawner = Annotated[Ask | Park, Field(discriminator="type")]
ToSpawner = Annotated[Update | Outcome, Field(discriminator="type")]
