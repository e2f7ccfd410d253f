"""Refs are for operators: no answer, page, export, URL, log line or metric has one.

The catalog is full of unmistakable refs, the machine speaks of its environments by
them, and its agent even puts one into what it tells users.  Then everything that can
be read is read.  Excepted is what a machine says of itself, to its own owner and to
admins, who operate the fleet.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from command_line import jupyter_fleet
from fleet_builders import NOON, a_principal
from fleet_controller import an_ask
from fleet_service import Service, a_service
from scripted_agent import ScriptedAgent
from service_browser import Browser
from small_hub import PREFIX
from tornado.web import RequestHandler

from fleet_contracts.capabilities import AgentDriver, Framework, TorchFacts
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress
from fleet_hub.cli import parser
from fleet_hub.service.web import routes


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

MARK = "LEAKED"
NATIVE = f"environment-{MARK}"
CATALOG = f"""\
classes:
  - {{name: small, title: Small, cpu: 1, memory: 1G}}
  - {{name: whole, title: Whole, cpu: 4, memory: 1G}}
runtimes:
  - name: older
    accelerators: [cpu]
    ref: registry.example/{MARK}/legacy:1
    container_ref: registry.example/{MARK}/container:2
  - name: python
    accelerators: [cpu]
    ref: registry.example/{MARK}/default:3
    driver_refs: {{native: {NATIVE}, docker: "registry.example/{MARK}/docker:4"}}
profiles:
  - {{name: old, classes: [small], runtimes: [older]}}
  - {{name: jupyter, classes: [small, whole], runtimes: [python]}}
