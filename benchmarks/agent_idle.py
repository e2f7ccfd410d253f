"""What an agent costs that has nothing to do: its memory, and its share of a core.

``python benchmarks/agent_idle.py [--seconds 60]``.  A real agent with the native driver
and one verified environment, linked to a real controller that has accepted its picture.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import psutil

from figures import keep
from hubs import OWNER, Fleet, add_native_machine, wait_until


TARGETS = {"resident_mib": 60, "core_percent": 0.2}


def main() -> int:
    """Measure, keep, and return 0 if the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    seconds = parser.parse_args().seconds
    with (
        tempfile.TemporaryDirectory() as folder,
        Fleet(folder=Path(folder), catalog=None) as fleet,
    ):
        machine = add_native_machine(fleet, owner=OWNER)
        log = Path(folder) / f"agent-{machine.name}.log"
        wait_until(lambda: "welcome" in log.read_text(), "the agent is linked")
        wait_until(lambda: "capabilities changed" in log.read_text(), "it has looked")
        agent = psutil.Process(machine.pid)
        settle(agent)
        resident, percent = watch(agent, seconds)
    met = keep(
        "agent_idle",
        samples={"resident_mib": resident, "core_percent": percent},
        ratios={
            "resident_mib": max(resident),
            "core_percent": sum(percent) / len(percent),
        },
        targets=TARGETS,
        facts={"seconds": seconds},
    )
    return 0 if met else 1


def settle(agent: psutil.Process) -> None:
    """Return once the agent has been idle for five seconds: its start is not the topic."""

    def is_idle() -> bool:
        before = cpu_seconds(agent)
        time.sleep(5)
        return cpu_seconds(agent) - before < 0.05

    wait_until(is_idle, "the agent has come to rest", patience=120)


def watch(agent: psutil.Process, seconds: float) -> tuple[list[float], list[float]]:
    """Return resident memory and CPU share, once for each ten seconds."""
    resident, percent = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before, began = cpu_seconds(agent), time.monotonic()
        time.sleep(10)
        spent = cpu_seconds(agent) - before
        percent.append(100 * spent / (time.monotonic() - began))
        resident.append(agent.memory_info().rss / 2**20)
    return resident, percent


def cpu_seconds(agent: psutil.Process) -> float:
    """Return the CPU time of all its threads, in the kernel's finest count."""
    tasks = Path(f"/proc/{agent.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


if __name__ == "__main__":
    sys.exit(main())
