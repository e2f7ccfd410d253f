"""One start, attended to its end: patience, deadlines, and a controller that restarts.

``attend`` asks, listens, and returns the controller's last word.  It keeps three
limits, and each ends with a sentence instead of JupyterHub's empty "Spawn failed":

* waiting in line longer than ``queue_hold_seconds`` parks the start;
* a controller that is away longer than ``patience_seconds`` is reported;
* ``limit_seconds`` for the whole start, below the Hub's own ``start_timeout``.

A lost link is not a lost start: the same attempt is attended again.  A task that is
cancelled only closes its link, which gives nothing back.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fleet_contracts.allocations import State
from fleet_contracts.language import mark, translated
from fleet_contracts.reasons import Reason
from fleet_contracts.sentences import headline
from fleet_hub.admission import Ask, Outcome, OutcomeKind, Park, Update
from fleet_hub.controller_client import Attendance, ControllerClient
from fleet_hub.errors import ControllerRefusedError, ControllerUnreachableError
from fleet_hub.refusals import SpawnRefused, refused


IN_LINE: Final = frozenset({State.REQUESTED, State.QUEUED})
RETRY_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
PARK_SECONDS: Final = 10.0
"""How long the controller may take to confirm that a start is parked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a start may take, in its three senses."""

    queue_hold_seconds: float
    patience_seconds: float
    limit_seconds: float


class AttendedStart:
    """One ``start()`` of the Hub, from the ask to the outcome; used once."""

    def __init__(
        self,
        *,
        client: ControllerClient,
        ask: Ask,
        patience: Patience,
        on_update: Callable[[Update], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to send *ask* through *client*; *on_update* hears each entry."""
        self._client = client
        self._ask = ask
        self._patience = patience
        self._on_update = on_update
        self._clock = clock
        now = clock()
        self._deadline = now + patience.limit_seconds
        self._heard_at = now
        self._in_line_since: float | None = now
        self._parking = False

    @property
    def in_line(self) -> bool:
        """Whether it only waits, as far as was heard."""
        return self._in_line_since is not None

    async def attend(self) -> Outcome:
        """Return how the start ended.

        Raises:
            SpawnRefused: a limit was reached, or the controller does not understand us.
        """
        failures = 0
        while True:
            try:
                with await self._client.attend(self._ask) as attendance:
                    failures = 0
                    self._heard_at = self._clock()
                    return await self._follow(attendance)
            except ControllerUnreachableError as error:
                self._give_up_if_due(error)
                pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
                failures += 1
                # Many starts lose their links at once: they should not all come back
                # in the same instant.
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))  # noqa: S311 - jitter
            except ControllerRefusedError as error:
                raise SpawnRefused(
                    mark(
                        "The fleet's controller and this JupyterHub do not understand "
                        "each other. An administrator must look at their logs."
                    ),
                    reason=Reason.CONTROLLER_UNREACHABLE,
                ) from error

    async def _follow(self, attendance: Attendance) -> Outcome:
        if self._parking:
            await attendance.say(Park())
        while True:
            try:
                async with asyncio.timeout(self._seconds_to_next_limit()):
                    message = await attendance.hear()
            except TimeoutError:
                await self._limit_reached(attendance)
                continue
            self._heard_at = self._clock()
            if isinstance(message, Outcome):
                return message
            self._note_place_in_line(message)
            self._on_update(message)

    def _note_place_in_line(self, update: Update) -> None:
        if update.event.state not in IN_LINE:
            # Its turn came before the park arrived: there is nothing to park.
            self._in_line_since, self._parking = None, False
        elif self._in_line_since is None:
            # An agent said no: it is back in the line, with a new wait before it.
            self._in_line_since = self._clock()

    def _seconds_to_next_limit(self) -> float:
        limits = [self._deadline]
        if self._parking:
            limits.append(self._heard_at + PARK_SECONDS)
        elif self._in_line_since is not None:
            limits.append(self._in_line_since + self._patience.queue_hold_seconds)
        return max(0.0, min(limits) - self._clock())

    async def _limit_reached(self, attendance: Attendance) -> None:
        if self._clock() >= self._deadline:
            limit = _in_words(self._patience.limit_seconds)
            raise SpawnRefused(
                mark("Your server did not start within {time}, so it was given up."),
                values={"time": limit},
                reason=Reason.START_TIMEOUT,
            )
        if self._parking:
            raise ControllerUnreachableError("the controller did not confirm the park")
        self._parking = True
        self._heard_at = self._clock()
        await attendance.say(Park())

    def _give_up_if_due(self, error: ControllerUnreachableError) -> None:
        now = self._clock()
        silent_for = now - self._heard_at
        if silent_for < self._patience.patience_seconds and now < self._deadline:
            return
        raise SpawnRefused(
            mark(
                "The fleet's controller has not answered for {time}. If you had a place "
                "in the line, it is kept; try again in a minute."
            )
            if self.in_line
            else mark(
                "The fleet's controller has not answered for {time}. The start was "
                "given up; try again in a minute."
            ),
            values={"time": _in_words(silent_for)},
            reason=Reason.CONTROLLER_UNREACHABLE,
            retry_after_seconds=60,
        ) from error


_KEPT: Final = mark(
    "Your place in the line is kept; your server starts when its turn comes."
)


def place_is_kept(outcome: Outcome, link: str) -> SpawnRefused:
    """Return the end of a start whose place in the line is kept."""
    explanation = outcome.explanation
    return SpawnRefused(
        outcome.headline or _KEPT,
        reason=Reason.PLACE_KEPT,
        retell=lambda: (
            headline(State.QUEUED, explanation=explanation, parked=True)
            if outcome.headline
            else translated(_KEPT)
        ),
        link=link,
        link_text=mark("Follow it, or leave the line"),
        retry_after_seconds=60,
    )


def ended_otherwise(outcome: Outcome) -> SpawnRefused:
    """Return the end of a start that was refused, failed or was stopped."""
    fallback = {
        OutcomeKind.REFUSED: Reason.INVALID_REQUEST,
        OutcomeKind.STOPPED: Reason.STOPPED_BY_USER,
    }.get(outcome.kind, Reason.START_FAILED)
    reason = outcome.explanation.reason if outcome.explanation else fallback
    if not outcome.headline:
        return SpawnRefused(mark("Your server did not start."), reason=reason)
    if outcome.kind is OutcomeKind.REFUSED and outcome.explanation is not None:
        return refused(outcome.explanation, outcome.headline)
    stopped = outcome.kind is OutcomeKind.STOPPED
    state = State.STOPPED if stopped else State.FAILED
    return SpawnRefused(
        outcome.headline,
        reason=reason,
        retell=lambda: headline(state, explanation=outcome.explanation),
    )


def _in_words(seconds: float) -> str:
    """Return a duration as people say it."""
    whole = max(1, round(seconds))
    if whole < 120:  # noqa: PLR2004 - two minutes are still said in seconds
        return f"{whole} s"
    return f"{round(whole / 60)} min"
