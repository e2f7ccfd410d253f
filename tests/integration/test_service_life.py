"""The whole life of a server through the real service, with a scripted agent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from attended_start import AttendedStart
from fleet_controller import an_ask
from fleet_service import Service, a_service
from scripted_agent import ScriptedAgent
from service_process import CommandProcess
from small_hub import SmallHub

from fleet_contracts.protocol import AgentEvent, Welcome
from fleet_hub.admission import OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


async def test_from_asking_to_ready_to_stopped(tmp_path: Path) -> None:
    """Attend, place, launch, ready, stop: and the machine is free again."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        await agent.connect()
        start = await AttendedStart(service, an_ask()).open()
        outcome = await start.ended()
        assert outcome.kind is OutcomeKind.READY
        launch = agent.launches[0]
        assert outcome.url == f"http://127.0.0.1:9/{launch.allocation}/"
        assert start.kinds() == ["asked", "placed", "preparing", "starting", "ready"]
        assert launch.spec.environment["JUPYTERHUB_FLEET_URL"] == service.url

        status = await service.status()
        assert status["state"] == "ready"
        assert status["holds"] is True
        stopped = await service.json(
            "internal/servers/1-1/stop?wait=60", method="POST", body={"by": "user"}
        )
        assert stopped["state"] == "stopped"
        assert stopped["holds"] is False
        await agent.until(lambda: agent.ledger == {})
        await agent.hang_up()


async def test_the_command_of_the_hub_starts_and_ends(tmp_path: Path) -> None:
    """``python -m fleet_hub.service``, from a new interpreter."""
    hub = SmallHub()
    hub.listen()
    service = Service(tmp_path, hub)
    service.make_process = CommandProcess
    try:
        await service.start()
        assert await service.stop() == 0
    finally:
        await hub.close()
    assert "Traceback" not in service.log.read_text()


async def test_a_parked_turn_is_started_through_the_hub(tmp_path: Path) -> None:
    """The place is held, the Hub is asked without a body, and the start is launched."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        await agent.connect()
        first = await AttendedStart(service, an_ask(1, class_name="whole")).open()
        assert (await first.ended()).kind is OutcomeKind.READY
        second = await AttendedStart(service, an_ask(2, class_name="whole")).open()
        await second.until("waiting")
        parked = await second.park()
        assert parked.kind is OutcomeKind.PARKED
        assert (await service.status("1-2"))["parked"] is True

        await service.json("internal/servers/1-1/stop", method="POST", body={})
        await service.hub.wait_for(lambda: service.hub.starts != [])
        assert service.hub.starts == ["/users/alice/servers/server-2"]
        assert service.hub.start_bodies == [b""]
        assert len(agent.launches) == 1, "nothing is launched before the Hub comes"
        assert (await service.status("1-2"))["holds"] is True

        again = an_ask(2, class_name="whole", attempt="second")
        claimed = await AttendedStart(service, again).open()
        assert (await claimed.ended()).kind is OutcomeKind.READY
        launch = agent.launches[-1]
        assert launch.spec.environment["JUPYTERHUB_API_TOKEN"] == "hub-token-of-second"
        await agent.hang_up()


async def test_the_timeline_answers_within_a_moment_of_the_change(
    tmp_path: Path,
) -> None:
    """A long poll by the notebook's own token; its tag spares an unchanged answer."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        agent.is_automatic = False
        await agent.connect()
        start = await AttendedStart(service, an_ask()).open()
        await start.until("placed")
        launch = await agent.launched()
        token = "Fleet " + launch.spec.environment["JUPYTERHUB_FLEET_TIMELINE_TOKEN"]
        first = await service.fetch("api/timeline", token=token)
        document = json.loads(first.body)
        assert document["phase"] == "placed"
        assert "secret-ref" not in first.body.decode()
        tag = {"If-None-Match": first.headers["Etag"]}
        same = await service.fetch("api/timeline", token=token, headers=tag)
        assert same.code == 304

        poll = asyncio.create_task(
            service.fetch("api/timeline?wait=60", token=token, headers=tag)
        )
        await agent.report(launch, AgentEvent.ACCEPTED)
        changed = json.loads((await poll).body)
        assert changed["state"] == "preparing"
        assert changed["events"][-1]["kind"] == "preparing"
        start.close()
        await agent.hang_up()


async def test_a_revoked_timeline_token_reads_nothing(tmp_path: Path) -> None:
    """The token ends with the launch that it was made for."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        await agent.connect()
        await (await AttendedStart(service, an_ask()).open()).ended()
        environment = agent.launches[0].spec.environment
        token = "Fleet " + environment["JUPYTERHUB_FLEET_TIMELINE_TOKEN"]
        assert (await service.fetch("api/timeline", token=token)).code == 200
        view = "Fleet " + (await service.status())["view_token"]
        await service.json("internal/servers/1-1/stop?wait=60", method="POST", body={})
        assert (await service.fetch("api/timeline", token=token)).code == 401
        assert (await service.fetch("api/timeline", token=view)).code == 200
        assert (await service.fetch("api/timeline", token=view + "0")).code == 401
        await agent.hang_up()


async def test_who_knows_some_events_is_sent_the_later_ones_alone(
    tmp_path: Path,
) -> None:
    """A long timeline is not sent anew with each entry; the tag is that of the whole."""
    async with a_service(tmp_path) as service:
        service.hub.add_user("alice")
        start = await AttendedStart(service, an_ask()).open()
        await start.until("waiting")

        whole = await service.fetch("internal/servers/1-1/timeline")
        later = await service.fetch("internal/servers/1-1/timeline?after=1")

        assert [event["seq"] for event in json.loads(whole.body)["events"]] == [1, 2]
        assert [event["seq"] for event in json.loads(later.body)["events"]] == [2]
        assert later.headers["Etag"] == whole.headers["Etag"]


@pytest.mark.parametrize(("silence_seconds", "most"), [(3, 1.0), (30, 10.0)])
async def test_agents_speak_often_enough_that_one_late_word_is_no_silence(
    tmp_path: Path, silence_seconds: int, most: float
) -> None:
    """However short a silence an admin lets pass; else links would end all the time."""
    settings = json.dumps({"silence_seconds": silence_seconds})
    async with a_service(tmp_path, JUPYTERHUB_FLEET_SETTINGS=settings) as service:
        agent = ScriptedAgent(service, await service.enrol())
        await agent.connect()
        [welcome] = [item for item in agent.heard if isinstance(item, Welcome)]
        assert welcome.heartbeat_seconds == most
        await agent.hang_up()