"""
MAPLESS = re.sub(r"    driver_refs: .*\n", "", CATALOG)

MOVING = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+|[0-9:]{5,8} UTC"
    r"|(?:[0-9]+ (?:s|min|h)\b ?)+|PT[0-9]+S|seconds\": ?[0-9.]+|[0-9]+[.][0-9]+"
    r"|(?:xsrf|news)=\"[^\"]*\"|name=\"_xsrf\" value=\"[^\"]*\""
)
"""The time of day, what it measures, and what is new on each page."""

EVERYBODY = ("alice", "bob", "root")
OWN_MACHINE = frozenset({"machines", "machines/box", "api/machines"})
"""A machine's own word: for its owner and admins, environments by name included."""
NOT_WALKED = frozenset(
    {
        *("agent", "internal/attend", "oauth_callback", "api/enrol", "news"),
        # between agents alone: a user's own files, as they are
        *("agent/files/a/1/send", "agent/files/a/1/receive"),
    }
)
"""WebSockets, which are read below, and what answers no GET."""
WALK = (
    "",
    "health",
    "metrics",
    "catalog",
    "machines",
    "workloads/WORKLOAD",
    "workloads/WORKLOAD/why",
    "why?profile=jupyter",
    "why?profile=old",
    "machines/box",
    "usage",
    "line",
    "holds",
    "decisions",
    "profiles",
    "audit",
    "assets/timeline.js",
    "static/fleet.js",
    "api/profiles",
    "api/machines",
    "api/timeline",
    "api/usage",
    "api/usage?format=csv",
    "api/queue",
    "api/export",
    "api/catalog",
    "api/audit",
    "api/explain?profile=jupyter&class=small",
    "api/explain?profile=old",
    "api/explain?workload=WORKLOAD",
    "api/workloads/WORKLOAD/explain",
    "api/workloads/WORKLOAD/timeline",
    "internal/servers/1-1",
    "internal/servers/1-1/timeline",
    "internal/explain?workload=WORKLOAD",
    "internal/explain?profile=old&user=zoe",
    "internal/queue",
    "internal/export",
    "internal/usage",
    "internal/catalog",
    "internal/codes",
    "internal/audit",
    "internal/machines",
    "nothing/here",
)
TABLES = ("line", "holds", "machines", "audit", "profiles", "usage")
"""Pages that a table can be taken away from; a page without one is as it was."""
TAKEN = ("format=csv", "format=json", "q=registry", "sort=-name&from=1&since=1d")
COMMANDS = (
    ("explain", "WORKLOAD"),
    ("explain", "WORKLOAD", "--json"),
    ("explain", "WORKLOAD", "--state", "EXPORT"),
    ("explain", "--profile", "old", "--user", "alice"),
    ("explain", "--profile", "old", "--user", "alice", "--state", "EXPORT", "--json"),
    ("queue",),
    ("queue", "--json"),
    ("queue", "--state", "EXPORT"),
    ("export",),
    ("usage",),
    ("usage", "--csv"),
    ("audit",),
    ("audit", "--json"),
    ("catalog", "status"),
    ("catalog", "status", "--json"),
)
DO_MORE = frozenset(
    {
        # they begin something, and print a code, a name or nothing
        *("run", "demo", "login-code", "redetect", "enrol", "drain", "resume"),
        *("rotate", "revoke", "lost", "audience", "members", "label"),
        # an admin's, of machines' own words: see above
        "machines",
    }
)
"""Commands that are not walked."""


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service that offers what ``CATALOG`` says, with three people."""
    async with a_service(tmp_path) as running:
        for name in ("alice", "bob"):
            running.hub.add_user(name)
        running.hub.add_user("root", admin=True)
        running.hub.users["hub-token-of-metrics"] = {
            "kind": "service",
            "name": "prometheus",
            "scopes": ["read:metrics"],
        }
        await running.offers_from(CATALOG, '"old"')
        yield running


async def an_indiscreet_agent(service: Service) -> ScriptedAgent:
    """Return an agent that speaks of refs wherever it may speak."""
    agent = ScriptedAgent(service, await service.enrol())
    observed = {"observed": {"source": "test", "observed_at": NOON}}
    agent.more = {
        "frameworks": [
            Framework.model_validate(
                {"name": "torch", "version": "2.4", "environment": NATIVE} | observed
            ).model_dump(mode="json")
        ],
        "torch": [
            TorchFacts.model_validate(
                {"environment": NATIVE, "cuda": False} | observed
            ).model_dump(mode="json")
        ],
    }
    agent.is_automatic = False
    await agent.connect()
    return agent


def told_with_the_ref() -> Explanation:
    """Return an explanation that no agent should give."""
    return Explanation(
        reason=Reason.ENVIRONMENT_BROKEN,
        subject=NATIVE,
        detail=f"the environment {NATIVE} is damaged; pull {NATIVE}.",
    )


def assert_clean(what: str, *texts: str) -> None:
    """Fail where one of *texts* holds a ref."""
    for text in texts:
        where = text.find(MARK)
        assert where < 0, (what, text[max(0, where - 80) : where + 40])


async def read_everything(service: Service, workload: str) -> None:
    """Fail where anything that can be read holds a ref."""
    view = (await service.status())["view_token"]
    tokens = {name: f"token hub-token-of-{name}" for name in (*EVERYBODY, "metrics")}
    tokens |= {"spawner": "Bearer spawner-secret-of-the-test", "view": f"Fleet {view}"}
    browsers = {name: Browser(service, name) for name in EVERYBODY}
    tables = (f"{page}?{how}" for page in TABLES for how in TAKEN)
    for path in (item.replace("WORKLOAD", workload) for item in (*WALK, *tables)):
        excepted = path.partition("?")[0].removeprefix("internal/") in OWN_MACHINE
        for who, token in tokens.items():
            if excepted and who != "bob":
                continue
            response = await service.fetch(path, token=token)
            headers = json.dumps(dict(response.headers.get_all()))
            assert_clean(f"{path} as {who}", response.body.decode(), headers)
        for who, browser in browsers.items():
            if not (excepted and who != "bob"):
                _, page = await browser.visit(path)
                assert_clean(f"{path} in the browser of {who}", page)
    export = service.folder / "export.json"
    await jupyter_fleet(service, "export", "--output", str(export))
    assert_clean("an export", export.read_text())
    for words in COMMANDS:
        values = {"WORKLOAD": workload, "EXPORT": str(export)}
        command = [values.get(word, word) for word in words]
        ran = await jupyter_fleet(service, *command)
        assert ran.out, (command, ran.err)
        assert_clean(f"jupyter-fleet {' '.join(command)}", ran.out, ran.err)
    for principal in (a_principal(), a_principal("bob", 2)):
        for path, body in (
            ("internal/offers", {"principal": principal.model_dump()}),
            (
                "internal/validate",
                {"principal": principal.model_dump(), "options": {"profile": "old"}},
            ),
        ):
            response = await service.fetch(path, method="POST", body=body)
            assert_clean(path, response.body.decode())
    assert_clean("the log", service.log.read_text())


async def test_no_ref_is_in_anything_that_can_be_read(service: Service) -> None:
    """While it prepares, runs, fails, waits and is refused; and after a restart."""
    agent = await an_indiscreet_agent(service)
    start = await AttendedStart(service, an_ask(class_name="whole")).open()
    launch = await agent.launched()
    assert launch.spec.runtime.ref == NATIVE
    workload = (await service.status())["workload"]
    await agent.report(launch, AgentEvent.ACCEPTED)
    await agent.report(
        launch,
        AgentEvent.PROGRESS,
        progress=Progress(step=f"pull {NATIVE}", unit=f"layers of {NATIVE}"),
    )
    await agent.report(launch, AgentEvent.NOTE, explanation=told_with_the_ref())
    await start.until("note")
    await read_everything(service, workload)

    waiting = await AttendedStart(service, an_ask(2)).open()
    await waiting.until("waiting")
    second = (await service.status("1-2"))["workload"]
    refused = await AttendedStart(
        service, an_ask(3, principal=a_principal("bob", 2), profile="old")
    ).open()
    await refused.ended()
    await read_everything(service, second)

    await agent.report(launch, AgentEvent.FAILED, explanation=told_with_the_ref())
    outcome = await start.ended()
    assert outcome.explanation is not None
    assert outcome.explanation.detail == (
        "the environment the runtime is damaged; pull the runtime."
    )
    for attended in (start, waiting, refused):
        for message in (*attended.updates, attended.outcome):
            if message is not None:
                assert_clean("an attended start", message.model_dump_json())
    await service.kill_child()
    await agent.gone()
    await read_everything(service, workload)
    # The truth itself has them: without this the test would prove nothing.
    assert MARK.encode() in b"".join(
        file.read_bytes() for file in service.store.parent.glob("store.sqlite*")
    )


async def test_the_walk_reads_every_route_that_can_be_read() -> None:
    """A new answer is walked, or this fails."""

    class _Nothing:
        prefix = PREFIX
        core = registry = transfers = None

    walked = {item.partition("?")[0].replace("WORKLOAD", "x") for item in WALK}
    for pattern, handler, *_ in routes(_Nothing()):  # type: ignore[arg-type]
        if handler.get is RequestHandler.get:
            continue
        paths = walked | NOT_WALKED
        assert any(re.fullmatch(pattern, PREFIX + path) for path in paths), pattern


async def test_the_walk_runs_every_command_that_prints_something() -> None:
    """A new command is run, or named as one that does something else."""
    (actions,) = (it for it in parser()._actions if isinstance(it.choices, dict))
    assert set(actions.choices or ()) == {words[0] for words in COMMANDS} | DO_MORE


async def test_what_a_user_gets_is_the_same_with_and_without_maps(
    service: Service,
) -> None:
    """Byte for byte but for the time of day, whatever refs stand behind it.

    The machine offers what takes the default ref: with maps or without, it runs the
    same.  One server runs, another waits, and one cannot be had.
    """
    agent = ScriptedAgent(service, await service.enrol())
    simulation = {"name": "simulation", "usable": True}
    observed = {"observed": {"source": "test", "observed_at": NOON}}
    agent.more = {
        "drivers": [
            AgentDriver.model_validate(simulation | observed).model_dump(mode="json")
        ]
    }
    await agent.connect()
    running = await AttendedStart(service, an_ask(class_name="whole")).open()
    await running.ended()
    waiting = await AttendedStart(service, an_ask(2)).open()
    await waiting.until("waiting")
    workloads = [(await service.status(key))["workload"] for key in ("1-1", "1-2")]
    with_maps = await read_as_users(service, CATALOG, workloads)
    read = {path for path, _, _ in with_maps}
    assert {path for path in read if path.startswith("api/")} >= {
        "api/profiles",
        "api/timeline",
        "api/explain?profile=jupyter&class=small",
        f"api/workloads/{workloads[1]}/explain",
    }
    assert (
        "too few cores are free"
        in with_maps[f"workloads/{workloads[1]}", "alice", "page"]
    )
    for catalog in (MAPLESS, CATALOG.replace(MARK, "ELSEWHERE")):
        without = await read_as_users(service, catalog, workloads)
        differ = [(asked, text, without[asked]) for asked, text in with_maps.items()]
        assert [it for it in differ if it[1] != it[2]] == []


async def read_as_users(
    service: Service, catalog: str, workloads: list[str]
) -> dict[tuple[str, str, str], str]:
    """Return what users get while *catalog* is in force: every answer and page."""
    await service.offers_from(catalog.replace("title: Small", "title: Other"), "Other")
    await service.offers_from(catalog, '"Small"')
    browsers = {name: Browser(service, name) for name in ("alice", "bob")}
    got = {}
    for path in WALK:
        if path.startswith("internal/"):
            continue
        named = [path.replace("WORKLOAD", name) for name in workloads]
        for asked, (who, browser) in product(dict.fromkeys(named), browsers.items()):
            token = f"token hub-token-of-{who}"
            answered = await service.fetch(asked, token=token)
            _, page = await browser.visit(asked)
            for how, text in (("json", answered.body.decode()), ("page", page)):
                got[asked, who, how] = MOVING.sub("", text)
    return got
