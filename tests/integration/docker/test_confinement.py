"""What a container may do on the machine, tried from inside and read from the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psutil
import pytest
from docker_engine import PrivateEngine
from docker_images import WRITABLE
from docker_machine import (
    MIB,
    OWNER,
    TOKEN,
    a_container,
    a_job,
    run_inside,
    started,
    status_of,
)
from patience import free_port

from fleet_agent.drivers.base import DriverError, Standing
from fleet_agent.drivers.common.listening import Addresses
from fleet_agent.drivers.docker.driver import DockerDriver
from fleet_agent.drivers.docker.reach import read_reach
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Accelerator, Resources


pytestmark = [pytest.mark.asyncio, pytest.mark.slow, pytest.mark.timeout(300)]

Maker = Callable[..., DockerDriver]
SMALL = Resources(cpu_milli=1000, memory_bytes=64 * MIB)


async def test_the_engine_enforces_what_was_asked_for(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """Limits, user, root file system and privileges, as the running container has them."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job())
    try:
        host = client.inspect_container(handle.data["container"])["HostConfig"]
        status = run_inside(client, handle, "print(open('/proc/self/status').read())")
    finally:
        await driver.stop(handle, grace_seconds=5)

    assert (host["Memory"], host["MemorySwap"]) == (512 * MIB, 512 * MIB)
    assert host["NanoCpus"] == 1_000_000_000
    assert host["PidsLimit"] == 4096
    assert host["ReadonlyRootfs"]
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(facts["Uid"].split()[0]) >= 1_901_000_000
    assert int(facts["CapEff"], 16) == int(facts["CapBnd"], 16) == 0
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")


