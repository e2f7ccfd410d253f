"""How figures are kept: samples with what they were measured on, as JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


REPOSITORY = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"


FEW = 100
"""So many samples are kept one by one; of more only how they lie."""


def quantile(samples: Sequence[float], part: float) -> float:
    """Return the sample below which *part* of all lie."""
    ordered = sorted(samples)
    return ordered[int(part * (len(ordered) - 1))]


def summary(samples: Sequence[float]) -> dict[str, float]:
    """Return the figures that a reader compares."""
    found = {
        "median": round(statistics.median(samples), 6),
        "minimum": round(min(samples), 6),
        "maximum": round(max(samples), 6),
        "count": len(samples),
    }
    if len(samples) > FEW:
        for percent in (10, 25, 75, 90, 95, 99):
            found[f"p{percent}"] = round(quantile(samples, percent / 100), 6)
    return found


def keep(
    name: str,
    *,
    samples: Mapping[str, Sequence[float]],
    ratios: Mapping[str, float],
    targets: Mapping[str, float],
    facts: Mapping[str, Any] | None = None,
) -> bool:
    """Write ``results/<name>.json`` and print it; return whether all targets are met.

    *targets* are upper bounds for the ratios (or amounts) of the same name.
    """
    missed = {key for key, bound in targets.items() if ratios[key] > bound}
    document = {
        "benchmark": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": {
            "cores": os.cpu_count(),
            # On a busy machine: chrt -r 1 python benchmarks/...
            "real_time_priority": os.sched_getscheduler(0) == os.SCHED_RR,
            "load": [round(load, 2) for load in os.getloadavg()],
            "python": platform.python_version(),
            "system": platform.platform(),
        },
        "facts": dict(facts or {}),
        "figures": {key: round(value, 4) for key, value in ratios.items()},
        "targets": dict(targets),
        "missed": sorted(missed),
        "summary": {key: summary(values) for key, values in samples.items()},
        "samples": {
            key: [round(value, 6) for value in values]
            for key, values in samples.items()
            if len(values) <= FEW
        },
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    for key, figures in document["summary"].items():
        print(
            f"{key:32} median {figures['median']:.4f}  ({figures['minimum']:.4f}"
            f"-{figures['maximum']:.4f}, {figures['count']} samples)"
        )
    for key, value in document["figures"].items():
        bound = targets.get(key)
        verdict = (
            ""
            if bound is None
            else f"  target {bound:g}" + ("  MISSED" if key in missed else "  met")
        )
        print(f"{key:32} {value:.4f}{verdict}")
    print(f"kept in {path.relative_to(REPOSITORY)}")
    return not missed


def _commit() -> str:
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or "unknown"
