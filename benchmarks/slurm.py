"""Slurm beside the fleet: submit, explain one that waits, release to the next start.

``python benchmarks/slurm.py [--machines 100] [--waiting 300] [--events 20]``.  A hundred
emulated nodes (one ``slurmd -N`` each) and a hundred simulated agents of two cores, all
full, with as many waiting.  Slurm is set to schedule as soon and as often as it can.
Both are asked as their users do: ``sbatch`` and ``squeue``, the Spawner's socket and
REST; ``jupyter-fleet explain`` beside them is mostly Python's own start.  A job ends by itself, as an agent reports an end by itself; the time ends when
the next job's script runs, or when the next launch has arrived at an agent.

Where Slurm is not installed (Debian: ``slurmctld slurmd slurm-client``) only the fleet is
measured, and the figures say so.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from figures import keep, quantile
from links import PREFIX, Service, a_free_port, raise_open_files_limit, until_listening
from release_to_launch import CORES, Load, fill, release


TOOLS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo")
PATIENCE = 180.0
CONFIGURATION = """
ClusterName=benchmark
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
CryptoType=crypto/none
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool/%n
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
SCRIPT = """#!/bin/sh
mkfifo {folder}/hold/$SLURM_JOB_ID
date +%s%N >{folder}/hold/$SLURM_JOB_ID.time
mv {folder}/hold/$SLURM_JOB_ID.time {folder}/started/$SLURM_JOB_ID
read ended <{folder}/hold/$SLURM_JOB_ID
"""


