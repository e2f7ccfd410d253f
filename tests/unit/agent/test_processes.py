"""A process is named once and for all, and its end is noticed by anybody."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from patience import PATIENCE

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


_ENDS_ITS_FIRST_THREAD = """
import ctypes, platform, sys, threading
def rest():
    print(flush=True)
    sys.stdin.read()
threading.Thread(target=rest).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


@pytest.fixture
def without_first_thread() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process whose first thread has ended; another waits for its input."""
    with subprocess.Popen(
        [sys.executable, "-c", _ENDS_ITS_FIRST_THREAD], stdin=-1, stdout=-1
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        stat = Path(f"/proc/{process.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            pass
        yield process


@pytest.mark.skipif(
    (sys.platform, platform.machine())
    not in {("linux", "x86_64"), ("linux", "aarch64")},
    reason="the number of the system call that ends one thread is known for these",
)
def test_a_process_lives_until_its_last_thread_has_ended(
    without_first_thread: subprocess.Popen[bytes],
) -> None:
    """The first thread is a zombie then; the exit code is nobody's to know yet."""
    name = _named(without_first_thread)

    async def scenario() -> None:
        gone = asyncio.ensure_future(until_gone(name))
        await asyncio.sleep(0)
        assert not gone.done()
        assert is_alive(name)
        assert without_first_thread.poll() is None
        assert without_first_thread.stdin is not None
        without_first_thread.stdin.close()
        await gone
        assert without_first_thread.poll() is not None

    asyncio.run(scenario())


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
    async with asyncio.timeout(PATIENCE):
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
