"""Environments are built once, whole or not at all, and never used unverified."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import psutil
import pytest
from command_lines import command_line
from patience import PATIENCE
from small_environments import SEEN_AS, SilentIndex, SmallStore, make_wheel

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.native.environments.build import site_packages
from fleet_agent.drivers.native.environments.downloads import KEEP_SECONDS
from fleet_agent.drivers.native.environments.interpreter import (
    Interpreter,
    describe,
    own_interpreter,
)
from fleet_agent.drivers.native.environments.locks import Locks
from fleet_agent.drivers.native.environments.wheel import CONTRACTS, pack
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import Progress


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


def quiet(progress: Progress) -> None:
    """Hear nothing."""


@pytest.fixture
def small(tmp_path: Path) -> SmallStore:
    """A store over an empty folder."""
    return SmallStore(tmp_path)


async def test_a_build_installs_every_package_and_shows_how_far_it_is(
    small: SmallStore,
) -> None:
    """Packages are counted up to their total, then compiled and verified."""
    small.a_lock(packages=5)
    told: list[Progress] = []

    environment = await small.open().prepare("small", told.append)

    packages = site_packages(environment.tree)
    assert (packages / "small4" / "__init__.py").is_file()
    assert (packages / "fleet_lab" / "__init__.py").is_file()
    assert list((packages / "small4" / "__pycache__").glob("*.pyc"))
    steps = [progress.step for progress in told]
    assert list(dict.fromkeys(steps))[-3:] == [
        "install_packages",
        "compile_packages",
        "verify_environment",
    ]
    installed = [progress for progress in told if progress.step == "install_packages"]
    assert (installed[-1].done, installed[-1].total) == (6, 6)
    assert small.left() == [environment.identity]


async def test_bytecode_names_files_where_they_will_be_seen(small: SmallStore) -> None:
    """Tracebacks in a notebook show the path inside the sandbox."""
    small.lock(
        "small",
        make_wheel(
            small.wheels, "small", {"small.py": "def f():\n    raise OSError\n"}
        ),
    )

    environment = await small.open().prepare("small", quiet)

    pyc = next(site_packages(environment.tree).glob("__pycache__/small.*.pyc"))
    assert f"{SEEN_AS}/lib/python".encode() in pyc.read_bytes()
    assert os.fsencode(small.base) not in pyc.read_bytes()


async def test_the_second_time_nothing_is_built(small: SmallStore) -> None:
    """A verified environment is used as it is, by the next agent process too."""
    small.a_lock()
    first = await small.open().prepare("small", quiet)
    before = first.tree.stat().st_ino
    told: list[str] = []

    again = small.open()
    second = await again.prepare("small", lambda progress: told.append(progress.step))
    third = await again.prepare("small", lambda progress: told.append(progress.step))

    assert first.identity == second.identity == third.identity
    assert second.tree.stat().st_ino == before
    assert set(told) == {"verify_environment"}


async def test_the_identity_depends_on_lock_and_lab_package(small: SmallStore) -> None:
    """Whatever an environment consists of is in its name."""
    small.a_lock()
    first = await small.open().prepare("small", quiet)
    small.lock("more", (small.locks / "small.lock").read_text() + "# another\n")
    second = await small.open().prepare("more", quiet)
    (small.lab / "__init__.py").write_text("changed = True\n")
    third = await small.open().prepare("small", quiet)

    assert len({first.identity, second.identity, third.identity}) == 3


async def test_the_identity_depends_on_all_that_the_interpreter_is(
    small: SmallStore,
) -> None:
    """Another Python, or the same one on another platform, has environments of its own."""
    small.a_lock()
    store, lock = small.open(), Locks(small.locks).read("small")
    wheel, python = pack(small.lab, CONTRACTS), await describe(own_interpreter())
    others = [
        store.identity(lock, wheel, replace(python, **{field.name: "another"}))
        for field in fields(Interpreter)
    ]

    assert len({store.identity(lock, wheel, python), *others}) == len(others) + 1


async def test_a_changed_file_is_noticed_at_start_and_the_environment_rebuilt(
    small: SmallStore,
) -> None:
    """The broken one is set aside: a notebook may still run from it."""
    small.a_lock()
    first = await small.open().prepare("small", quiet)
    victim = site_packages(first.tree) / "small0" / "__init__.py"
    victim.write_text("# not what was installed\n")

    store = small.open()
    sound = await store.verify_all()
    second = await store.prepare("small", quiet)

    assert sound == {first.identity: False}
    assert second.identity == first.identity
    assert victim.read_text() == "# small0\n"
    assert small.left() == [f".broken-{first.identity}-1", first.identity]
    assert await small.open().verify_all() == {first.identity: True}


async def test_a_change_since_the_start_is_not_asked_about_again(
    small: SmallStore,
) -> None:
    """Verification is paid once per agent process, not at each launch."""
    small.a_lock()
    store = small.open()
    await store.prepare("small", quiet)
    told: list[Progress] = []

    await store.prepare("small", told.append)

    assert told == []


async def test_what_nobody_needs_any_more_is_removed(small: SmallStore) -> None:
    """Not what a lock leads to, and not what a notebook still runs from."""
    small.a_lock("old")
    small.a_lock("new", packages=2)
    old = await small.open().prepare("old", quiet)
    new = await small.open().prepare("new", quiet)
    (small.locks / "old.lock").unlink()
    store = small.open()

    assert await store.collect({old.identity}) == []
    assert await store.collect(set()) == [old.identity]
    assert small.left() == [new.identity]


async def test_downloads_that_nothing_leads_to_go_with_an_environment(
    small: SmallStore,
) -> None:
    """What the next build may need stays; nothing is looked at while nothing changed."""
    small.a_lock("old")
    small.a_lock("new", packages=2)
    for ref in ("old", "new"):
        await small.open().prepare(ref, quiet)
    cache = small.base / "cache"
    unneeded = cache / "archive-v0" / "of-no-package"
    unneeded.mkdir()

    await small.open().collect(set())
    before = unneeded.is_dir()
    (small.locks / "old.lock").unlink()
    await small.open().collect(set())

    assert before
    assert not unneeded.exists()
    assert list(cache.glob("wheels-*"))


async def test_downloads_that_no_build_needed_for_long_go(small: SmallStore) -> None:
    """Environments have copies of their own, and the next build fetches anew."""
    small.a_lock()
    environment = await small.open().prepare("small", quiet)
    cache, elsewhere = small.base / "cache", small.base / "somebody-elses"
    month_ago = time.time() - KEEP_SECONDS - 60
    os.utime(cache / ".fleet-last-build", (month_ago, month_ago))
    cache.rename(elsewhere)
    cache.symlink_to(elsewhere)
    await small.open().collect(set())
    kept_elsewhere = list(elsewhere.glob("wheels-*"))
    cache.unlink()
    elsewhere.rename(cache)

    store = small.open()
    await store.collect(set())
    gone = not cache.exists()
    sound = await store.verify_all()
    small.a_lock("another", packages=1)
    await store.prepare("another", quiet)

    assert kept_elsewhere
    assert gone
    assert sound == {environment.identity: True}


async def test_concurrent_prepares_share_one_build(small: SmallStore) -> None:
    """Both get the same environment, and both see the progress."""
    small.a_lock()
    store = small.open()
    told: tuple[list[str], list[str]] = ([], [])

    first, second = await asyncio.gather(
        store.prepare("small", lambda progress: told[0].append(progress.step)),
        store.prepare("small", lambda progress: told[1].append(progress.step)),
    )

    assert first == second
    assert told[0] == told[1]
    assert small.left() == [first.identity]


async def test_two_agents_that_build_the_same_both_succeed(small: SmallStore) -> None:
    """Whoever is second finds the place taken and uses what is there."""
    small.a_lock()

    first, second = await asyncio.gather(
        small.open().prepare("small", quiet), small.open().prepare("small", quiet)
    )

    assert first == second
    assert small.left() == [first.identity]


async def test_a_package_with_another_hash_is_refused_by_name(
    small: SmallStore,
) -> None:
    """Nothing is installed, and the user reads which package it is."""
    line = make_wheel(small.wheels, "honest", {"honest.py": ""})
    make_wheel(small.wheels, "honest", {"honest.py": "evil = True\n"})
    small.lock("small", line)

    with pytest.raises(DriverError) as refused:
        await small.open().prepare("small", quiet)

    assert refused.value.explanation.reason is Reason.ENVIRONMENT_HASH_MISMATCH
    assert "honest" in (refused.value.explanation.detail or "")
    assert small.left() == []


async def test_an_unreachable_index_is_explained(small: SmallStore) -> None:
    """The user is told that it is the network, without the address."""
    small.lock("small", f"absent==1.0 --hash=sha256:{'0' * 64}\n")
    store = small.open(
        UV_DEFAULT_INDEX="http://127.0.0.1:9/simple", UV_HTTP_RETRIES="0"
    )

    with pytest.raises(DriverError) as refused:
        await store.prepare("small", quiet)

    assert refused.value.explanation.reason is Reason.PREPARE_FAILED
    assert "network" in (refused.value.explanation.detail or "")
    assert "127.0.0.1" not in (refused.value.explanation.detail or "")
    assert small.left() == []


async def test_too_little_free_space_is_said_before_anything_is_fetched(
    small: SmallStore,
) -> None:
    """A build that cannot fit does not begin."""
    small.a_lock()

    with pytest.raises(DriverError) as refused:
        await small.open(needed_bytes=1 << 62).prepare("small", quiet)

    assert refused.value.explanation.reason is Reason.DISK_FULL
    assert small.left() == []


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, check=False).returncode != 0:
        pytest.skip("only root may mount a small file system")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


async def test_a_disk_that_fills_up_leaves_nothing_half_made(
    tmp_path: Path, tiny_disk: Path
) -> None:
    """The check before the build is an estimate; the disk has the last word."""
    small = SmallStore(tmp_path / "rest")
    small.environments = tiny_disk / "environments"
    line = make_wheel(small.wheels, "large", {"large.txt": "x" * 8_000_000})
    small.lock("small", line)

    with pytest.raises(DriverError) as refused:
        await small.open().prepare("small", quiet)

    assert refused.value.explanation.reason is Reason.DISK_FULL
    assert small.left() == []


async def test_a_cancelled_build_leaves_nothing(small: SmallStore) -> None:
    """Neither a folder nor a process remains."""
    small.lock("small", f"absent==1.0 --hash=sha256:{'0' * 64}\n")
    async with SilentIndex() as index:
        store = small.open(UV_DEFAULT_INDEX=index.url)
        build = asyncio.create_task(store.prepare("small", quiet))
        await asyncio.wait_for(index.asked.wait(), PATIENCE)
        # Beside them the test's own process may have other children.
        building = [
            child
            for child in psutil.Process().children(recursive=True)
            if "sync" in command_line(child).split()
        ]
        assert building

        build.cancel()
        with pytest.raises(asyncio.CancelledError):
            await build

    assert small.left() == []
    assert not any(child.is_running() for child in building)


_KILLED_AGENT = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from small_environments import SmallStore
small = SmallStore.__new__(SmallStore)
small.base = Path(sys.argv[2])
small.locks, small.wheels, small.environments, small.lab = (
    small.base / name for name in ("locks", "wheels", "environments", "fleet_lab")
)
store = small.open(UV_DEFAULT_INDEX=sys.argv[3])
asyncio.run(store.prepare("small", lambda progress: None))
"""


