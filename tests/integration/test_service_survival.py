"""kill -9 of the controller at every step: nothing lost, nothing held twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from attended_start import AttendedStart
from fleet_controller import an_ask
from fleet_service import Service, a_service
from patience import PATIENCE, until_so
from scripted_agent import ScriptedAgent
from service_process import ServiceProcess
from small_hub import SECRET, SmallHub

from fleet_contracts.protocol import AgentEvent
from fleet_contracts.timeline import Progress
from fleet_hub.admission import OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


async def reconnected(agent: ScriptedAgent) -> None:
    """Dial again after the controller was killed, as agents do."""
    await agent.gone()
    await agent.connect()
    assert agent.link is not None, agent.heard[-1:]


async def ended(process: ServiceProcess) -> int:
    """Return the exit status; a process that does not end is killed."""
    try:
        return await asyncio.to_thread(process.wait, PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


async def holds(service: Service, key: str) -> None:
    """Return once the server *key* holds a machine."""

    async def holding() -> bool:
        return bool((await service.status(key))["holds"])

    await until_so(holding, f"{key} holds a machine")


async def test_a_kill_while_several_wait_keeps_the_order_of_the_line(
    tmp_path: Path,
) -> None:
    """Who asked first is still first, and gets the machine when it is free."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        await agent.connect()
        first = await AttendedStart(service, an_ask(1, class_name="whole")).open()
        assert (await first.ended()).kind is OutcomeKind.READY
        for server in (3, 2, 4):
            waiting = an_ask(server, class_name="whole")
            start = await AttendedStart(service, waiting).open()
            await start.until("waiting")
        await service.kill_child()
        await reconnected(agent)
        again = {
            server: await AttendedStart(
                service, an_ask(server, class_name="whole")
            ).open()
            for server in (4, 2, 3)
        }
        for server in (3, 2, 4):
            status = await service.status(f"1-{server}")
            assert status["state"] == "queued"
        held = 1
        for server in (3, 2, 4):
            await service.json(
                f"internal/servers/1-{held}/stop?wait=60", method="POST", body={}
            )
            assert (await again[server].ended()).kind is OutcomeKind.READY
            held = server
        assert len(agent.launches) == 4
        await agent.hang_up()


async def test_a_hub_that_dies_while_it_waits_is_asked_when_the_turn_comes(
    tmp_path: Path,
) -> None:
    """A socket that closes without a word gives nothing back, and keeps the place."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        await agent.connect()
        await (
            await AttendedStart(service, an_ask(1, class_name="whole")).open()
        ).ended()
        second = await AttendedStart(service, an_ask(2, class_name="whole")).open()
        await second.until("waiting")
        second.close()
        await service.hub.close()
        await service.json("internal/servers/1-1/stop?wait=60", method="POST", body={})
        await holds(service, "1-2")
        assert len(agent.launches) == 1
        service.hub.listen()
        await service.hub.wait_for(lambda: service.hub.starts != [])
        again = an_ask(2, class_name="whole", attempt="second")
        claimed = await AttendedStart(service, again).open()
        assert (await claimed.ended()).kind is OutcomeKind.READY
        assert len(agent.launches) == 2
        await agent.hang_up()


async def test_a_kill_after_placing_sends_the_launch_again(tmp_path: Path) -> None:
    """A launch that nobody acknowledged is repeated with the same epoch, once."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        agent.is_automatic = False
        await agent.connect()
        request = an_ask()
        start = await AttendedStart(service, request).open()
        await start.until("placed")
        launch = await agent.launched()
        await service.kill_child()
        agent.is_automatic = True
        await reconnected(agent)
        again = await AttendedStart(service, request).open()
        assert (await again.ended()).kind is OutcomeKind.READY
        repeated = await agent.launched(2)
        assert (repeated.allocation, repeated.epoch) == (
            launch.allocation,
            launch.epoch,
        )
        assert repeated.spec.environment == launch.spec.environment
        assert again.kinds() == ["asked", "placed", "preparing", "starting", "ready"]
        await agent.hang_up()


