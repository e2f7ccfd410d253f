"""``%admission``: the admission timeline of this server in a cell or a terminal."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fleet_lab.answers import Answer, Standing
from fleet_lab.document import merge
from fleet_lab.kernel import Asker
from fleet_lab.snapshot import Admission


if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


WATCH_SECONDS: Final = 20.0
"""How long one request of ``--watch`` waits for news."""
RETRY_SECONDS: Final = 2.0

_USAGE: Final = """\
%admission [--text | --json | --watch]

  Show what this server waited for, where it runs and until when, as of now.

  --text   as text, for a message to whoever helps
  --json   the controller's document
  --watch  follow it, until the kernel is interrupted"""


def register(shell: InteractiveShell) -> None:
    """Add the magic to *shell*; loading it again changes nothing."""
    shell.magics_manager.register_function(
        admission, magic_kind="line", magic_name="admission"
    )


def admission(line: str) -> Admission | None:
    """Show the admission timeline; see ``%admission --help``."""
    options = line.split()
    asker = Asker.of_this_process()
    if options in ([], ["--text"], ["--json"]):
        snapshot = Admission(asker.ask())
        if not options:
            return snapshot
        is_json = options == ["--json"]
        print(snapshot.as_json() if is_json else snapshot.as_support_text())  # noqa: T201 - its purpose
    elif options == ["--watch"]:
        watch(asker)
    else:
        print(_USAGE)  # noqa: T201 - its purpose
    return None


def watch(asker: Asker, *, pause: threading.Event | None = None) -> None:
    """Show the timeline in one output that follows it, until interrupted.

    *pause* ends it when it is set.
    """
    from IPython.display import display  # noqa: PLC0415 - only a kernel has it

    pause = pause or threading.Event()
    answer = asker.ask()
    output = display(Admission(answer), display_id=True)
    try:
        while not pause.is_set() and _may_change(answer.standing):
            fresh = asker.ask(known=answer.timeline, wait_seconds=WATCH_SECONDS)
            if fresh.timeline is None:
                pause.wait(RETRY_SECONDS)
            answer = joined(answer, fresh)
            if output is not None:
                output.update(Admission(answer))
    except KeyboardInterrupt:
        return


def joined(known: Answer, fresh: Answer) -> Answer:
    """Return *fresh* with what was known before.

    Where nobody answered the last known timeline stays, with the word that it is old.
    """
    timeline = known.timeline
    if fresh.timeline is not None:
        timeline = merge(known.timeline, fresh.timeline)
    return replace(fresh, timeline=timeline)


def _may_change(standing: Standing) -> bool:
    return standing not in {Standing.NO_HUB, Standing.NO_PERMISSION}
