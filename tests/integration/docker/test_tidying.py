"""What nobody uses any more goes by rule, and never what is somebody else's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from docker.errors import APIError, ImageNotFound
from docker_engine import PrivateEngine
from docker_images import STUB, VOLUMED
from docker_machine import a_container, a_job, run_inside, started, status_of, unheard
from image_registry import Registry, image_registry

from fleet_agent.drivers.docker.driver import DockerDriver
from fleet_agent.drivers.docker.fetched import FetchedImages
from fleet_agent.drivers.docker.keeping import DAY, JUST_USED_SECONDS, Keeping
from fleet_agent.drivers.docker.records import AGENT, RUN


pytestmark = [pytest.mark.asyncio, pytest.mark.slow, pytest.mark.timeout(300)]

Maker = Callable[..., DockerDriver]
NO_DISK_IS_LARGE_ENOUGH = Keeping(free_bytes=2**62)
ROOM_ENOUGH = Keeping(free_bytes=0)


@pytest.fixture
def registry(client: Any) -> Iterator[Registry]:
    """A registry of which the engine has nothing yet, and nothing afterwards."""
    with image_registry() as running:
        yield running
        for ref in (
            *(running.ref("lab"), running.ref("other")),
            *(running.digest_ref("lab"), running.digest_ref("other")),
        ):
            with suppress(ImageNotFound):
                client.remove_image(ref, force=True)


def is_there(client: Any, ref: str) -> bool:
    """Whether the engine has the image *ref*."""
    try:
        client.inspect_image(ref)
    except ImageNotFound:
        return False
    return True


async def tidy(driver: DockerDriver, *, days: float = 0.0) -> None:
    """Tidy up as if that many days had passed."""
    mark = driver._places.mark()
    await driver._upkeep.tidy(mark, now=time.time() + days * DAY)


async def test_an_image_that_the_agent_fetched_goes_when_it_was_unused_too_long(
    make_driver: Maker, shared_engine: PrivateEngine, registry: Registry, client: Any
) -> None:
    """Each use counts anew; what an agent knows outlives it."""
    ref, rule = registry.ref("lab"), ROOM_ENOUGH
    await make_driver(shared_engine, keeping=rule).prepare(
        a_job(a_container(ref)), unheard
    )
    successor = make_driver(shared_engine, keeping=rule)
    await tidy(successor, days=29)
    after_29 = is_there(client, ref)
    await tidy(successor, days=31)

    assert after_29
    assert not is_there(client, ref)


async def test_an_image_that_was_there_is_never_the_agents(
    make_driver: Maker, shared_engine: PrivateEngine, registry: Registry, client: Any
) -> None:
    """However long it is unused, and however full the disk is."""
    ref = registry.ref("lab")
    client.pull(ref)
    driver = make_driver(shared_engine, keeping=NO_DISK_IS_LARGE_ENOUGH)
    for used in (ref, STUB):
        await driver.prepare(a_job(a_container(used)), unheard)

    await tidy(driver, days=1000)

    assert is_there(client, ref)
    assert is_there(client, STUB)


async def test_a_name_that_somebody_gave_another_image_is_theirs(
    make_driver: Maker, shared_engine: PrivateEngine, registry: Registry, client: Any
) -> None:
    """The agent fetched what was called so before."""
    ref = registry.ref("lab")
    driver = make_driver(shared_engine, keeping=ROOM_ENOUGH)
    await driver.prepare(a_job(a_container(ref)), unheard)
    repository, _, tag = ref.rpartition(":")
    client.tag(STUB, repository, tag, force=True)

    await tidy(driver, days=1000)

    assert is_there(client, ref)


async def test_an_image_of_which_a_container_is_stays(
    make_driver: Maker, shared_engine: PrivateEngine, registry: Registry, client: Any
) -> None:
    """Running or not, and whoever made it."""
    ref = registry.ref("lab")
    driver = make_driver(shared_engine, keeping=NO_DISK_IS_LARGE_ENOUGH)
    await driver.prepare(a_job(a_container(ref)), unheard)
    strangers = client.create_container(ref, "true")["Id"]

    await tidy(driver, days=1000)
    stayed = is_there(client, ref)
    client.remove_container(strangers)
    await tidy(driver, days=1000)

    assert stayed
    assert not is_there(client, ref)


async def test_where_disk_is_short_an_unused_image_makes_room_for_another(
    make_driver: Maker, shared_engine: PrivateEngine, registry: Registry, client: Any
) -> None:
    """Before that one is fetched; what was asked for within the hour stays."""
    old, new = registry.ref("lab"), registry.digest_ref("lab")
    driver = make_driver(shared_engine, keeping=NO_DISK_IS_LARGE_ENOUGH)
    await driver.prepare(a_job(a_container(old)), unheard)
    await tidy(driver)
    within_the_hour = is_there(client, old)
    fetched = FetchedImages(driver._settings.state / "images.json")
    for image in fetched.all():
        fetched.used(image, now=time.time() - 2 * JUST_USED_SECONDS)

    client.remove_image(new)
    await driver.prepare(a_job(a_container(new)), unheard)

    assert within_the_hour
    assert (is_there(client, old), is_there(client, new)) == (False, True)


async def test_all_names_that_the_agent_fetched_an_image_by_go_together(
    make_driver: Maker, shared_engine: PrivateEngine, registry: Registry, client: Any
) -> None:
    """What was asked for by one of them was not unused."""
    refs = registry.ref("lab"), registry.ref("other")
    driver = make_driver(shared_engine, keeping=ROOM_ENOUGH)
    for ref in refs:
        await driver.prepare(a_job(a_container(ref)), unheard)

    await tidy(driver, days=29)
    before = [is_there(client, ref) for ref in refs]
    await tidy(driver, days=31)

    assert before == [True, True]
    assert [is_there(client, ref) for ref in refs] == [False, False]


async def test_an_image_that_somebody_has_under_another_name_stays(
    make_driver: Maker, shared_engine: PrivateEngine, registry: Registry, client: Any
) -> None:
    """Without its last tag the engine would drop their digest as well."""
    theirs, ref = registry.digest_ref("lab"), registry.ref("lab")
    client.pull(theirs)
    driver = make_driver(shared_engine, keeping=NO_DISK_IS_LARGE_ENOUGH)
    await driver.prepare(a_job(a_container(ref)), unheard)

    await tidy(driver, days=1000)

    assert is_there(client, theirs)


async def test_a_container_of_which_nobody_knows_goes_and_a_strangers_stays(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """After an hour, and only if it does not run."""
    driver = make_driver(shared_engine)
    mark = driver._places.mark()
    labels = {AGENT: mark, RUN: "0" * 24}
    left = client.create_container(STUB, "true", labels=labels)["Id"]
    strangers = client.create_container(STUB, "true", labels={AGENT: "other"})["Id"]
    handle = await started(driver, a_job())

    await tidy(driver)
    early = {item["Id"] for item in client.containers(all=True)}
    await tidy(driver, days=1)
    late = {item["Id"] for item in client.containers(all=True)}
    answer = await status_of(handle.url)
    await driver.stop(handle, grace_seconds=0)
    client.remove_container(strangers)

    running = handle.data["container"]
    assert early == {left, strangers, running}
    assert late == {strangers, running}
    assert answer == 200


async def test_a_notebook_that_ended_is_left_to_whoever_asks_for_its_end(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """Its log tells why; the agent may be told to end it much later."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job())
    await status_of(handle.url, "end")
    await driver.wait(handle)
    successor = make_driver(shared_engine)
    await successor.recover(handle)

    await tidy(successor, days=1)
    kept = [item["Id"] for item in client.containers(all=True)]
    await successor.stop(handle, grace_seconds=0)
    await tidy(successor, days=1)

    assert kept == [handle.data["container"]]
    assert client.containers(all=True) == []


