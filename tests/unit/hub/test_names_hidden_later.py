"""Names that were told before they were to be hidden are hidden with all others."""

from __future__ import annotations

import pytest
from controller_catalogs import through
from fake_agent import some_capabilities
from fleet_builders import a_principal
from fleet_controller import Fleet, an_ask

from fleet_contracts.catalog import Relation
from fleet_contracts.workloads import DriverName
from fleet_hub.admission import Update
from fleet_hub.controller import governing
from fleet_hub.controller.attendance import Attendance
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.exporting import state_of
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.controller.timelines import status_of, timeline_of


ROOT = Actor(name="root", role=ActorRole.ADMIN)


def a_wait_behind_alice() -> tuple[Fleet, Workload]:
    """Return a full machine, and bob's server that was told who holds it."""
    fleet = Fleet(catalog=through(DriverName.SIMULATION))
    fleet.machine(capabilities=some_capabilities(driver=DriverName.SIMULATION))
    for widen in (governing.set_audience, governing.set_lending):
        widen(fleet.core, ROOT, "box", Relation.GUEST)
    fleet.ask(1, class_name="whole")
    return fleet, fleet.ask(2, class_name="whole", principal=a_principal("bob", 2))


def read(fleet: Fleet, record: Workload) -> dict[str, str]:
    """Return what is told of *record* in each way, as JSON."""
    now = fleet.get(record)
    state = state_of(fleet.core, timelines=True)
    (subject,) = (one for one in state.workloads if one.workload == record.id)
    assert subject.explanation is not None
    return {
        "timeline": timeline_of(fleet.core, now).model_dump_json(),
        "status": status_of(fleet.core, now, view_token="").model_dump_json(),
        "state": subject.explanation.model_dump_json() + subject.headline,
        "exported": "".join(
            event.model_dump_json() for event in state.timelines[record.id]
        ),
    }


@pytest.mark.parametrize("visible", [True, False])
def test_turning_names_off_hides_those_that_were_told_before(*, visible: bool) -> None:
    """In each way in which they are read; turned on again they are back."""
    fleet, record = a_wait_behind_alice()
    named = read(fleet, record)
    assert {way: "alice" in text for way, text in named.items()} == dict.fromkeys(
        named, True
    )
    fleet._settings = Settings(names_visible=visible)
    again = fleet.restarted()
    again.agents["box"].connect()
    again.cycle()
    later = read(again, record)
    assert {way: "alice" in text for way, text in later.items()} == dict.fromkeys(
        later, visible
    )
    assert "whole" in later["timeline"]


@pytest.mark.asyncio
async def test_a_start_that_is_attended_again_reads_no_names_either() -> None:
    """What the Hub shows while somebody waits begins with what was told before."""
    fleet, record = a_wait_behind_alice()
    fleet._settings = Settings(names_visible=False)
    again = fleet.restarted()
    again.agents["box"].connect()
    again.cycle()
    heard: list[str] = []
    ask = an_ask(2, class_name="whole", principal=a_principal("bob", 2))
    attendance = Attendance(again.core, ask)
    async for update in attendance.messages():
        heard.append(update.model_dump_json())
        if (
            not isinstance(update, Update)
            or update.event.seq >= again.get(record).last_seq
        ):
            break
    assert len(heard) > 1
    assert "alice" not in "".join(heard)
