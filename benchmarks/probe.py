"""What ``fleet-agent probe`` costs on a machine without a GPU.

``python benchmarks/probe.py [--runs 15]``.  Whole processes, from start to end, with
the interpreter's bytecode in place and without any (a first run, or a system that may
not write it).  Beside them, in the same run: the same interpreter that only loads the
libraries which the probe stands on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import keep


TARGETS = {
    "probe_seconds": 1.0,
    "probe_without_bytecode_seconds": 1.0,
    "probe_to_libraries": 2.5,
}
LIBRARIES = """
import asyncio, json, psutil, pydantic
class Model(pydantic.BaseModel):
    value: int
"""
GPU_TOOLS = ("nvidia-smi", "rocm-smi", "amd-smi")


def main() -> int:
    """Measure, keep, and return 0 if the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    python = sys.executable
    probe = (python, "-m", "fleet_agent.cli", "probe")
    libraries = (python, "-c", LIBRARIES)
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        kept = dict(os.environ, PYTHONPYCACHEPREFIX=f"{folder}/kept")
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        none = dict(kept, PYTHONPYCACHEPREFIX=f"{folder}/none")
        none["PYTHONDONTWRITEBYTECODE"] = "1"
        for name, argv, environment in (
            ("probe", probe, kept),
            ("libraries", libraries, kept),
            ("probe_without_bytecode", probe, none),
            ("libraries_without_bytecode", libraries, none),
        ):
            spent(argv, environment)
            measured = [spent(argv, environment) for _ in range(runs)]
            samples[f"{name}_seconds"] = [wall for wall, _ in measured]
            samples[f"{name}_cpu_seconds"] = [cpu for _, cpu in measured]
    least = {name: min(values) for name, values in samples.items()}
    met = keep(
        "probe",
        samples=samples,
        ratios={
            "probe_seconds": median(samples["probe_seconds"]),
            "probe_without_bytecode_seconds": median(
                samples["probe_without_bytecode_seconds"]
            ),
            "probe_to_libraries": least["probe_cpu_seconds"]
            / least["libraries_cpu_seconds"],
        },
        targets=TARGETS,
        facts={"gpu_tools": [name for name in GPU_TOOLS if found(name)]},
    )
    return 0 if met else 1


def median(values: list[float]) -> float:
    """Return the middle one."""
    return sorted(values)[len(values) // 2]


def found(name: str) -> bool:
    """Whether a tool is on PATH: with one, this is not the machine to measure on."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    return any((Path(folder) / name).is_file() for folder in folders)


def spent(argv: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    """Return wall and CPU seconds of one process, its own children included."""
    began, before = time.perf_counter(), os.times()
    subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    cpu = (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )
    return time.perf_counter() - began, cpu


if __name__ == "__main__":
    sys.exit(main())
