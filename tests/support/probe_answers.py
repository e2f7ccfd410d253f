"""What a machine's Docker client, package folders and torch answer to the probes."""

from __future__ import annotations

import json

from fleet_agent.probes.settings import Environment


DOCKER_INFO = json.dumps(
    {"ServerVersion": "27.3.1", "Runtimes": {"runc": {}, "nvidia": {}}}
)
PACKAGES = json.dumps(
    {
        "found": True,
        "metadata": ["torch-2.5.1.dist-info", "numpy-2.1.0.dist-info"],
        "torch_version_py": "__version__ = '2.5.1+cu124'\ncuda = '12.4'\nhip = None\n",
    }
)
TORCH_SAYS = "".join(
    f"##PROBE##{json.dumps(step)}\n"
    for step in (
        {"stage": "started", "executable": "/env/bin/python"},
        {"stage": "imported"},
        {
            "stage": "versions",
            "version": "2.5.1+cu124",
            "cuda": "12.4",
            "backends": ["gloo", "nccl"],
        },
        {"stage": "availability", "cuda_available": True, "mps_available": False},
        {"stage": "devices", "devices": [{"index": 0}]},
        {"stage": "operation", "device": "cuda:0", "ok": True},
        {"stage": "done"},
    )
)
PYTORCH = Environment(ref="pytorch", interpreter="/env/bin/python")
