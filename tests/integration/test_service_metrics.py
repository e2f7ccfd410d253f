"""What Prometheus reads of a real controller: true, sparing with names, and guarded."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import Service, a_service
from prometheus_client.parser import text_string_to_metric_families
from scripted_agent import ScriptedAgent
from service_browser import Browser

from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

READER = "token hub-token-of-prometheus"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with a metrics reader, which is a service, and people."""
    async with a_service(tmp_path) as running:
        running.hub.add_user("alice")
        running.hub.add_user("root", admin=True)
        running.hub.users["hub-token-of-prometheus"] = {
            "kind": "service",
            "name": "prometheus",
            "scopes": ["read:metrics"],
        }
        yield running


async def read(service: Service) -> Samples:
    """Return every sample, by its name and labels."""
    response = await service.fetch("metrics", token=READER)
    assert response.code == 200, response.body
    assert response.headers["Content-Type"].startswith("text/plain")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(response.body.decode())
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """Return one sample; ``class_`` stands for the label class."""
    named = {key.rstrip("_"): item for key, item in labels.items()}
    return samples[f"jupyterhub_fleet_{name}", tuple(sorted(named.items()))]


async def test_the_line_waits_reasons_holds_and_decisions_are_told(
    service: Service,
) -> None:
    """From an idle fleet through a full one to a release."""
    idle = await read(service)
    for name in (
        *("waiting", "held_devices", "held_cpu_cores", "placements_total"),
        *("allocation_seconds_total", "wait_seconds_count", "start_seconds_count"),
    ):
        assert value(idle, name, class_="small") == 0
    assert value(idle, "held", class_="small", state="ready") == 0
    assert value(idle, "likely_starts_total", came="later") == 0
    assert value(idle, "machines", state="ready") == 0
    agent = ScriptedAgent(service, await service.enrol())
    await agent.connect()
    first = await AttendedStart(service, an_ask(class_name="whole")).open()
    await first.ended()
    second = await AttendedStart(service, an_ask(2)).open()
    await second.until("waiting")
    full = await read(service)
    assert value(full, "machines", state="ready") == 1
    assert value(full, "waiting", class_="small") == 1
    assert value(full, "waiting_oldest_seconds", class_="small") > 0
    assert value(full, "waiting_reasons", class_="small", reason="cpu_busy") == 1
    assert value(full, "held", class_="whole", state="ready") == 1
    assert value(full, "held_cpu_cores", class_="whole") == 4
    assert value(full, "cpu_cores") == 4
    assert value(full, "placements_total", class_="whole") == 1
    assert value(full, "wait_seconds_count", class_="whole") == 1
    assert value(full, "start_seconds_count", class_="whole") == 1
    assert value(full, "waits_total", reason="cpu_busy") == 1
    assert value(full, "decision_seconds_count") >= 1
    assert value(full, "sweep_rescues_total") == 0
    await service.json("internal/servers/1-1/stop?wait=60", method="POST", body={})
    await second.ended()
    after = await read(service)
    assert value(after, "waiting", class_="small") == 0
    assert value(after, "held_cpu_cores", class_="whole") == 0
    accounts = (await service.json("internal/usage"))["accounts"]
    (whole,) = (one["seconds"] for one in accounts if one["class"] == "whole")
    assert whole > 0
    counted = value(after, "allocation_seconds_total", class_="whole")
    assert counted == pytest.approx(whole, abs=1e-6)
    assert value(after, "ends_total", reason="stopped_by_user") == 1
    assert value(after, "wait_seconds_sum", class_="small") > 0
    await agent.hang_up()


async def test_refusals_are_counted_by_their_code(service: Service) -> None:
    """What nobody may run is seen by the operator too."""
    agent = ScriptedAgent(service, await service.enrol())
    await agent.connect()
    bob = a_principal("bob", 2)
    start = await AttendedStart(service, an_ask(principal=bob)).open()
    await start.ended()
    samples = await read(service)
    assert value(samples, "refusals_total", reason="isolation_too_weak") == 1
    await agent.hang_up()