class Slurm:
    """A cluster of emulated nodes in one folder."""

    def __init__(self, folder: Path, machines: int) -> None:
        """Write its configuration."""
        self.folder = folder
        self.machines = machines
        self._processes: list[subprocess.Popen[bytes]] = []
        host = socket.gethostname().partition(".")[0]
        for name in ("state", "spool", "hold", "started"):
            (folder / name).mkdir()
        nodes = "\n".join(
            f"NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 "
            f"Port={a_free_port()} CPUs={CORES} RealMemory=1000"
            for number in range(machines)
        )
        self.configuration = folder / "slurm.conf"
        self.configuration.write_text(
            CONFIGURATION.format(
                host=host, port=a_free_port(), folder=folder, nodes=nodes
            )
        )
        self.script = folder / "job.sh"
        self.script.write_text(SCRIPT.format(folder=folder))
        self._environment = {**os.environ, "SLURM_CONF": str(self.configuration)}

    def start(self) -> None:
        """Start the controller and every node; return once all are idle."""
        self._spawn("slurmctld", "-D", "-c")
        self._until(lambda: self._ran("scontrol", "ping").returncode == 0)
        for number in range(self.machines):
            self._spawn("slurmd", "-D", "-N", f"n{number}")
        self._until(lambda: self._idle() == self.machines)

    def stop(self) -> None:
        """End every process, jobs first."""
        for waiting in (self.folder / "hold").iterdir():
            with suppress(OSError):
                os.close(os.open(waiting, os.O_WRONLY | os.O_NONBLOCK))
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
                continue
            process.kill()
            process.wait()

    def submit(self) -> str:
        """Submit one job; return its id."""
        ran = self._ran(
            "sbatch",
            "--parsable",
            "--ntasks=1",
            "--time=60",
            "--output=/dev/null",
            str(self.script),
        )
        ran.check_returncode()
        return ran.stdout.strip()

    def explain(self, job: str) -> str:
        """Return why *job* waits and when it starts."""
        ran = self._ran("squeue", "--noheader", "--job", job, "--format=%T %r %S")
        ran.check_returncode()
        return ran.stdout.strip()

    def end(self, job: str) -> None:
        """Let *job* end by itself."""
        (self.folder / "hold" / job).write_text("now\n")

    def started(self) -> dict[str, int]:
        """Return the nanosecond at which each job's script ran."""
        return {
            path.name: int(path.read_text())
            for path in (self.folder / "started").iterdir()
        }

    def until_started(self, count: int) -> dict[str, int]:
        """Return what has started once that many have."""
        self._until(lambda: len(self.started()) >= count)
        return self.started()

    def _idle(self) -> int:
        listed = self._ran("sinfo", "--noheader", "--Node", "--format=%T").stdout
        return sum(state == "idle" for state in listed.split())

    def _spawn(self, *command: str) -> None:
        log = (self.folder / f"{command[0]}.out").open("ab")
        with log:
            self._processes.append(
                subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
            )

    def _ran(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def _until(self, holds: Callable[[], bool]) -> None:
        """Look until *holds*, closely enough for the times that are measured."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"Slurm is not ready; see the logs in {self.folder}")
            time.sleep(0.02)


@contextmanager
def a_slurm(machines: int) -> Iterator[Slurm]:
    """Yield a cluster that runs."""
    with tempfile.TemporaryDirectory() as folder:
        slurm = Slurm(Path(folder), machines)
        try:
            slurm.start()
            yield slurm
        finally:
            slurm.stop()


def timed(step: Callable[[], object], count: int) -> list[float]:
    """Return the seconds that each call took."""
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds


def measure_slurm(machines: int, waiting: int, events: int) -> dict[str, list[float]]:
    """Return Slurm's seconds."""
    with a_slurm(machines) as slurm:
        for _ in range(machines * CORES):
            slurm.submit()
        slurm.until_started(machines * CORES)
        submits = timed(slurm.submit, waiting)
        pending = slurm.submit()
        explained = timed(lambda: slurm.explain(pending), 100)
        releases = []
        for _ in range(events):
            slurm.submit()
            before = slurm.started()
            # The oldest that still runs.
            ended = min(before, key=lambda job: (before[job], int(job)))
            released = time.time_ns()
            slurm.end(ended)
            after = slurm.until_started(len(before) + 1)
            first = min(after[job] for job in after.keys() - before.keys())
            releases.append((first - released) / 1e9)
            (slurm.folder / "started" / ended).unlink()
        return {
            "slurm_submit": submits,
            "slurm_explain": explained,
            "slurm_release": releases,
        }


async def measure_fleet(
    machines: int, waiting: int, events: int
) -> dict[str, list[float]]:
    """Return the fleet's seconds."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder), machines)
        service.start()
        try:
            await until_listening(service.port)
            load = Load(service)
            running = await fill(load, machines, waiting)
            submits = []
            for _ in range(waiting):
                start = time.perf_counter()
                await load.ask()
                submits.append(time.perf_counter() - start)
            line = json.loads(_asked(service, "internal/queue"))["waiting"]
            path = f"internal/explain?workload={line[-1]['workload']}"
            explained = await asyncio.to_thread(
                timed, lambda: _asked(service, path), 100
            )
            command = [
                *(sys.executable, "-m", "fleet_hub.cli", "explain"),
                *(line[-1]["workload"], "--data-dir", str(service.folder / "data")),
            ]
            return {
                "fleet_submit": submits,
                "fleet_explain": explained,
                "fleet_explain_command": await asyncio.to_thread(
                    timed,
                    lambda: subprocess.run(command, capture_output=True, check=True),
                    20,
                ),
                "fleet_release": await release(load, running, events),
            }
        finally:
            service.stop()


def _asked(service: Service, path: str) -> bytes:
    """Return the controller's answer to one question."""
    link = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {service.secret}"}
        link.request("GET", f"{PREFIX}{path}", headers=headers)
        answered = link.getresponse()
        content = answered.read()
        if answered.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{path}: {answered.status} {content[:200]!r}")
        return content
    finally:
        link.close()


def missing_tools() -> Sequence[str]:
    """Return which of Slurm's commands are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def main() -> None:
    """Measure both and keep the figures; exits with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--waiting", type=int, default=300)
    parser.add_argument("--events", type=int, default=20)
    arguments = parser.parse_args()
    raise_open_files_limit()
    size = arguments.machines, arguments.waiting, arguments.events
    samples = asyncio.run(measure_fleet(*size))
    figures: dict[str, float] = {}
    targets: dict[str, float] = {}
    missing = missing_tools()
    version = None
    if missing:
        print(f"Slurm is not measured: {', '.join(missing)} not installed")
    else:
        version = subprocess.run(
            ["slurmctld", "-V"], capture_output=True, text=True, check=True
        ).stdout.strip()
        samples |= measure_slurm(*size)
    for name, seconds in samples.items():
        figures[f"{name}_p50_ms"] = quantile(seconds, 0.5) * 1000
        figures[f"{name}_p99_ms"] = quantile(seconds, 0.99) * 1000
    if not missing:
        for name in ("submit", "explain", "release"):
            ours, theirs = samples[f"fleet_{name}"], samples[f"slurm_{name}"]
            figures[name] = quantile(ours, 0.5) / quantile(theirs, 0.5)
        figures["explain_command"] = quantile(
            samples["fleet_explain_command"], 0.5
        ) / quantile(samples["slurm_explain"], 0.5)
        targets["release"] = 0.1
    met = keep(
        "slurm",
        samples=samples,
        ratios=figures,
        targets=targets,
        facts=vars(arguments) | {"slurm": version, "not_installed": list(missing)},
    )
    sys.exit(not met)


if __name__ == "__main__":
    main()
