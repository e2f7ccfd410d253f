"""Whatever happens in whatever order, asking for what somebody holds takes nothing."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import hypothesis.strategies as st
from fleet_builders import a_principal
from fleet_controller import Fleet, allocation_of
from held_gpu import an_open_box, give_gpus
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason
from fleet_hub.controller import releasing, stopping
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.model import WAITING
from fleet_hub.controller.records import Workload
from fleet_hub.controller.retelling import wait_of
from fleet_hub.controller.states import handle_of
from fleet_hub.scheduling.holders import MOST_ASKERS


USERS = st.integers(1, 9)


class AskingMachine(RuleBasedStateMachine):
    """Nine users, two GPUs, and asks at any time, by whatever handle."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.fleet: Fleet = an_open_box(gpus=2)
        self.handles = ["0" * 24]
        """Every one that anybody was ever told."""

    @initialize()
    def fill(self) -> None:
        """Let both GPUs be held, and somebody wait."""
        for user in (1, 2, 3):
            self.ask_for_a_server(user)

    def mine(self, user: int) -> Workload | None:
        """Return a user's server."""
        known = self.fleet.core.model.with_name(f"user-{user}")
        return known[0] if known else None

    def all(self) -> list[Workload]:
        """Return every server."""
        return list(self.fleet.core.model.workloads.values())

    def looks(self) -> dict[str, object]:
        """Return all of every server but who was asked and what was told."""
        return {
            record.id: replace(
                record,
                last_seq=0,
                explanation=None,
                assignment=replace(record.assignment, asked=())
                if record.assignment
                else None,
            )
            for record in self.all()
        }

    @rule(user=USERS)
    def ask_for_a_server(self, user: int) -> None:
        """Ask, and be told who holds what."""
        principal = a_principal(f"user-{user}", user)
        known = self.mine(user)
        if known is not None and known.state not in WAITING | {
            State.STOPPED,
            State.FAILED,
        }:
            return
        self.fleet.ask(
            principal=principal,
            profile="lab",
            class_name="gpu",
            attempt=f"{user}-{len(self.handles)}-{self.fleet.clock.now()}",
        )

    @rule(user=USERS, data=st.data())
    def ask_for_release(self, user: int, data: st.DataObject) -> None:
        """Use a handle, an old one or another's too: all else stays as it is."""
        record = self.mine(user)
        if record is None:
            return
        wait = wait_of(self.fleet.core, record)
        holders = wait.explanation.holders if wait is not None else ()
        self.handles += [one.handle for one in holders if one.handle]
        handle = data.draw(st.sampled_from(self.handles))
        before = self.looks()
        with suppress(RequestRefusedError):
            by = Actor(name=record.principal.name, role=ActorRole.USER)
            asked = releasing.ask(self.fleet.core, record, handle, by=by)
            assert asked.user_id == user
            assert record.state in WAITING
        assert self.looks() == before
        told = len(self.fleet.agents["box"].stops())
        self.fleet.cycle()
        assert len(self.fleet.agents["box"].stops()) == told
        held = {name: one for name, one in self.looks().items() if one.assignment}  # type: ignore[attr-defined]
        assert held == {name: one for name, one in before.items() if one.assignment}  # type: ignore[attr-defined]

    @rule(user=USERS)
    def end(self, user: int) -> None:
        """Leave the line, or let the machine say that it is over."""
        record = self.mine(user)
        if record is not None and record.state in WAITING:
            stopping.leave(self.fleet.core, record)
        elif record is not None and self.is_launched(record):
            self.fleet.agents["box"].report(allocation_of(record), AgentEvent.FAILED)
        self.fleet.clock.advance(1)
        self.fleet.cycle()

    def is_launched(self, record: Workload) -> bool:
        """Return whether the machine was told: a turn is not, until the Hub comes for it."""
        held = record.assignment
        return held is not None and held.allocation in self.fleet.agents["box"].launched

    @precondition(lambda self: self.fleet.agents)
    @rule()
    def kill(self) -> None:
        """Kill the controller; the agent dials the next one."""
        self.fleet = self.fleet.restarted()
        self.fleet.agents["box"].connect()
        give_gpus(self.fleet, 2)

    @invariant()
    def nobody_is_asked_twice_by_one_or_by_a_crowd(self) -> None:
        """Each by nobody but others, and each ask stands once in the timeline."""
        for record in self.all():
            asked = () if record.assignment is None else record.assignment.asked
            users = [one.user_id for one in asked]
            assert len(users) == len(set(users)) <= MOST_ASKERS
            assert record.principal.user_id not in users
            if record.assignment is not None:
                kept = self.fleet.store.events(record.id)
                wishes = [
                    event
                    for event in kept
                    if event.generation == record.generation
                    and event.explanation is not None
                    and event.explanation.reason is Reason.RELEASE_WISHED
                ]
                assert len(wishes) == len(users)

    @invariant()
    def a_handle_is_of_what_is_held_now(self) -> None:
        """And two holders never share one."""
        held = [one.assignment for one in self.all() if one.assignment is not None]
        assert len({handle_of(one.allocation) for one in held}) == len(held)


TestAskingMachine = AskingMachine.TestCase
TestAskingMachine.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None
)