async def test_no_label_names_a_person_a_machine_a_workload_or_a_ref(
    service: Service,
) -> None:
    """Labels are few and known: classes, states, codes and kinds of device."""
    agent = ScriptedAgent(service, await service.enrol("marker-machine"))
    await agent.connect()
    start = await AttendedStart(service, an_ask(class_name="whole")).open()
    await start.ended()
    waiting = await AttendedStart(service, an_ask(2)).open()
    await waiting.until("waiting")
    workload = (await service.status())["workload"]
    launch = await agent.launched()
    # A machine is its owner's and says what it likes, of promises as well.
    invented = Explanation(reason=Reason.PROMISE_BROKEN, subject="invented-label")
    await agent.report(launch, AgentEvent.NOTE, explanation=invented)
    await agent.report(
        launch, AgentEvent.FAILED, explanation=Explanation(reason=Reason.OUT_OF_MEMORY)
    )
    await agent.launched(2)
    failed = value(await read(service), "failures_total", reason="out_of_memory")
    assert failed == 1
    response = await service.fetch("metrics", token=READER)
    text = response.body.decode()
    for secret in (
        *("alice", "marker-machine", workload, "secret-ref", "hub-token"),
        "invented-label",
    ):
        assert secret not in text
    names = set(re.findall(r'([a-z_]+)="', text))
    assert names <= {
        "accelerator",
        "came",
        "class",
        "le",
        "reason",
        "state",
        "usable",
        "version",
    }
    await agent.hang_up()


async def test_every_name_is_as_prometheus_wants_it(service: Service) -> None:
    """One prefix, base units in the name, counters that end with total, and a help."""
    response = await service.fetch("metrics", token=READER)
    families = list(text_string_to_metric_families(response.body.decode()))
    ours = [it for it in families if not it.name.startswith("process_")]
    assert len(ours) > 20
    for family in ours:
        assert family.name.startswith("jupyterhub_fleet"), family.name
        assert re.fullmatch(r"[a-z][a-z0-9_]*", family.name)
        assert family.documentation.endswith("."), family.name
        words = set(family.name.split("_"))
        assert not words & {"ms", "milliseconds", "minutes", "mib", "gib", "percent"}
        assert not words & {"created", "count", "sum", "bucket"}
        assert (family.type == "counter") is any(
            sample.name.endswith("_total") for sample in family.samples
        ) or not family.samples
        if "time" in family.documentation.lower().split()[:1]:
            assert "seconds" in words


async def test_metrics_are_for_whoever_may_read_the_hubs_own(service: Service) -> None:
    """A token with the scope, of a person or a service; and an admin in a browser."""
    service.hub.users["hub-token-of-reading-root"] = {
        "kind": "user",
        "name": "root",
        "admin": True,
        "groups": [],
        "scopes": ["read:metrics", "list:users"],
    }
    for token, expected in (
        (READER, 200),
        ("Bearer hub-token-of-prometheus", 200),
        ("token hub-token-of-reading-root", 200),
        ("token hub-token-of-alice", 403),
        ("token hub-token-of-root", 403),
        ("token wrong", 403),
        ("Bearer spawner-secret-of-the-test", 403),
        (None, 403),
    ):
        response = await service.fetch("metrics", token=token)
        assert response.code == expected, token
        if expected == 403:
            assert "read:metrics" in response.body.decode()
    for name, expected in (("root", 200), ("alice", 403)):
        browser = Browser(service, name)
        # Metrics lead nobody to the log-in: a page does that first.
        await browser.visit("")
        code, _ = await browser.visit("metrics")
        assert code == expected, name


async def test_metrics_are_open_where_the_hubs_own_are(tmp_path: Path) -> None:
    """One setting of the Hub decides about both."""
    async with a_service(tmp_path, JUPYTERHUB_FLEET_OPEN_METRICS="1") as service:
        response = await service.fetch("metrics", token=None)
        assert response.code == 200
        assert b"jupyterhub_fleet_waiting" in response.body