async def test_a_kill_while_preparing_keeps_the_place_and_the_attempt(
    tmp_path: Path,
) -> None:
    """The Spawner comes back with the same attempt and sees the same preparation."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        agent.is_automatic = False
        await agent.connect()
        request = an_ask()
        start = await AttendedStart(service, request).open()
        launch = await agent.launched()
        await agent.report(launch, AgentEvent.ACCEPTED)
        await start.until("preparing")
        await agent.report(
            launch,
            AgentEvent.PROGRESS,
            progress=Progress(step="install_packages", done=3, total=9),
        )
        await start.until("progress")
        await service.kill_child()
        # What happens meanwhile is told after the next hello.
        await agent.gone()
        await agent.report(launch, AgentEvent.PREPARED)
        status = await service.status()
        assert (status["state"], status["holds"]) == ("preparing", True)
        await agent.connect()
        again = await AttendedStart(service, request).open()
        await again.until("starting")
        await agent.report(
            launch, AgentEvent.SERVING, url="http://127.0.0.1:9/notebook/"
        )
        assert (await again.ended()).url == "http://127.0.0.1:9/notebook/"
        kinds = ["asked", "placed", "preparing", "progress", "starting", "ready"]
        assert again.kinds() == kinds
        assert agent.outbox == []
        await agent.hang_up()


async def test_a_kill_while_a_notebook_runs_costs_nobody_anything(
    tmp_path: Path,
) -> None:
    """It is still ready, and what it holds is not given to the next."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        await agent.connect()
        start = await AttendedStart(service, an_ask(class_name="whole")).open()
        url = (await start.ended()).url
        await service.kill_child()
        status = await service.status()
        assert (status["state"], status["url"]) == ("ready", url)
        other = await AttendedStart(service, an_ask(2, class_name="whole")).open()
        waiting = await other.until("waiting")
        assert waiting.event.explanation is not None
        assert waiting.event.explanation.reason.value == "controller_recovering"
        await reconnected(agent)
        await other.until("waiting")
        assert (await service.status())["state"] == "ready"
        assert (await service.status("1-2"))["holds"] is False
        assert len(agent.launches) == 1
        await agent.hang_up()


async def test_a_kill_while_stopping_still_ends_it(tmp_path: Path) -> None:
    """The intent was durable before the message: the stop is told again."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        await agent.connect()
        await (await AttendedStart(service, an_ask()).open()).ended()
        agent.is_automatic = False
        stopping = await service.json(
            "internal/servers/1-1/stop", method="POST", body={"by": "hub"}
        )
        assert (stopping["state"], stopping["holds"]) == ("stopping", True)
        await service.kill_child()
        assert (await service.status())["holds"] is True
        agent.is_automatic = True
        ended = asyncio.create_task(service.status(query="?wait=60&until=settled"))
        await reconnected(agent)
        assert (await ended)["state"] == "stopped"
        stops = [message for message in agent.heard if message.type == "stop"]
        assert len(stops) == 2
        await agent.hang_up()


async def test_a_place_that_waits_for_its_claim_survives(tmp_path: Path) -> None:
    """The Hub is asked again, and nothing is launched before it comes."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        await agent.connect()
        await (
            await AttendedStart(service, an_ask(1, class_name="whole")).open()
        ).ended()
        second = await AttendedStart(service, an_ask(2, class_name="whole")).open()
        await second.until("waiting")
        await second.park()
        await service.hub.close()
        await service.json("internal/servers/1-1/stop?wait=60", method="POST", body={})
        await holds(service, "1-2")
        await service.kill_child()
        assert (await service.status("1-2"))["holds"] is True
        await reconnected(agent)
        service.hub.listen()
        await service.hub.wait_for(lambda: service.hub.starts != [])
        again = an_ask(2, class_name="whole", attempt="second")
        claimed = await AttendedStart(service, again).open()
        assert (await claimed.ended()).kind is OutcomeKind.READY
        await agent.hang_up()


