"""What the sandbox adds to a start: from its command to the workload's first line.

``python benchmarks/sandbox_cost.py``.  The same interpreter of the same environment runs
``pass``, alternately by itself and as a workload's first process: in all namespaces and
mounts of the native driver, with dropped rights and closed sockets.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from figures import keep


sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from native_machine import native_settings, unheard

from fleet_agent.drivers.common.accounts import Identities
from fleet_agent.drivers.common.folders import NotebookFolders
from fleet_agent.drivers.native import bubblewrap, host, planning
from fleet_agent.drivers.native.environments.build import BuildTools
from fleet_agent.drivers.native.environments.store import Environment, EnvironmentStore
from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.drivers.native.sandbox import BOOT, ENVIRONMENT


SAMPLES = 30
CONTAINED = (
    f"import sys; sys.path.insert(0, {BOOT!r}); "
    "from fleet_agent.drivers.native.inside import landlock; "
    "landlock.close_foreign_sockets()"
)


def main() -> int:
    """Measure, keep, and return 0 if the target is met."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        environment = asyncio.run(an_environment(state))
        with (state / "status").open("wb") as status:
            plain, sandboxed = commands(state, environment, status.fileno())
            samples: dict[str, list[float]] = {"plain": [], "sandboxed": []}
            for number in range(SAMPLES + 1):
                ours = seconds_of(sandboxed[0], sandboxed[1], status.fileno())
                theirs = seconds_of(plain[0], plain[1], status.fileno())
                if number:
                    samples["sandboxed"].append(ours)
                    samples["plain"].append(theirs)
    added = statistics.median(samples["sandboxed"]) - statistics.median(
        samples["plain"]
    )
    met = keep(
        "sandbox_cost",
        samples=samples,
        ratios={"added_milliseconds": added * 1000},
        targets={"added_milliseconds": 50},
    )
    return 0 if met else 1


async def an_environment(state: Path) -> Environment:
    """Return the notebooks' environment, built if it is not there yet."""
    settings = native_settings(state)
    assert settings.environments is not None
    assert settings.cache is not None
    store = EnvironmentStore(
        settings.environments,
        locks=settings.locks,
        lab_package=settings.lab_package,
        tools=BuildTools(
            uv=settings.uv,
            interpreter=settings.interpreter,
            cache=settings.cache,
            environment=settings.build_environment,
        ),
        seen_as=ENVIRONMENT,
    )
    return await store.prepare("jupyter", unheard)


Command = tuple[Sequence[str], Mapping[str, str]]


def commands(
    state: Path, environment: Environment, status_fd: int
) -> tuple[Command, Command]:
    """Return the plain command and the sandboxed one, each with its environment."""
    uids = native_settings(state).uids
    account = Identities(state / "uids.json", uids).account(1, "ada")
    folder = RunFolder.of(state / "runs", "benchmark", 1)
    folder.make(account, environment.identity)
    place = planning.Place(
        run=folder,
        notebook=NotebookFolders(state / "notebooks").ensure("ada", account),
        account=account,
    )
    system = planning.System(mounts=host.system_mounts(), links=host.system_links())
    plan = planning.sandbox_plan(system, place, environment, status_fd=status_fd)
    inside = (f"{ENVIRONMENT}/bin/python", "-I", "-c", CONTAINED)
    clean = planning.clean_environment(account)
    return (
        ((str(environment.tree / "bin/python"), "-I", "-c", "pass"), clean),
        (
            bubblewrap.command(
                replace(plan, command=inside),
                host.find_tools(root=os.geteuid() == 0),
            ),
            clean,
        ),
    )


def seconds_of(
    command: Sequence[str], environment: Mapping[str, str], status_fd: int
) -> float:
    """Return how long *command* takes from its start to its end."""
    began = time.perf_counter()
    subprocess.run(command, env=environment, pass_fds=(status_fd,), check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
