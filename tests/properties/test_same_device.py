"""Whatever two agents of one computer do and whenever, its card has one holder."""

from __future__ import annotations

from collections.abc import Callable

from fleet_controller import Fleet
from hypothesis import given, strategies as st
from shared_card import a_picture, asked, end, two_agents

from fleet_contracts.protocol import CapabilitiesChanged
from fleet_hub.controller import stopping
from fleet_hub.controller.ticking import tick


NAMES = ("box", "again")
OWN = {"box": "GPU-b", "again": "GPU-c"}
"""What each of them has beside the card that both name."""


def _ask(fleet: Fleet, name: str) -> None:
    asked(fleet, len(fleet.core.model.workloads) + 1)


def _serve(fleet: Fleet, name: str) -> None:
    agent = fleet.agents[name]
    if agent.session is not None:
        for allocation in agent.launched.keys() - agent.ledger.keys() - agent.ended:
            agent.serve(allocation)


def _end(fleet: Fleet, name: str) -> None:
    agent = fleet.agents[name]
    for record in list(fleet.core.model.holders(name)):
        assert record.assignment is not None
        if agent.session is not None and _runs(fleet, name, record.id):
            end(fleet, record)
            return


def _runs(fleet: Fleet, name: str, workload: str) -> bool:
    """Return whether the agent has what *workload* was given."""
    assignment = fleet.get(workload).assignment
    agent = fleet.agents[name]
    return (
        assignment is not None
        and assignment.allocation in agent.launched.keys() - agent.ended
    )


def _part(fleet: Fleet, name: str) -> None:
    if fleet.agents[name].session is not None:
        fleet.agents[name].disconnect()


def _meet(fleet: Fleet, name: str) -> None:
    if fleet.agents[name].session is None:
        fleet.agents[name].connect()


def _tell(*uuids: str, own: bool = False) -> Callable[[Fleet, str], None]:
    def tell(fleet: Fleet, name: str) -> None:
        agent = fleet.agents[name]
        agent.capabilities = a_picture(*uuids, *((OWN[name],) if own else ()))
        if agent.session is not None:
            agent.say(CapabilitiesChanged(capabilities=agent.capabilities))

    return tell


def _lose(fleet: Fleet, name: str) -> None:
    if fleet.agents[name].session is None:
        stopping.declare_lost(fleet.core, name)


def _wait(fleet: Fleet, name: str) -> None:
    fleet.clock.advance(200)
    tick(fleet.core)


DEEDS = {
    "ask": _ask,
    "serve": _serve,
    "end": _end,
    "part": _part,
    "meet": _meet,
    "name none": _tell(),
    "name the card": _tell("GPU-a"),
    "name two": _tell("GPU-a", own=True),
    "lose": _lose,
    "wait": _wait,
}


@given(
    steps=st.lists(
        st.tuples(st.sampled_from([*DEEDS, "restart"]), st.sampled_from(NAMES)),
        max_size=40,
    )
)
def test_a_card_that_two_machines_name_has_one_holder(
    steps: list[tuple[str, str]],
) -> None:
    """And no sweep finds anything that a change at the other machine had to bring up."""
    fleet = two_agents(*NAMES)
    for deed, name in steps:
        if deed == "restart":
            fleet = fleet.restarted()
        else:
            DEEDS[deed](fleet, name)
        fleet.core.attended.update(dict.fromkeys(fleet.core.model.workloads, 1))
        fleet.cycle()
        held = [
            uuid
            for record in fleet.core.model.workloads.values()
            if record.holds and record.assignment is not None
            for uuid in record.assignment.resources.devices
        ]
        assert len(held) == len(set(held))
        assert fleet.core.engine.sweep(fleet.clock.now(), most=2) == 0
