"""What a user is told of a wait or a "no", on a real controller: pages, REST, terminal."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from command_line import jupyter_fleet
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import Service, a_service
from page_visits import add_people, entries
from prometheus_client.parser import text_string_to_metric_families
from scripted_agent import ScriptedAgent
from service_browser import Browser

from fleet_hub.admission import OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

CATALOG = """\
classes:
  - {name: small, title: Small, cpu: 1, memory: 1G, limit: 1h}
  - {name: whole, title: Whole, cpu: 4, memory: 1G, limit: 1h}
  - {name: huge, title: Huge, cpu: 1000, memory: 10T}
  - {name: bench, title: Bench, cpu: 1, memory: 1G, labels: {role: bench, rack: r7}}
runtimes:
  - {name: python, title: Python, accelerators: [cpu], driver_refs: {native: secret-ref}}
profiles:
  - {name: jupyter, title: JupyterLab, classes: [small, whole, huge, bench],
     runtimes: [python]}
"""


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with people, a metrics reader and alice's box of four cores."""
    async with a_service(tmp_path) as running:
        add_people(running.hub)
        running.hub.users["hub-token-of-prometheus"] = {
            "kind": "service",
            "name": "prometheus",
            "scopes": ["read:metrics"],
        }
        await running.offers_from(CATALOG, "1000000")
        agent = ScriptedAgent(running, await running.enrol("box", "alice"), cores=4)
        await agent.connect()
        yield running


async def reasons(service: Service) -> dict[str, dict[str, float]]:
    """Return what the metrics count, by reason: who waits and who was refused."""
    answer = await service.fetch("metrics", token="token hub-token-of-prometheus")
    wanted = {
        "jupyterhub_fleet_waiting_reasons": "waiting",
        "jupyterhub_fleet_refusals": "refused",
    }
    found: dict[str, dict[str, float]] = {"waiting": {}, "refused": {}}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            kind = wanted.get(family.name)
            if kind and not sample.name.endswith("_created"):
                found[kind][sample.labels["reason"]] = sample.value
    return found


async def test_who_waits_and_who_can_never_run_look_different_wherever_they_are_listed(
    service: Service,
) -> None:
    """Line page, servers page, REST, terminal and metrics: busy is not never."""
    holder = await AttendedStart(service, an_ask(1, class_name="whole")).open()
    await holder.ended()
    busy = await AttendedStart(service, an_ask(2, class_name="whole")).open()
    await busy.until("waiting")
    never = await AttendedStart(service, an_ask(3, class_name="huge")).open()
    outcome = await never.ended()
    assert outcome.kind is OutcomeKind.REFUSED
    assert outcome.headline.startswith("No machine is that large in cpu: 1000 cores")
    waits, cannot = [(await service.status(f"1-{number}")) for number in (2, 3)]
    assert (waits["state"], cannot["state"]) == ("queued", "refused")
    _, page = await Browser(service, "root").visit("line")
    assert f"workloads/{waits['workload']}" in page
    assert f"workloads/{cannot['workload']}" not in page
    assert "too few cores are free" in unescape(page).lower()
    _, page = await Browser(service, "alice").visit(f"workloads/{cannot['workload']}")
    assert "This cannot run as asked" in page
    _, page = await Browser(service, "alice").visit(f"workloads/{waits['workload']}")
    assert "This cannot run as asked" not in page
    queue = json.loads((await jupyter_fleet(service, "queue", "--json")).out)
    assert [one["workload"] for one in queue["waiting"]] == [waits["workload"]]
    assert queue["waiting"][0]["why"]["kind"] == "busy"
    shown = [
        (await jupyter_fleet(service, "explain", one["workload"])).out
        for one in (waits, cannot)
    ]
    assert "(busy)" in shown[0]
    assert "✕ This cannot run as asked" in shown[1]
    told = await reasons(service)
    assert told["waiting"] == {"cpu_busy": 1}
    assert told["refused"]["exceeds_any_machine"] == 1


async def test_a_start_that_has_to_wait_hears_at_once_who_has_it_and_by_when_it_starts(
    service: Service,
) -> None:
    """And letting go ends with "your place is kept", however late the turn is."""
    holder = await AttendedStart(service, an_ask(1, class_name="whole")).open()
    await holder.ended()
    start = await AttendedStart(service, an_ask(2, class_name="whole")).open()
    first = await start.until("waiting")
    assert first.event.explanation is not None
    assert [one.owner for one in first.event.explanation.holders] == ["alice"]
    assert first.event.explanation.holders[0].ends_by is not None
    asked = next(one for one in start.updates if one.event.kind.value == "asked")
    assert (first.event.at - asked.event.at).total_seconds() < 1
    workload = (await service.status("1-2"))["workload"]
    _, page = await Browser(service, "alice").visit(f"workloads/{workload}")
    text = unescape(page)
    assert "held by you" in text
    assert "Starts no later than" in text
    outcome = await start.park()
    assert outcome.kind is OutcomeKind.PARKED
    status = await service.status("1-2")
    assert (status["state"], status["parked"]) == ("queued", True)
    assert status["explanation"]["reason"] == "cpu_busy"


async def test_a_label_that_nobody_has_is_told_by_name_until_an_admin_gives_it(
    service: Service,
) -> None:
    """In REST, in a terminal and on the page; then the very same ask starts."""
    question = "api/explain?profile=jupyter&class=bench"
    told = await service.json(question, token="token hub-token-of-alice")
    why = told["why"]["explanation"]
    assert (why["reason"], why["subject"]) == (
        "label_mismatch",
        "role=bench, rack=r7",
    )
    assert why["detail"] == "no machine has a label called role or rack"
    ran = await jupyter_fleet(service, "label", "box", "role=db", "rack=r7")
    assert (ran.status, ran.err) == (0, "")
    told = await service.json(question, token="token hub-token-of-alice")
    assert told["why"]["explanation"]["detail"] == (
        "no machine has this label and value; role is db"
    )
    [machine] = told["machines"]
    assert "role=bench (it has db)" in machine["why_not"]["sentence"]
    _, page = await Browser(service, "alice").visit("why?profile=jupyter")
    assert "role=bench (it has db)" in unescape(page)
    ran = await jupyter_fleet(service, "label", "box", "role")
    assert ran.status == 1
    assert "NAME=VALUE" in ran.err
    ran = await jupyter_fleet(service, "label", "box", "role=bench", "rack=r7")
    assert ran.out == "box: Its labels were changed.\n"
    start = await AttendedStart(
        service, an_ask(1, class_name="bench", principal=a_principal())
    ).open()
    assert (await start.ended()).kind is OutcomeKind.READY
    assert (await entries(service))[-1][1:] == ("labels_set", "box")
