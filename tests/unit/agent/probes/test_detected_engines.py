"""Which container engine a machine has, and whether notebooks can be kept in it."""

from __future__ import annotations

import json

import pytest
from probe_answers import DOCKER_INFO
from probe_machines import a_pretend_machine, settings_for

from fleet_agent.probes.detect import detect
from fleet_agent.probes.tools import ToolResult
from fleet_contracts.workloads import DriverName


pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(
    ("reply", "usable", "reason"),
    [
        (
            '{"ClientInfo": {"Debug": false}, "ServerErrors": ["Cannot connect"]}',
            None,
            "daemon_not_reachable",
        ),
        (
            "permission denied while trying to connect to the Docker daemon",
            None,
            "permission_denied",
        ),
        ("Emulate Docker CLI using podman.\n{}", False, "emulated_by_podman"),
        ("", None, "daemon_not_reachable"),
        ("\x00\ufffd{{{", None, "daemon_not_reachable"),
        (ToolResult(tool="docker", timed_out=True), None, "tool_timeout"),
        (ToolResult(tool="docker", exit_code=-11), None, "killed_by_sigsegv"),
    ],
)
async def test_a_docker_client_alone_is_no_docker(
    reply: str | ToolResult, usable: bool | None, reason: str
) -> None:
    """Only a daemon that answers can be used; one that does not answer now may yet."""
    picture = await detect(settings_for(a_pretend_machine(docker=reply)))

    [engine] = picture.container_engines
    assert (engine.usable, engine.reason) == (usable, reason)


ENGINE = {"ServerVersion": "27.3.1", "OSType": "linux", "Runtimes": {"nvidia": {}}}


@pytest.mark.parametrize(
    ("more", "can_keep_in", "usable", "reason"),
    [
        ({}, True, True, "ok"),
        ({}, False, False, "not_kept_in"),
        ({"SecurityOptions": ["name=rootless"]}, True, False, "not_kept_in"),
        ({"OperatingSystem": "Docker Desktop"}, True, False, "not_kept_in"),
        ({"SecurityOptions": ["name=rootless"]}, None, True, "ok"),
    ],
)
async def test_containers_that_cannot_be_kept_in_are_not_offered(
    more: dict[str, object], can_keep_in: bool | None, usable: bool, reason: str
) -> None:
    """Unless the machine's owner wants nothing kept from them."""
    machine = a_pretend_machine(engine_readings=json.dumps(ENGINE | more))
    settings = settings_for(
        machine,
        drivers=(DriverName.DOCKER,),
        engine_host="unix:///run/own.sock",
        can_keep_in=can_keep_in,
    )

    picture = await detect(settings)

    [driver] = picture.drivers
    assert (driver.usable, driver.reason) == (usable, reason)


@pytest.mark.parametrize(
    ("said", "usable", "reason"),
    [
        (json.dumps(ENGINE), True, "ok"),
        (
            json.dumps(
                ENGINE | {"engine": {"Components": [{"Name": "Podman Engine"}]}}
            ),
            False,
            "emulated_by_podman",
        ),
        (json.dumps(ENGINE | {"OSType": "windows"}), False, "runs_no_linux_containers"),
        (
            ToolResult(
                tool="engine-readings",
                exit_code=1,
                stderr="PermissionError: [Errno 13] Permission denied",
            ),
            None,
            "permission_denied",
        ),
        (
            ToolResult(
                tool="engine-readings",
                exit_code=1,
                stderr="FileNotFoundError: [Errno 2] No such file or directory",
            ),
            None,
            "daemon_not_reachable",
        ),
        (
            ToolResult(
                tool="engine-readings",
                exit_code=1,
                stderr="ConnectionRefusedError: [Errno 111] Connection refused",
            ),
            None,
            "daemon_not_reachable",
        ),
    ],
)
async def test_the_docker_driver_is_offered_where_its_own_engine_answers(
    said: str | ToolResult, usable: bool | None, reason: str
) -> None:
    """Whatever a client on this machine says about some other engine."""
    machine = a_pretend_machine(docker=DOCKER_INFO, engine_readings=said)
    settings = settings_for(
        machine, drivers=(DriverName.DOCKER,), engine_host="unix:///run/own.sock"
    )

    picture = await detect(settings)

    [driver] = picture.drivers
    assert (driver.usable, driver.reason) == (usable, reason)
    assert [engine.name for engine in picture.container_engines] == ["docker"]


async def test_where_neither_engine_nor_client_is_there_is_no_docker() -> None:
    """That is known, and nobody waits for it."""
    settings = settings_for(
        a_pretend_machine(),
        drivers=(DriverName.DOCKER,),
        engine_host="unix:///run/own.sock",
    )

    [driver] = (await detect(settings)).drivers

    assert (driver.usable, driver.reason) == (False, "daemon_not_reachable")
