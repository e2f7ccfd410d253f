"""A process is named once and for all, and its end is noticed by anybody."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from fleet_agent.processes import (
    ProcessName,
    boot_id,
    is_alive,
    name_of,
    send_signal,
    until_gone,
)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that waits to be ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, stderr=-3)
    yield process
    process.kill()
    process.communicate()


def _named(child: subprocess.Popen[bytes]) -> ProcessName:
    name = name_of(child.pid)
    assert name is not None
    return name


def test_a_name_survives_being_stored(child: subprocess.Popen[bytes]) -> None:
    """What a handle keeps is the whole name."""
    name = _named(child)
    assert ProcessName.from_data(name.as_data()) == name
    assert is_alive(name)


def test_another_process_with_the_same_pid_is_not_it(
    child: subprocess.Popen[bytes],
) -> None:
    """Neither a later process nor one of another boot is signalled."""
    name = _named(child)
    for other in (replace(name, started="1"), replace(name, boot="another")):
        assert not is_alive(other)
        send_signal(other, signal.SIGKILL)
    assert child.poll() is None


def test_a_dead_process_that_nobody_has_reaped_is_gone(
    child: subprocess.Popen[bytes],
) -> None:
    """It holds nothing any more, whatever its parent does."""
    name = _named(child)
    send_signal(name, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(name)
    send_signal(name, signal.SIGKILL)
    child.wait()
    assert name_of(child.pid) is None


@pytest.mark.asyncio
async def test_waiting_ends_with_the_process(child: subprocess.Popen[bytes]) -> None:
    """However many wait, and for one that is gone already, at once."""
    name = _named(child)
    waiting = [asyncio.create_task(until_gone(name)) for _ in range(2)]
    done, _ = await asyncio.wait(waiting, timeout=0)
    assert not done
    send_signal(name, signal.SIGTERM)
    async with asyncio.timeout(10):
        await asyncio.gather(*waiting)
        await until_gone(name)


def test_a_boot_has_one_identity() -> None:
    """It is the same in every process of this boot."""
    asked = subprocess.run(
        [
            *(sys.executable, "-c"),
            "from fleet_agent.processes import boot_id; print(boot_id())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.strip() == boot_id()
