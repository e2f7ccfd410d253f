"""FleetSpawner: JupyterHub's calls, translated for the controller, and nothing else.

What JupyterHub really does decides how this must behave:

* It calls ``stop()`` only if ``poll()`` answered None, and it polls right after
  ``start()`` raised.  So ``poll()`` is None while a start is in flight, and 0 once a
  start has let go of a workload whose place is kept.
* A cancelled ``start()`` means that the user gave up, in which case ``stop()``
  follows, or that the Hub goes down, in which case nothing may be given back.
* State is saved only after ``start()`` returned: the truth is at the controller,
  keyed by the Hub's ids, which a rename does not change.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final

from jupyterhub.spawner import Spawner
from traitlets import default
from typing_extensions import override

from fleet_contracts.allocations import State
from fleet_contracts.language import mark, speaking
from fleet_contracts.languages import language_of
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Choice
from fleet_hub import options as choices
from fleet_hub.admission import (
    Ask,
    OffersRequest,
    OutcomeKind,
    ServerStatus,
    StopRequest,
    Update,
    ValidateRequest,
)
from fleet_hub.attended_start import (
    AttendedStart,
    Patience,
    ended_otherwise,
    place_is_kept,
)
from fleet_hub.errors import ControllerError, ControllerUnreachableError
from fleet_hub.hub_logs import hide_queries
from fleet_hub.hub_tokens import revoke_server_tokens
from fleet_hub.opening import was_opened
from fleet_hub.pages.form import render_form
from fleet_hub.pages.view import ServerView, view_server
from fleet_hub.persistence import is_told, until_recorded
from fleet_hub.progress import follow
from fleet_hub.refusals import SpawnRefused, refused
from fleet_hub.spawner_settings import FleetSettings


DEADLINE_MARGIN_SECONDS: Final = 15
AWAY_SECONDS: Final = 0.5
"""How often a controller that is away is asked again before a start."""
SETTLE_SECONDS: Final = 5.0
"""How long one look for a server that is on its way may take."""
STOP_ANSWER_SECONDS: Final = 5.0
"""So much longer than its own limit the answer to a waiting stop may take."""


class FleetSpawner(FleetSettings, Spawner):
    """Starts servers where the fleet's controller places them."""

    @default("options_form")
    def _options_form(self) -> Any:
        return FleetSpawner.render_options_form

    @default("options_from_form")
    def _options_from_form(self) -> Any:
        return choices.from_form

    @default("progress_ready_hook")
    def _progress_ready_hook(self) -> Any:
        return FleetSpawner.tell_ready

    @default("apply_user_options")
    def _apply_user_options(self) -> Any:
        return FleetSpawner.check_choice

    def __init__(self, **kwargs: Any) -> None:
        """Begin with nothing in flight."""
        super().__init__(**kwargs)
        self._in_flight = False
        self._let_go = False
        self._choice: Choice | None = None
        self._configured_timeout: int | None = None
        self._good_options: dict[str, Any] | None = None
        self._generation: asyncio.Future[int] | None = None

    # -------------------------------------------------------------- the choice

    async def render_options_form(self) -> str:
        """Return the cards that a user chooses from, as they are now."""
        wishes, is_another = "", False
        if self.handler is not None:
            wishes = self.handler.request.headers.get("Accept-Language", "")
            viewer = self.handler.current_user
            is_another = viewer is not None and viewer.name != self.user.name
        with speaking(language_of(wishes), of_another=is_another):
            return await self._rendered_form()

    async def _rendered_form(self) -> str:
        request = OffersRequest(principal=self.principal, key=self.key)
        wanted = None
        if self.handler is not None:
            wanted = choices.preselected(self.handler.request.query_arguments)
        last = self.orm_spawner.user_options or {}
        try:
            offers = await self.controller.offers(request)
        except ControllerError as error:
            self.log.warning("no offers from the controller: %s", error)
            return render_form(None, wanted=wanted, last=last)
        return render_form(
            offers, wanted=wanted, last=last, why_url=self.why_page, server=self.name
        )

    @override
    def options_from_query(self, query_data: dict[str, list[str]]) -> dict[str, Any]:
        choices.quieten(self.log)
        options = choices.from_query(query_data)
        if self.handler is not None and not choices.comes_from_here(
            self.handler.request
        ):
            raise SpawnRefused(
                mark(
                    "Another website asked to start a server in your name. Nothing was "
                    "started; choose below if you want one."
                ),
                reason=Reason.FOREIGN_LINK,
            )
        return options

    async def check_choice(self, user_options: dict[str, Any]) -> None:
        """Accept *user_options*, whichever way they came, or refuse the start.

        Raises:
            SpawnRefused: they are wrong, or not for this user.
        """
        self._choice = None
        try:
            self._choice = await self._judged(user_options)
        except SpawnRefused:
            # Nothing was asked for, so nothing is to be stopped either; and what the
            # controller will start later is the last choice that was good.
            self._let_go = True
            if self._good_options is not None:
                self.orm_spawner.user_options = self._good_options
            raise
        self._good_options = dict(user_options)

    async def _judged(self, user_options: dict[str, Any]) -> Choice:
        fault = choices.structural_fault(user_options)
        if fault is not None:
            raise SpawnRefused(
                choices.fault_sentence(fault),
                reason=fault.reason,
                retell=lambda: choices.fault_sentence(fault),
            )
        request = ValidateRequest(principal=self.principal, options=user_options)
        try:
            answer = await self.controller.validate(request)
        except ControllerError as error:
            raise self._away(error) from error
        if answer.choice is None:
            raise refused(answer.explanation, answer.headline)
        self._leave_time(answer.start_seconds)
        return answer.choice

    def _leave_time(self, seconds: float | None) -> None:
        """Put JupyterHub's own deadline, which gives no reason, behind the profile's.

        JupyterHub reads it after the choice was made, and before it waits.
        """
        if self._configured_timeout is None:
            self._configured_timeout = self.start_timeout
        waits = self.queue_hold + self.controller_patience + DEADLINE_MARGIN_SECONDS
        needed = 0 if seconds is None else math.ceil(seconds + waits)
        self.set_trait("start_timeout", max(self._configured_timeout, needed))

    # ---------------------------------------------------------------- the start

    @override
    async def start(self) -> str:
        self._in_flight, self._let_go = True, False
        self._generation = asyncio.get_running_loop().create_future()
        revoke_server_tokens(self.user, self.name, keep=self.api_token)
        try:
            url = await self._start()
        except asyncio.CancelledError:
            # The mark stays, so that a stop() that follows is really called.
            raise
        except BaseException:
            # Before the raise: the Hub polls at once.
            self._in_flight = False
            raise
        self._in_flight = False
        return url

    async def _start(self) -> str:
        try:
            await self._end_what_the_hub_gave_up()
        except SpawnRefused:
            # Nothing was asked for yet: who has a place in the line keeps it.
            self._let_go = True
            raise
        start = AttendedStart(
            client=self.controller,
            ask=self._ask(),
            patience=self._patience(),
            on_update=self._heard,
        )
        try:
            outcome = await start.attend()
        except SpawnRefused:
            # Nothing is held yet: the controller keeps the place while it is away.
            self._let_go = start.in_line
            raise
        if outcome.kind is OutcomeKind.READY and outcome.url:
            return outcome.url
        if outcome.kind is OutcomeKind.PARKED:
            self._let_go = True
            raise place_is_kept(outcome, self.workload_page(outcome.workload))
        raise ended_otherwise(outcome)

    def _ask(self) -> Ask:
        if self._choice is None:
            raise SpawnRefused(
                mark("Choose a profile first."), reason=Reason.PROFILE_REQUIRED
            )
        return Ask(
            key=self.key,
            attempt=secrets.token_hex(8),
            principal=self.principal,
            server_name=self.name,
            choice=self._choice,
            environment=self.get_env(),
            arguments=tuple(self.get_args()),
        )

    def _patience(self) -> Patience:
        margin = min(DEADLINE_MARGIN_SECONDS, self.start_timeout / 2)
        return Patience(
            queue_hold_seconds=self.queue_hold,
            patience_seconds=self.controller_patience,
            limit_seconds=self.start_timeout - margin,
        )

    def _heard(self, update: Update) -> None:
        if self._generation is not None and not self._generation.done():
            self._generation.set_result(update.event.generation)

    async def _end_what_the_hub_gave_up(self) -> None:
        """Stop what is left of an earlier start, however far it came.

        Its token is revoked and its options may be others by now: attending it would
        bring up what was not asked for.
        """
        key = str(self.key)
        if not await is_told(key, within_seconds=self.controller_patience):
            raise self._away(ControllerUnreachableError("it was not told of a stop"))
        status = await self._status_in_time()
        if not _runs_for_the_hub(status):
            return
        self.log.warning("an earlier start of %s is left; ending it", self._log_name)
        ended = await self._stop_at_controller(now=False)
        if ended is None or _runs_for_the_hub(ended):
            raise SpawnRefused(
                mark(
                    "Your last server has not ended yet: its machine has not confirmed "
                    "it. Try again in a minute."
                ),
                reason=Reason.OFFLINE,
                retry_after_seconds=60,
            )

    async def _status_in_time(self) -> ServerStatus:
        """Return what the controller knows, also if it is away for a moment."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.controller_patience
        while True:
            try:
                return await self.controller.status(self.key)
            except ControllerError as error:
                if clock() >= deadline:
                    raise self._away(error) from error
                await asyncio.sleep(AWAY_SECONDS)

    def _away(self, error: ControllerError) -> SpawnRefused:
        self.log.warning("the controller failed: %s", error)
        return SpawnRefused(
            mark("The fleet's controller does not answer; try again in a minute."),
            reason=Reason.CONTROLLER_UNREACHABLE,
            retry_after_seconds=60,
        )

    # ----------------------------------------------------------- while it lives

    @override
    async def poll(self) -> int | None:
        if self._let_go:
            return 0
        if self._in_flight:
            return None
        try:
            status = await self.controller.status(self.key)
            if status.unopened_since is not None:
                status = await self._tell_opened(status.unopened_since)
        except Exception as error:  # noqa: BLE001 - a raise here orphans the server
            self.log.warning("poll without the controller: %s", error)
            return None
        return None if _runs_for_the_hub(status) else 0

    async def _tell_opened(self, ready_since: datetime) -> ServerStatus:
        opened = was_opened(
            self.orm_spawner, self.oauth_client_id, ready_since=ready_since
        )
        return await self.controller.tell_opened(self.key, opened=opened)

    @override
    async def get_url(self) -> str:
        """Return the true URL once the controller says ready; wait for it if need be.

        Asked at Hub start for servers that were started or starting.  Answering early
        would make the Hub look for a server where there is none, and stop it; waiting
        for one that is not on its way would keep the Hub from starting it.
        """
        wait_seconds = 0.0
        while True:
            try:
                status = await self.controller.status(
                    self.key, wait_seconds=wait_seconds
                )
            except ControllerError:
                await asyncio.sleep(1)
                continue
            if status.state is State.READY and status.url:
                return status.url
            if not _runs_for_the_hub(status):
                # Nobody needs to look for it for long, and nothing is to be stopped:
                # its turn may come this very moment.
                self._let_go = True
                self.http_timeout = 1
                url: str = self.server.url
                return url
            # Back into the line it may still fall, which settles nothing.
            wait_seconds = SETTLE_SECONDS

    @override
    async def stop(self, now: bool = False) -> None:
        self._in_flight = False
        await self._stop_at_controller(now=now)

    async def _stop_at_controller(self, *, now: bool) -> ServerStatus | None:
        """Have the controller record the stop, and wait a while for its end.

        Returns None if the controller could not be told yet: it will be, as long as
        this Hub runs, and the next start ends what is left.
        """
        client, key = self.controller, self.key
        request = StopRequest(by="hub", now=now)

        async def tell() -> ServerStatus:
            return await client.stop(key, request, wait_seconds=self.stop_wait)

        within = self.stop_wait + STOP_ANSWER_SECONDS
        return await until_recorded(
            tell, within_seconds=within, log=self.log, about=str(key)
        )

    @override
    def run_post_stop_hook(self) -> Any:
        revoke_server_tokens(self.user, self.name)
        return super().run_post_stop_hook()

    @override
    async def delete_forever(self) -> None:
        """Give back all that this server held; JupyterHub may then reuse its ids.

        Waits for the controller however long it takes: a key that outlived its server
        would lead the next one to this one's files.
        """
        client, key = self.controller, self.key
        await until_recorded(
            lambda: client.retire(key), within_seconds=None, log=self.log
        )

    # ------------------------------------------------------------- what is shown

    @override
    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        hide_queries(self.log)
        generation = 0
        if self._generation is not None:
            # Until the controller has heard the ask, its timeline is the last start's.
            generation = await asyncio.shield(self._generation)
        async for event in follow(self.controller, self.key, generation):
            yield event

    def tell_ready(self, ready_event: dict[str, Any]) -> dict[str, Any]:
        """Return the stream's last event; JupyterHub takes a cancelled start for ready.

        A page that believed it would follow the proxy to whatever else answers there.
        """
        if not self._in_flight:
            return ready_event
        return {
            "progress": 100,
            "failed": True,
            "message": "The start was cancelled.",
            "fleet": {"cancelled": True},
        }

    async def fleet_view(self) -> ServerView:
        """Return what the Hub's pages show of this server; never raises."""
        return await view_server(self.controller, self.key, self.workload_page)

    # ----------------------------------------------------------------- the state

    @override
    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        self._good_options = state.get("good_options")

    @override
    def get_state(self) -> dict[str, Any]:
        state: dict[str, Any] = super().get_state()
        if self._good_options is not None:
            state["good_options"] = self._good_options
        return state


def _runs_for_the_hub(status: ServerStatus) -> bool:
    """Whether a start of the Hub led to what *status* tells: then it is not to be lost.

    A place that is held for a start which is yet to come is not a running server.
    """
    return status.holds and not status.unclaimed