async def test_only_the_users_own_places_can_be_written(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """The home, the private temp, and nothing of the image or the machine."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job())
    try:
        told = [
            run_inside(client, handle, f"open({path!r}, 'w')")
            for path in ("/etc/motd", "/opt/x", "/usr/x", "/root/x")
        ]
        own = run_inside(
            client,
            handle,
            "[open(f'{f}/x', 'w') for f in ('/home/jovyan', '/tmp', '/var/tmp')]"
            ";print('written')",
        )
    finally:
        await driver.stop(handle, grace_seconds=5)

    for words in told:
        assert "Read-only file system" in words or "Permission denied" in words
    assert own == "written"


async def test_an_image_that_says_so_may_change_its_own_files(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """The root is read-only where the image allows it; what it changes goes with it."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job(a_container(WRITABLE)))
    try:
        host = client.inspect_container(handle.data["container"])["HostConfig"]
        told = run_inside(client, handle, "open('/opt/free/x', 'w');print('written')")
    finally:
        await driver.stop(handle, grace_seconds=5)

    assert (host["ReadonlyRootfs"], host["CapDrop"]) == (False, ["ALL"])
    assert told == "written"


async def test_files_belong_to_the_owners_own_uid(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """Two owners on one machine never share one."""
    driver = make_driver(shared_engine)
    uids = []
    for number, owner in enumerate((OWNER, "carl"), start=2):
        spec = a_container(owner=owner, owner_id=number, notebook=f"{owner}-default")
        handle = await started(driver, a_job(spec, name=owner))
        try:
            uids.append(run_inside(client, handle, "import os;print(os.getuid())"))
        finally:
            await driver.stop(handle, grace_seconds=5)

    assert len(set(uids)) == 2


async def test_notebooks_do_not_reach_each_other(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """One network for all, in which each of them is alone with the way out.

    Also where the machine's owner keeps nothing else from them.
    """
    driver = make_driver(shared_engine, reach=read_reach(["all"]))
    first = await started(driver, a_job(name="first"))
    second = await started(driver, a_job(a_container(notebook="other"), name="second"))
    try:
        [network] = client.inspect_container(first.data["container"])[
            "NetworkSettings"
        ]["Networks"].values()
        told = run_inside(
            client,
            second,
            "import socket;"
            f"socket.create_connection(({network['IPAddress']!r}, 8888), timeout=2)",
        )
    finally:
        await driver.stop(first, grace_seconds=5)
        await driver.stop(second, grace_seconds=5)

    assert "timed out" in told or "unreachable" in told or "refused" in told


async def test_the_machine_is_reached_by_its_name_inside(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """Where the Hub's loopback address was, that name is."""
    driver = make_driver(shared_engine)
    url = "http://127.0.0.1:8081/hub/api"
    spec = a_container(environment={"JUPYTERHUB_API_URL": url})
    handle = await started(driver, a_job(spec))
    try:
        told = run_inside(
            client,
            handle,
            "import os,socket;print(os.environ['JUPYTERHUB_API_URL'],"
            "socket.gethostbyname('host.docker.internal'))",
        )
        network = client.inspect_network(f"fleet-{handle.data['agent']}")
    finally:
        await driver.stop(handle, grace_seconds=5)

    gateway = network["IPAM"]["Config"][0]["Gateway"]
    assert told == f"http://host.docker.internal:8081/hub/api {gateway}"


async def test_two_notebooks_at_once_have_two_ports(
    make_driver: Maker, shared_engine: PrivateEngine
) -> None:
    """The engine chooses and binds in one step, so nobody can take one in between."""
    driver = make_driver(shared_engine)
    handles = [
        await started(driver, a_job(a_container(notebook=name), name=name))
        for name in ("one", "two")
    ]
    try:
        assert handles[0].url != handles[1].url
        assert [await status_of(handle.url) for handle in handles] == [200, 200]
    finally:
        for handle in handles:
            await driver.stop(handle, grace_seconds=5)


async def test_running_out_of_memory_is_told_as_that(
    make_driver: Maker, shared_engine: PrivateEngine
) -> None:
    """With the amount that was allowed, and not as an unknown end."""
    spec = a_container(resources=SMALL, environment={"FLEET_TEST_FAULT": "greedy"})
    with pytest.raises(DriverError) as caught:
        await started(make_driver(shared_engine), a_job(spec))

    explanation = caught.value.explanation
    assert explanation.reason is Reason.OUT_OF_MEMORY
    assert (explanation.requested, explanation.unit) == (64 * MIB, "bytes")


async def test_a_server_that_grows_too_large_is_told_as_that_later_as_well(
    make_driver: Maker, shared_engine: PrivateEngine
) -> None:
    """Whoever waits for its end hears why."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job(a_container(resources=SMALL)))
    await status_of(handle.url, "greedy")

    condition = await driver.wait(handle)
    await driver.stop(handle, grace_seconds=0)

    assert condition.explanation is not None
    assert condition.explanation.reason is Reason.OUT_OF_MEMORY
    assert condition.explanation.requested == 64 * MIB


async def test_ports_that_are_all_taken_are_told_as_that(
    make_driver: Maker, shared_engine: PrivateEngine
) -> None:
    """The owner's range has one port, and the first notebook has it."""
    port = free_port()
    driver = make_driver(shared_engine, addresses=Addresses(ports=(port, port)))
    handle = await started(driver, a_job(name="first"))
    try:
        with pytest.raises(DriverError) as caught:
            await started(driver, a_job(a_container(notebook="other"), name="second"))
    finally:
        await driver.stop(handle, grace_seconds=5)

    assert f":{port}/" in (handle.url or "")
    assert caught.value.explanation.reason is Reason.PORT_TAKEN


async def test_one_program_that_takes_too_much_leaves_the_server_alone(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """The kernel ends the program that took the memory."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job(a_container(resources=SMALL)))
    try:
        run_inside(client, handle, "x=[bytearray(1<<20) for _ in range(200)]")
        answer = await status_of(handle.url)
    finally:
        await driver.stop(handle, grace_seconds=5)

    assert answer == 200


async def test_an_image_that_writes_to_its_own_files_says_so(
    make_driver: Maker, shared_engine: PrivateEngine
) -> None:
    """An admin learns what to change, and not only that something ended."""
    spec = a_container(environment={"FLEET_TEST_FAULT": "writes"})
    with pytest.raises(DriverError) as caught:
        await started(make_driver(shared_engine), a_job(spec))

    assert "changes its own files" in (caught.value.explanation.detail or "")


async def test_operators_see_how_the_log_ended_and_nobody_a_token(
    make_driver: Maker, shared_engine: PrivateEngine
) -> None:
    """The last lines are in the error's text, its secrets left out; a user gets neither."""
    spec = a_container(environment={"FLEET_TEST_FAULT": "dies"})
    with pytest.raises(DriverError, match="stub gives up") as caught:
        await started(make_driver(shared_engine), a_job(spec))

    assert TOKEN not in str(caught.value)
    assert "stub" not in (caught.value.explanation.detail or "")


async def test_a_server_that_ends_by_itself_is_told_with_its_code(
    make_driver: Maker, shared_engine: PrivateEngine
) -> None:
    """Whoever waits hears at once how it ended, and a later agent as well."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job())
    await status_of(handle.url, "end")

    conditions = [
        await driver.wait(handle),
        await make_driver(shared_engine).recover(handle),
    ]
    await driver.stop(handle, grace_seconds=5)

    for condition in conditions:
        assert (condition.standing, condition.exit_code) == (Standing.GONE, 7)
        assert condition.explanation is not None
        assert "exit code 7" in (condition.explanation.detail or "")


async def test_devices_without_a_gpu_runtime_are_refused_in_words(
    make_driver: Maker, shared_engine: PrivateEngine
) -> None:
    """A machine that cannot hand out GPUs starts nothing without them instead."""
    spec = a_container(
        resources=SMALL.model_copy(update={"devices": ("GPU-1",)}),
    )
    runtime = spec.runtime.model_copy(update={"accelerator": Accelerator.CUDA})
    job = a_job(spec.model_copy(update={"runtime": runtime}))
    with pytest.raises(DriverError) as caught:
        await started(make_driver(shared_engine), job)

    assert caught.value.explanation.reason is Reason.ACCELERATOR_NOT_USED
    assert "cannot hand out its GPUs" in (caught.value.explanation.detail or "")


async def test_nothing_is_left_of_a_stopped_notebook_but_its_files(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """No container, no volume, no process, no folder but the user's own."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job())
    run_inside(client, handle, "open('/home/jovyan/kept', 'w')")
    pid = client.inspect_container(handle.data["container"])["State"]["Pid"]
    await driver.stop(handle, grace_seconds=5)

    state = driver._settings.state
    assert client.containers(all=True) == []
    assert not client.volumes()["Volumes"]
    assert not psutil.pid_exists(pid)
    assert [path.name for path in (state / "runs").iterdir()] == []
    assert [path.name for path in state.glob("notebooks/*/*")] == ["kept"]
