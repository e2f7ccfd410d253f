"""The admin's catalog, edited under a running controller."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from command_line import jupyter_fleet
from fleet_controller import an_ask
from fleet_service import CATALOG, Service, a_service
from patience import until_so
from scripted_agent import ScriptedAgent
from service_browser import Browser


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

ALICE = "token hub-token-of-alice"
ROOT = "token hub-token-of-root"


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with its catalog file, a user and an admin."""
    async with a_service(tmp_path) as running:
        running.hub.add_user("alice")
        running.hub.add_user("root", admin=True)
        yield running


async def told(service: Service, is_so: Callable[[dict[str, Any]], bool]) -> Any:
    """Return what an admin is told of the catalog, once *is_so*."""

    async def look() -> dict[str, Any] | None:
        document: dict[str, Any] = await service.json("api/catalog", token=ROOT)
        return document if is_so(document) else None

    return await until_so(look, "the catalog is told so")


async def test_an_edit_is_in_force_within_seconds_and_its_difference_is_shown(
    service: Service,
) -> None:
    """To the admin as a page, as JSON, in a terminal and in the log; without refs."""
    edited = CATALOG.replace("cpu: 1, memory: 1G", "cpu: 2, memory: 1G").replace(
        "{native: secret-ref}", "{native: secret-other}"
    )
    service.edit_catalog(edited)
    document = await told(service, lambda it: bool(it["reloads"]))
    expected = [
        "~ class small: cpu 1 → 2",
        "~ runtime python: driver_refs.native changed",
    ]
    assert [edit["text"] for edit in document["reloads"][0]["edits"]] == expected
    offered = await service.json("api/profiles", token=ALICE)
    assert offered["profiles"][0]["classes"][0]["cpu_milli"] == 2000
    _, page = await Browser(service, "root").visit("catalog")
    ran = await jupyter_fleet(service, "catalog", "status")
    assert ran.status == 0
    for text in (page, ran.out, service.log.read_text()):
        assert "small: cpu 1 → 2" in text
        assert "secret" not in text


async def test_a_bad_edit_changes_nothing_and_says_where_and_why(
    service: Service,
) -> None:
    """All faults at once with their lines, until the file is in order again."""
    before = await service.json("api/profiles", token=ALICE)
    broken = CATALOG.replace("cpu: 1,", "cpu: -1,").replace("[python]}", "[pyton]}")
    service.edit_catalog(broken)
    document = await told(service, lambda it: not it["is_in_use"])
    said = {fault["line"]: fault["message"] for fault in document["faults"]}
    lines = enumerate(broken.splitlines(), 1)
    at = {
        word: n for n, line in lines for word in ("cpu: -1", "[pyton]") if word in line
    }
    assert "-1" in said[at["cpu: -1"]]
    assert "'pyton'" in said[at["[pyton]"]]
    assert all(fault["remedy"] for fault in document["faults"])
    assert await service.json("api/profiles", token=ALICE) == before
    _, page = await Browser(service, "root").visit("catalog")
    ran = await jupyter_fleet(service, "catalog", "status", columns=60)
    assert ran.status == 1
    assert all(len(line) <= 60 for line in ran.out.splitlines()), ran.out
    log = service.log.read_text()
    for text in (page, " ".join(ran.out.split()), log):
        assert "pyton" in text
        assert "catalog.yaml:" in text
    ran = await jupyter_fleet(service, "catalog", "status", "--json")
    assert json.loads(ran.out)["faults"] == document["faults"]
    service.edit_catalog(CATALOG)
    document = await told(service, lambda it: it["is_in_use"])
    assert document["reloads"] == []


