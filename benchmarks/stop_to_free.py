"""From the word to stop to free resources, beside the server's own shutdown in one run.

``python benchmarks/stop_to_free.py [--samples 10]`` as root.  With each driver the same
notebook is stopped through the Hub, and alternately ended by SIGTERM alone, which is
what its own shutdown takes.  Free is when the controller has recorded it, by the clock
of this machine, which all parts share.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import psutil

from docker_ready import fleet_side as docker_side
from figures import keep
from hubs import OWNER, Side, fleet_side as native_side


sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from docker_engine import PrivateEngine, missing_for_docker, private_engine
from fleet import Fleet
from native_fleet import missing_for_native


TARGET = 0.5
"""Seconds beyond the server's own shutdown."""
OVER = ("stopped", "failed")

FindServer = Callable[[], psutil.Process]


def main() -> int:
    """Measure, keep, and return 0 if the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10)
    count = parser.parse_args().samples
    for reason in (missing_for_docker(), missing_for_native()):
        if reason is not None:
            parser.error(reason)
    samples: dict[str, list[float]] = {}
    for name, running in (("native", native), ("docker", docker)):
        with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as parts:
            for figure, values in measure(*parts, count).items():
                samples[f"{name}_{figure}"] = values
    return 0 if keep_figures(samples) else 1


@contextmanager
def native(folder: Path) -> Iterator[tuple[Fleet, Side, FindServer]]:
    """A fleet with a native machine, and what finds the server's process."""
    with native_side(folder) as (side, fleet):
        agent = fleet.machines["box"].process
        assert agent is not None

        def find() -> psutil.Process:
            inside = psutil.Process(agent.pid).children(recursive=True)
            return next(process for process in inside if process.name() != "bwrap")

        yield fleet, side, find


@contextmanager
def docker(folder: Path) -> Iterator[tuple[Fleet, Side, FindServer]]:
    """A fleet with a machine that has an engine, and what finds the server's process."""
    with (
        private_engine(in_memory=False) as engine,
        docker_side(folder, engine) as (side, fleet),
    ):
        yield fleet, side, lambda: _server_in(engine)


def _server_in(engine: PrivateEngine) -> psutil.Process:
    with engine.client() as client:
        [container] = client.containers()
        state = client.inspect_container(container["Id"])["State"]
    # The engine's own first process has it as its child.
    return psutil.Process(state["Pid"]).children()[0]


def measure(
    fleet: Fleet, side: Side, find: FindServer, count: int
) -> dict[str, list[float]]:
    """Return the samples of *count* stops and of as many ends, one warm-up apart."""
    samples: dict[str, list[float]] = defaultdict(list)
    for number in range(count + 1):
        side.start()
        began = time.time()
        side.stop()
        figures = {"stop_to_free_seconds": freed_at(fleet) - began}
        side.start()
        ended, own = end_alone(find())
        fleet.wait_state(OWNER, *OVER)
        figures["own_shutdown_seconds"] = own
        figures["end_to_free_seconds"] = freed_at(fleet) - ended
        side.stop()
        if number:
            for name, value in figures.items():
                samples[name].append(value)
            print({name: round(value, 3) for name, value in figures.items()})
    return samples


def end_alone(server: psutil.Process) -> tuple[float, float]:
    """Ask *server* to end; return when it had, and how long it took."""
    watched = os.pidfd_open(server.pid)
    try:
        began = time.time()
        signal.pidfd_send_signal(watched, signal.SIGTERM)
        select.select([watched], [], [])
        ended = time.time()
    finally:
        os.close(watched)
    return ended, ended - began


def freed_at(fleet: Fleet) -> float:
    """Return when the controller recorded that nothing is held any more."""
    return next(
        datetime.fromisoformat(event["at"]).timestamp()
        for event in reversed(fleet.timeline(OWNER)["events"])
        if event["state"] in OVER
    )


def keep_figures(samples: dict[str, list[float]]) -> bool:
    """Keep the samples with what each driver adds to the server's own shutdown."""
    added = {
        f"{name}_added_seconds": statistics.median(
            samples[f"{name}_stop_to_free_seconds"]
        )
        - statistics.median(samples[f"{name}_own_shutdown_seconds"])
        for name in ("native", "docker")
    }
    return keep(
        "stop_to_free",
        samples=samples,
        ratios=added,
        targets=dict.fromkeys(added, TARGET),
        facts={"server": "jupyterhub-singleuser without kernels"},
    )


if __name__ == "__main__":
    sys.exit(main())