async def test_the_death_of_the_supervisor_takes_the_controller_along(
    tmp_path: Path,
) -> None:
    """A killed Hub kills its supervisor; nobody is left who writes or listens."""
    async with a_service(tmp_path) as service:
        child = service.child()
        assert service.process is not None
        service.process.kill()
        await asyncio.to_thread(service.process.wait, PATIENCE)
        await until_so(lambda: _is_gone(child), "the controller is gone")
        await service.start()
        assert (await service.fetch("health")).code == 200


def _is_gone(pid: int) -> bool:
    """Say whether *pid* has ended, waited for or not."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


async def test_a_signal_ends_it_quickly_and_frees_the_store(tmp_path: Path) -> None:
    """The Hub's own way to stop its services."""
    async with a_service(tmp_path) as service:
        agent = ScriptedAgent(service, await service.enrol())
        await agent.connect()
        assert await service.stop() == 0
        assert service.process is not None
        await service.start()
        os.kill(service.process.pid, signal.SIGTERM)
        assert await asyncio.to_thread(service.process.wait, PATIENCE) == 0


async def test_a_second_controller_refuses_to_write(tmp_path: Path) -> None:
    """It names the process that does, and the first one goes on."""
    async with a_service(tmp_path) as service:
        second = Service(tmp_path, service.hub, FLEET_TEST="second")
        process = second.spawn()
        status = await ended(process)
        assert status == 3
        assert f"process {service.child()}" in second.log.read_text()
        assert (await service.fetch("health")).code == 200


async def test_a_taken_port_is_a_clear_error(tmp_path: Path) -> None:
    """It says which port, and what to do."""
    async with a_service(tmp_path / "first") as service:
        second = Service(tmp_path / "second", service.hub)
        second.port = service.port
        process = second.spawn()
        assert await ended(process) == 3
        text = second.log.read_text()
        assert f"port {service.port} on 127.0.0.1 is in use" in text
        assert "Traceback" not in text


async def test_a_wrong_setting_is_a_clear_error(tmp_path: Path) -> None:
    """It says which; starting again and again would mend nothing."""
    hub = SmallHub()
    hub.listen()
    service = Service(
        tmp_path, hub, JUPYTERHUB_FLEET_SETTINGS='{"open_seconds": "soon"}'
    )
    process = service.spawn()
    try:
        assert await ended(process) == 3
    finally:
        await hub.close()
    text = service.log.read_text()
    assert "a wrong setting: The 'open_seconds' trait" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("content", [b"nonsense " * 1000, b"SQLite format 3\0" * 40])
async def test_a_damaged_store_stops_the_service_and_is_kept(
    tmp_path: Path, content: bytes
) -> None:
    """The operator reads the path and the remedy; the file is as it was."""
    hub = SmallHub()
    hub.listen()
    service = Service(tmp_path, hub)
    service.store.write_bytes(content)
    process = service.spawn()
    try:
        assert await ended(process) == 3
    finally:
        await hub.close()
    text = service.log.read_text()
    assert str(service.store) in text
    assert "move it away" in text
    assert "Traceback" not in text
    assert service.store.read_bytes() == content
    assert SECRET not in text


@pytest.fixture
def own_disk(tmp_path: Path) -> Iterator[Path]:
    """Return the folder of the store, on a small file system of its own."""
    disk = tmp_path / "data" / "controller"
    disk.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(command, check=False).returncode != 0:
        pytest.skip("only root may mount a small file system")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def remount(disk: Path, mode: str) -> None:
    """Let the disk be written, or read only."""
    subprocess.run(["mount", "-o", f"remount,{mode}", str(disk)], check=True)


async def test_a_store_that_may_not_be_written_stops_the_service_and_is_kept(
    tmp_path: Path, own_disk: Path
) -> None:
    """Not called damaged: it starts as it was as soon as it may be written again."""
    async with a_service(tmp_path) as service:
        await service.enrol("box", "alice")
        await service.stop()
        remount(own_disk, "ro")
        assert await ended(service.spawn()) == 3
        remount(own_disk, "rw")
        text = service.log.read_text()
        assert f"{service.store}" in text
        assert "not damaged" in text
        assert "Traceback" not in text
        await service.start()
        (machine,) = (await service.json("internal/machines"))["machines"]
        assert machine["name"] == "box"