async def test_what_a_killed_agent_left_half_built_is_removed_at_start(
    small: SmallStore,
) -> None:
    """The installer dies with the agent; the next agent removes the folder."""
    small.lock("small", f"absent==1.0 --hash=sha256:{'0' * 64}\n")
    support = str(Path(sys.modules["small_environments"].__file__ or "").parent)
    async with SilentIndex() as index:
        agent = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _KILLED_AGENT, support, small.base, index.url
        )
        await asyncio.wait_for(index.asked.wait(), PATIENCE)
        installers = psutil.Process(agent.pid).children(recursive=True)
        building = list(small.environments.glob(".building-*"))
        assert len(building) == 1

        # A build that is alive is nobody's leftover.
        await small.open().verify_all()
        assert building[0].is_dir()

        agent.kill()
        await agent.wait()
        gone, alive = await asyncio.to_thread(psutil.wait_procs, installers, PATIENCE)

    assert gone
    assert not alive
    await small.open().verify_all()
    assert small.left() == []


async def test_only_verified_environments_count_as_built(small: SmallStore) -> None:
    """An environment is told by its ref once it is whole, and no longer when broken."""
    small.a_lock()
    store = small.open()
    assert await store.built() == {}
    environment = await store.prepare("small", quiet)
    assert await store.built() == {"small": environment.tree}

    (site_packages(environment.tree) / "small0" / "__init__.py").write_text("changed")
    await store.verify_all()
    assert await store.built() == {}
