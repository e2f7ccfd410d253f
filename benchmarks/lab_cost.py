"""What the extension adds to the start and the memory of a notebook server.

Run it with an interpreter that has jupyter_server, in the repository:
``python benchmarks/lab_cost.py``.  Each sample is a fresh process that has loaded the
server's modules and then loads the extension's; the first one only writes bytecode.
It is CPU time, so that a busy machine does not blur it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from figures import keep


SAMPLES = 15
PROBE = """
import json, time
import jupyter_server.serverapp, jupyter_server.extension.application
import psutil
memory = psutil.Process().memory_full_info
before, began = memory().uss, time.process_time()
import fleet_lab
fleet_lab._jupyter_server_extension_points()
seconds = time.process_time() - began
print(json.dumps([seconds, memory().uss - before]))
"""


def main() -> int:
    """Measure, keep, and return 0 if the targets are met."""
    seconds, size = [], []
    # An installed environment has its bytecode; a developer's shell may forbid it.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    for number in range(SAMPLES + 1):
        answer = subprocess.run(
            [sys.executable, "-c", PROBE],
            capture_output=True,
            check=True,
            env=environment,
        )
        if number == 0:
            continue
        taken, added = json.loads(answer.stdout)
        seconds.append(taken)
        size.append(added / 2**20)
    met = keep(
        "lab_cost",
        samples={"load_cpu_seconds": seconds, "memory_mib": size},
        ratios={
            "load_cpu_milliseconds": sorted(seconds)[SAMPLES // 2] * 1000,
            "memory_mib": sorted(size)[SAMPLES // 2],
        },
        targets={"load_cpu_milliseconds": 15, "memory_mib": 3},
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
