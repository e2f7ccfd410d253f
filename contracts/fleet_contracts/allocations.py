"""The life of a workload: states, events and the one table that joins them.

Rule 1: whatever affects the state of a workload stands in ``TRANSITIONS``.
Rule 2: this file does not know who asks; controller and agent use the same table.

Theory of operation
-------------------
A workload is asked for (``requested``), waits its turn (``queued``), and from the
moment a machine is chosen (``placed``) it *holds* resources.  It keeps them until the
machine itself said that nothing runs any more (``stopped``, ``failed``), or an admin
declared the machine lost.  Silence never frees anything: a workload on a machine that
stopped talking is ``unknown`` and still holds what it held.

Every state lists every event.  ``None`` marks an event that cannot happen there: it
is a bug of whoever sent it.  A state that maps an event to itself ignores the event on
purpose, because messages may be repeated.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a workload is in its life."""

    REQUESTED = "requested"
    QUEUED = "queued"
    PLACED = "placed"
    PREPARING = "preparing"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    UNKNOWN = "unknown"
    STOPPED = "stopped"
    FAILED = "failed"
    REFUSED = "refused"


class Event(StrEnum):
    """What can happen to a workload."""

    ASKED = "asked"
    """Somebody asked for it: a new generation begins."""
    ADMITTED = "admitted"
    """The request is valid and allowed: it joins the line."""
    REFUSED = "refused"
    """Nothing in the fleet can ever run it, or policy forbids it."""
    PLACED = "placed"
    """A machine was chosen and its resources are held."""
    WITHDRAWN = "withdrawn"
    """The placement was taken back before the agent accepted; the place is kept."""
    ACCEPTED = "accepted"
    """The agent took the allocation and prepares its runtime."""
    REJECTED = "rejected"
    """The agent said no before anything ran; the place is kept."""
    PREPARED = "prepared"
    """The runtime is there; the notebook server is being started."""
    SERVING = "serving"
    """The notebook server answers."""
    STOP_ASKED = "stop_asked"
    """A person, a limit or the Hub asked for the end."""
    ENDED = "ended"
    """The machine confirmed that nothing of it runs any more."""
    FAILED = "failed"
    """The machine reported that it went wrong, and that nothing of it runs any more."""
    LEFT = "left"
    """The user left the line."""
    MACHINE_SILENT = "machine_silent"
    """The machine's agent stopped talking."""
    MACHINE_LOST = "machine_lost"
    """An admin declared the machine lost."""


class Phase(StrEnum):
    """The five phases that people see."""

    ASKED = "asked"
    WAITING = "waiting"
    PLACED = "placed"
    STARTING = "starting"
    READY = "ready"


class IllegalTransitionError(ValueError):
    """An event that cannot happen in this state: a bug, or a forged message."""

    def __init__(self, state: State, event: Event) -> None:
        """Remember which pair was refused."""
        super().__init__(f"a workload that is {state} cannot meet {event}")
        self.state = state
        self.event = event


_Row = dict[Event, State | None]


def _row(**targets: State | None) -> _Row:
    """Return a complete row: an event that is not named is illegal here."""
    named: _Row = {Event(name): target for name, target in targets.items()}
    return {event: named.get(event) for event in Event}


