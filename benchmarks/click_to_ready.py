"""From the click to a ready JupyterLab, beside SimpleLocalProcessSpawner in one run.

``python benchmarks/click_to_ready.py [--samples 10] [--standby]``.  Both Hubs run at once, with the
same settings, database mode and interpreter; starts alternate between them, so that
whatever else the machine does meets both.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from figures import keep
from hubs import Side, environment_python, fleet_side, simple_side


COLD = {"ready_ratio": 0.40, "hub_cpu_ratio": 1.2}
STANDBY = {"ready_ratio": 0.08, "hub_cpu_ratio": 1.2}


def main() -> int:
    """Measure, keep, and return 0 if the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument(
        "--standby", action="store_true", help="with a process that was kept ready"
    )
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as fleet_folder,
        tempfile.TemporaryDirectory() as simple_folder,
        fleet_side(Path(fleet_folder), standby=arguments.standby) as (ours, fleet),
        simple_side(Path(simple_folder), environment_python(fleet)) as theirs,
    ):
        samples = measure((ours, theirs), arguments.samples)
    return 0 if keep_figures(samples, standby=arguments.standby) else 1


def measure(sides: tuple[Side, ...], count: int) -> dict[str, list[float]]:
    """Return the samples of *count* starts and stops of each side, one warm-up apart."""
    samples: dict[str, list[float]] = defaultdict(list)
    for number in range(count + 1):
        for side in sides:
            side.settle()
            hub, everything = side.hub_cpu_seconds(), side.all_cpu_seconds()
            ready = side.start()
            figures = {
                "ready_seconds": ready,
                "hub_cpu_seconds": side.hub_cpu_seconds() - hub,
                "all_cpu_seconds": side.all_cpu_seconds() - everything,
                "stop_seconds": side.stop(),
            }
            if number:
                for name, value in figures.items():
                    samples[f"{side.name}_{name}"].append(value)
                print(side.name, {k: round(v, 3) for k, v in figures.items()})
    return samples


def keep_figures(samples: dict[str, list[float]], *, standby: bool) -> bool:
    """Keep the samples with the ratios of their medians."""

    def ratio(name: str) -> float:
        ours, theirs = samples[f"fleet_{name}"], samples[f"simple_{name}"]
        return statistics.median(ours) / statistics.median(theirs)

    return keep(
        "click_to_ready_standby" if standby else "click_to_ready",
        samples=samples,
        ratios={
            "ready_ratio": ratio("ready_seconds"),
            "hub_cpu_ratio": ratio("hub_cpu_seconds"),
            "stop_ratio": ratio("stop_seconds"),
        },
        targets=STANDBY if standby else COLD,
        facts={
            "environment": "warm",
            "start": "process kept ready" if standby else "cold process",
        },
    )


if __name__ == "__main__":
    sys.exit(main())