async def test_volumes_of_images_go_with_their_containers_and_a_users_never(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """Also when somebody removes a container and leaves its volume behind."""
    client.create_volume("a-users-own")
    driver = make_driver(shared_engine)
    spec = a_container(VOLUMED)
    handle = await started(driver, a_job(spec))
    during = _volumes(client)
    await driver.stop(handle, grace_seconds=0)
    after_stop = _volumes(client)
    handle = await started(driver, a_job(spec))
    run_inside(client, handle, "open('/home/jovyan/kept', 'w')")
    client.remove_container(handle.data["container"], force=True)
    await driver.stop(handle, grace_seconds=0)
    left_behind = _volumes(client)

    await tidy(driver, days=1000)

    after_tidying = _volumes(client)
    client.remove_volume("a-users-own")
    kept = driver._settings.state.glob("notebooks/*/*")
    assert (len(during), len(left_behind)) == (2, 2)
    assert after_stop == after_tidying == {"a-users-own"}
    assert [path.name for path in kept] == ["kept"]


def _volumes(client: Any) -> set[str]:
    return {volume["Name"] for volume in client.volumes()["Volumes"] or ()}


async def test_a_network_that_no_notebook_is_in_goes(
    make_driver: Maker, shared_engine: PrivateEngine, client: Any
) -> None:
    """Others stay, and the next notebook has one again."""
    driver = make_driver(shared_engine)
    handle = await started(driver, a_job())
    name = f"fleet-{handle.data['agent']}"
    client.create_network("a-users-network")
    await tidy(driver)
    during = len(client.networks([name]))
    await driver.stop(handle, grace_seconds=0)

    await tidy(driver)

    after = len(client.networks([name])), len(client.networks(["a-users-network"]))
    with suppress(APIError):
        client.remove_network("a-users-network")
    again = await started(driver, a_job())
    answer = await status_of(again.url)
    await driver.stop(again, grace_seconds=0)
    assert (during, after, answer) == (1, (0, 1), 200)
