"""The English words of a timeline besides its reasons: phases, events, work, headlines.

Pages without a script and notebooks fill them in ``telling.py``; the front end gets
them as literals that translators' tools find (``server_ext/scripts``).  The placeholders
are those of ``filling.py``.
"""

from __future__ import annotations

from typing import Final

from fleet_contracts.allocations import Phase, State
from fleet_contracts.language import mark
from fleet_contracts.steps import StepStatus
from fleet_contracts.timeline import TimelineKind


PHASES: Final[dict[Phase, str]] = {
    Phase.ASKED: "Asked[ for {profile}]",
    Phase.WAITING: "Waiting in line",
    Phase.PLACED: "Placed on {machine}",
    Phase.STARTING: "Starting the server",
    Phase.READY: "Ready",
}
"""The labels of the five rows."""

STATUSES: Final[dict[StepStatus, str]] = {
    StepStatus.DONE: "done",
    StepStatus.NOW: "now",
    StepStatus.TODO: "not yet",
    StepStatus.FAILED: "ended here",
    StepStatus.HELD: "no answer",
}
"""What a glyph says to whoever cannot see it."""

HEADLINES: Final[dict[State, str]] = {
    State.REQUESTED: "Asked for; not looked at yet.",
    State.QUEUED: "Waiting in line.",
    State.PLACED: "A place was found[ on {machine}].",
    State.PREPARING: "Preparing the environment[ on {machine}].",
    State.STARTING: "Starting the server[ on {machine}].",
    State.READY: "Ready[ on {machine}][, admitted in {took}].",
    State.STOPPING: "Stopping[ on {machine}].",
    State.UNKNOWN: "{machine} does not answer; what runs there is kept.",
    State.STOPPED: "Stopped[: {why}].",
    State.FAILED: "Failed[: {why}].",
    State.REFUSED: "This cannot run as asked[: {why}].",
}
"""One plain sentence for each state."""

STATES: Final[dict[State, str]] = {
    State.REQUESTED: "asked for",
    State.QUEUED: "waiting",
    State.PLACED: "placed",
    State.PREPARING: "preparing",
    State.STARTING: "starting",
    State.READY: "ready",
    State.STOPPING: "stopping",
    State.UNKNOWN: "not answering",
    State.STOPPED: "stopped",
    State.FAILED: "failed",
    State.REFUSED: "refused",
}

EVENTS: Final[dict[TimelineKind, str]] = {
    TimelineKind.ASKED: "Asked",
    TimelineKind.WAITING: "Waiting in line",
    TimelineKind.PARKED: "The Hub stopped waiting; the place is kept",
    TimelineKind.PLACED: "Placed on {machine}",
    TimelineKind.PREPARING: "Preparing the environment",
    TimelineKind.PROGRESS: "Preparing the environment",
    TimelineKind.STARTING: "Starting the server",
    TimelineKind.READY: "Ready",
    TimelineKind.STOPPING: "Stopping",
    TimelineKind.STOPPED: "Stopped",
    TimelineKind.FAILED: "Failed",
    TimelineKind.REFUSED: "Refused",
    TimelineKind.SILENT: "{machine} stopped answering",
    TimelineKind.RETURNED: "{machine} answers again",
    TimelineKind.NOTE: "Note",
}

WORK: Final[dict[str, str]] = {
    "resolve_environment": "Looking for the environment",
    "create_environment": "Creating the environment",
    "build_environment": "Building the environment",
    "download_packages": "Fetching packages",
    "install_packages": "Installing packages",
    "compile_bytecode": "Compiling packages",
    "compile_packages": "Compiling packages",
    "verify_environment": "Checking the environment",
    "copy_bytes": "Copying your files",
    "copy_files": "Files and folders copied",
    "pull_image": "Fetching the image",
    "unpack_image": "Unpacking the image",
    "start_container": "Making the container",
    "start_sandbox": "Making the sandbox",
    "start_server": "Starting the notebook server",
    "wait_for_server": "Waiting for the notebook server to answer",
}
"""What an agent's step is called; one that is not here is spelled out."""

TEXTS: Final[dict[str, str]] = {
    "a_machine": "a machine",
    "the_machine": "The machine",
    "you_are_next": "You are next.",
    "ahead": "{count} ahead of you.",
    "place_is_kept": "Your place is kept.",
    "would_start": mark("It would start now."),
    "would_wait": mark("It would wait[, with {ahead} ahead]: {why}."),
    "spent": "{total} in all, {waiting} of it waiting",
    "counted": "{work}: {done} of {total}",
    "metal": "Holds the Mac's GPU; nothing else native runs beside it",
    "memory": "{amount} of memory",
    "ends": "Time limit at {time}, in {left}",
    "ended": "Time limit since {time}",
    "idle_ends": "Ends at {time} unless something is computed",
    "ends_after": "Ends after {limit}[ ({by})]"
    "[, or after {idle} in which nothing is computed][ ({whose})]",
    "ends_idle": "Ends after {idle} in which nothing is computed[ ({whose})]",
    "set_by_class": "set by the class",
    "set_by_profile": "set by the profile",
    "as_of": "As of {time}",
    "never_ready": "never ready",
    "ready_in": "ready in {took}",
    "title": "Admission timeline[ of server “{server}”]",
    "step": mark("Step"),
    "status": mark("Status"),
    "took": mark("Took"),
    "why": mark("Why"),
    "since_then": "Since then",
    "limits": "Limits",
    "starts_by": "Starts no later than {time}",
    "likely_start": "Likely by {early}, or by {late}: "
    "half and nine in ten of {count} similar starts came as early",
    "longer_than_usual": "This takes longer than usual.",
    "earlier_starts": mark("Earlier starts"),
    "began": "began",
    "class_term": "class",
    "why_term": "why",
    "help_term": "help",
    "instead_term": "instead",
    "note_term": "note",
    "step_term": "step",
    "sentence": "{what}.",
    "on_machine": "on {machine}, {what}",
    "with_detail": "{what} ({detail})",
    "with_holders": "{what}; {holders}",
    "held_by": "held by {holders}",
    "promised_to": "promised to {holders}",
    "more_holders": "and {count} more",
    "somebody": "somebody else",
    "you": "you",
    "own_server": "another of your servers",
    "server_of": "a server of {owner}",
    "other_server": "somebody else's server",
    "part": "{free} of {capacity}",
    "with_title": "{owner} ({title})",
    "no_known_end": "{name} with no known end",
    "until": "{name} until {time} at the latest",
    "at_rest": "{holder} (GPU at rest since {time})",
    "idle": "{holder} (idle since {since}, ends at {time} if still idle)",
    "likely_done": "{holder} (likely done by {time}, from {count} earlier ones)",
    "asked": "{holder}, asked for it at {time}",
}
"""What belongs to none of the tables above."""