TRANSITIONS: dict[State, _Row] = {
    State.REQUESTED: _row(
        asked=State.REQUESTED,
        admitted=State.QUEUED,
        refused=State.REFUSED,
        left=State.STOPPED,
        stop_asked=State.STOPPED,
    ),
    State.QUEUED: _row(
        # Asking again keeps the place.
        asked=State.QUEUED,
        admitted=State.QUEUED,
        placed=State.PLACED,
        # The catalog or the policy changed while it waited.
        refused=State.REFUSED,
        left=State.STOPPED,
        stop_asked=State.STOPPED,
    ),
    State.PLACED: _row(
        placed=State.PLACED,
        withdrawn=State.QUEUED,
        accepted=State.PREPARING,
        rejected=State.QUEUED,
        failed=State.FAILED,
        stop_asked=State.STOPPING,
        left=State.STOPPING,
        ended=State.STOPPED,
        machine_silent=State.UNKNOWN,
        machine_lost=State.FAILED,
    ),
    State.PREPARING: _row(
        accepted=State.PREPARING,
        prepared=State.STARTING,
        # A rejection after acceptance: the agent's own second check said no.
        rejected=State.QUEUED,
        failed=State.FAILED,
        stop_asked=State.STOPPING,
        left=State.STOPPING,
        ended=State.STOPPED,
        machine_silent=State.UNKNOWN,
        machine_lost=State.FAILED,
    ),
    State.STARTING: _row(
        accepted=State.STARTING,
        prepared=State.STARTING,
        serving=State.READY,
        failed=State.FAILED,
        stop_asked=State.STOPPING,
        left=State.STOPPING,
        ended=State.STOPPED,
        machine_silent=State.UNKNOWN,
        machine_lost=State.FAILED,
    ),
    State.READY: _row(
        accepted=State.READY,
        prepared=State.READY,
        serving=State.READY,
        failed=State.FAILED,
        stop_asked=State.STOPPING,
        ended=State.STOPPED,
        machine_silent=State.UNKNOWN,
        machine_lost=State.FAILED,
    ),
    State.STOPPING: _row(
        # Reports that were under way when the stop was asked for change nothing.
        accepted=State.STOPPING,
        prepared=State.STOPPING,
        serving=State.STOPPING,
        rejected=State.STOPPED,
        failed=State.STOPPED,
        stop_asked=State.STOPPING,
        left=State.STOPPING,
        ended=State.STOPPED,
        machine_silent=State.UNKNOWN,
        machine_lost=State.FAILED,
    ),
    State.UNKNOWN: _row(
        # The machine is back, and its inventory says how far the workload is.
        placed=State.PLACED,
        accepted=State.PREPARING,
        prepared=State.STARTING,
        serving=State.READY,
        rejected=State.QUEUED,
        failed=State.FAILED,
        stop_asked=State.STOPPING,
        left=State.STOPPING,
        ended=State.STOPPED,
        machine_silent=State.UNKNOWN,
        machine_lost=State.FAILED,
    ),
    State.STOPPED: _row(
        asked=State.REQUESTED,
        ended=State.STOPPED,
        failed=State.STOPPED,
        stop_asked=State.STOPPED,
        left=State.STOPPED,
    ),
    State.FAILED: _row(
        asked=State.REQUESTED,
        ended=State.FAILED,
        failed=State.FAILED,
        stop_asked=State.FAILED,
        left=State.FAILED,
        machine_lost=State.FAILED,
    ),
    State.REFUSED: _row(
        asked=State.REQUESTED,
        stop_asked=State.REFUSED,
        left=State.REFUSED,
    ),
}

PHASE: dict[State, Phase] = {
    State.REQUESTED: Phase.ASKED,
    State.REFUSED: Phase.ASKED,
    State.QUEUED: Phase.WAITING,
    State.PLACED: Phase.PLACED,
    State.PREPARING: Phase.STARTING,
    State.STARTING: Phase.STARTING,
    State.READY: Phase.READY,
    State.STOPPING: Phase.READY,
    State.UNKNOWN: Phase.READY,
    State.STOPPED: Phase.READY,
    State.FAILED: Phase.READY,
}

HOLDING = frozenset(
    {
        State.PLACED,
        State.PREPARING,
        State.STARTING,
        State.READY,
        State.STOPPING,
        State.UNKNOWN,
    }
)
"""The states in which a workload holds resources of a machine."""

LIVE = HOLDING | {State.REQUESTED, State.QUEUED}
"""The states in which a workload is still of somebody's concern."""

ENDED = frozenset(State) - LIVE
"""The states from which only a new request leads on."""


def advance(state: State, event: Event) -> State:
    """Return the state after *event*.

    Raises:
        IllegalTransitionError: the event cannot happen in *state*.
    """
    target = TRANSITIONS[state][event]
    if target is None:
        raise IllegalTransitionError(state, event)
    return target