async def test_a_bad_edit_changes_nothing_through_a_restart_either(
    service: Service,
) -> None:
    """A controller that is killed meanwhile comes back, offers the same and says why."""
    service.edit_catalog(CATALOG.replace("title: Small", "title: Tiny"))
    await told(service, lambda it: bool(it["reloads"]))
    before = await service.json("api/profiles", token=ALICE)
    service.edit_catalog(CATALOG.replace("cpu: 1,", "cpu: -1,"))
    first = await told(service, lambda it: not it["is_in_use"])
    await service.kill_child()
    again = await service.json("api/catalog", token=ROOT)
    assert (again["is_in_use"], again["faults"]) == (False, first["faults"])
    assert again["loaded_at"] == first["loaded_at"]
    assert await service.json("api/profiles", token=ALICE) == before
    ran = await jupyter_fleet(service, "catalog", "status")
    assert ran.status == 1
    assert "stays in force" in " ".join(ran.out.split())
    service.edit_catalog(CATALOG)
    await told(service, lambda it: it["is_in_use"])


async def test_a_catalog_that_goes_away_stays_in_force_and_is_told_once(
    service: Service,
) -> None:
    """The log is not filled, and a file that comes back is read."""
    before = await service.json("api/profiles", token=ALICE)
    service.catalog.unlink()
    await told(service, lambda it: not it["is_in_use"])
    assert await service.json("api/profiles", token=ALICE) == before
    other = service.folder / "elsewhere.yaml"
    other.write_text(CATALOG.replace("title: Small", "title: Tiny"))
    other.rename(service.catalog)
    await told(service, lambda it: it["is_in_use"] and bool(it["reloads"]))
    assert service.log.read_text().count("catalog not reloaded") == 1


async def test_running_work_is_untouched_by_an_edit_that_removes_what_it_runs(
    service: Service,
) -> None:
    """It goes on, is told of, stops and is accounted; who waits for it is refused."""
    agent = ScriptedAgent(service, await service.enrol())
    await agent.connect()
    start = await AttendedStart(service, an_ask(class_name="whole")).open()
    ready = await start.ended()
    waiting = await AttendedStart(service, an_ask(2, class_name="whole")).open()
    await waiting.until("waiting")
    heard = len(agent.heard)
    smaller = CATALOG.replace(
        "  - {name: whole, title: Whole, cpu: 4, memory: 1G}\n", ""
    )
    smaller = smaller.replace("[small, whole]", "[small]")
    service.edit_catalog(smaller)
    outcome = await waiting.ended()
    assert outcome.explanation is not None
    assert outcome.explanation.reason.value == "class_unknown"
    status = await service.status()
    assert (status["state"], status["url"]) == ("ready", ready.url)
    assert len(agent.heard) == heard
    await service.kill_child()
    await agent.gone()
    await agent.connect()
    assert (await service.status())["state"] == "ready"
    stopped = await service.json(
        "internal/servers/1-1/stop?wait=60", method="POST", body={}
    )
    assert stopped["state"] == "stopped"
    (account,) = (await service.json("internal/usage"))["accounts"]
    assert account["class"] == "whole"
    await agent.hang_up()


async def test_a_folder_of_files_is_one_catalog_and_is_reloaded_as_one(
    tmp_path: Path,
) -> None:
    """Files are read by name; a new one counts, hidden ones do not."""
    folder = tmp_path / "catalog.d"
    folder.mkdir()
    classes, _, rest = CATALOG.partition("runtimes:")
    (folder / "10-classes.yaml").write_text(classes)
    (folder / "20-rest.yml").write_text("runtimes:" + rest)
    (folder / ".#20-rest.yml").symlink_to("nowhere")
    (folder / "notes.txt").write_text("not: [yaml")
    async with a_service(tmp_path, JUPYTERHUB_FLEET_CATALOG=str(folder)) as service:
        service.hub.add_user("alice")
        service.hub.add_user("root", admin=True)
        (folder / "30-more.yaml").write_text(
            "profiles:\n"
            "  - {name: more, classes: [small], runtimes: [python], version: '2'}\n"
        )
        document = await told(service, lambda it: bool(it["reloads"]))
        assert document["reloads"][0]["edits"][0]["text"] == "+ profile more"
        (folder / "30-more.yaml").write_text("profiles:\n  - {name: more}\n")
        document = await told(service, lambda it: not it["is_in_use"])
        assert all("30-more.yaml" in one["file"] for one in document["faults"])
        offered = await service.json("api/profiles", token=ALICE)
        versions = {one["name"]: one["version"] for one in offered["profiles"]}
        assert versions == {"jupyter": "1", "more": "2"}
