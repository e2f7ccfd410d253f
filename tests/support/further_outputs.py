"""Outputs that machines produce beyond the recorded ones: what a run is, and NVIDIA's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


UUID = "GPU-00000000-0000-0000-0000-00000000000"
ROW = "--query-gpu=index,uuid,driver_version,memory.total,mig.mode.current,name"
WINDOWS_TABLE = """\
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 546.33                 Driver Version: 546.33       CUDA Version: 12.3     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                     TCC/WDDM  | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  NVIDIA GeForce RTX 4090      WDDM  | 00000000:01:00.0  On |                  Off |
|  0%   41C    P8              21W / 450W |   1213MiB / 24564MiB |      1%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
"""
MIG_TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:43:00.0 Off |                   On |
| N/A   28C    P0             69W /  700W |       1MiB /  81559MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
| MIG devices:                                                                            |
|==================+==================================+===========+=======================|
|  0    1   0   0  |              16MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |
+------------------+----------------------------------+-----------+-----------------------+
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run and what must be concluded; what is not named here is not compared."""

    says: str
    tool: str = "nvidia-smi"
    argv: tuple[str, ...] = ("nvidia-smi", ROW, "--format=csv,noheader,nounits")
    out: str = ""
    err: str = ""
    code: int | None = 0
    late: bool = False
    context: dict[str, Any] = field(default_factory=dict)
    status: str = "ok"
    reason: str = "ok"
    complete: bool = False
    devices: tuple[dict[str, Any], ...] = ()
    torch: dict[str, Any] | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def absent(says: str, err: str, code: int | None = None) -> Run:
    """Return a run of a tool that is not there."""
    return Run(
        says=says, err=err, code=code, status="tool_absent", reason="tool_not_found"
    )


NVIDIA = (
    Run(
        says="a lost card says nothing, not even about MIG",
        out=f"0, {UUID}1, 550.54.14, 24564, [N/A], NVIDIA L4\n"
        "1, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]\n",
        status="partial",
        reason="gpu_lost",
        complete=True,
        devices=(
            {"index": 0, "healthy": True, "execution_supported": True},
            {
                "index": 1,
                "uuid": None,
                "memory_mib": None,
                "mig_enabled": None,
                "healthy": False,
                "execution_supported": False,
            },
        ),
    ),
    Run(
        says="a table of Windows names its driver model where Linux has persistence",
        argv=("nvidia-smi",),
        out=WINDOWS_TABLE.replace("\n", "\r\n"),
        complete=True,
        devices=(
            {
                "name": "NVIDIA GeForce RTX 4090",
                "memory_mib": 24564,
                "driver_version": "546.33",
                "execution_supported": True,
            },
        ),
    ),
    Run(
        says="the rows of a table of slices are no cards",
        argv=("nvidia-smi",),
        out=MIG_TABLE,
        reason="mig_enabled",
        complete=True,
        devices=({"name": "NVIDIA H100 80GB HBM3", "execution_supported": None},),
    ),
    Run(
        says="a listing of one card says nothing of the others",
        argv=("nvidia-smi", "-L", "-i", "0"),
        out=f"GPU 0: Tesla T4 (UUID: {UUID}1)\n",
        devices=({"name": "Tesla T4"},),
    ),
    Run(
        says="slices of older drivers carry their card's identity",
        argv=("nvidia-smi", "-L"),
        out=f"GPU 0: A100-SXM4-40GB (UUID: {UUID}1)\n"
        f"  MIG 3g.20gb Device 0: (UUID: MIG-{UUID}1/1/0)\n",
        reason="mig_enabled",
        complete=True,
        devices=({"mig_enabled": True, "execution_supported": None},),
    ),
    Run(
        says="a tool that cannot be loaded is there, and broken",
        err="nvidia-smi: error while loading shared libraries: libdl.so.2: cannot "
        "open shared object file: No such file or directory\n",
        code=127,
        status="tool_error",
        reason="library_missing",
    ),
    Run(
        says="a container without the device says that access is blocked",
        argv=("nvidia-smi",),
        out="Failed to initialize NVML: GPU access blocked by the operating system\n",
        code=17,
        status="tool_error",
        reason="gpu_access_blocked",
    ),
    Run(
        says="a failed look for devices after the driver changed is no zero",
        out="Failed to initialize NVML: Driver/library version mismatch\n"
        "NVML library version: 550.54\nNo devices were found\n",
        code=6,
        status="tool_error",
        reason="nvml_driver_library_mismatch",
    ),
    Run(
        says="a card without memory of its own may report none, or zero",
        out=f"0, {UUID}1, 580.00, [N/A], [N/A], NVIDIA Thor\n"
        f"1, {UUID}2, 580.00, 0, [N/A], NVIDIA Thor\n",
        complete=True,
        reason="memory_not_reported",
        devices=({"memory_mib": None}, {"memory_mib": None}),
    ),
    Run(
        says="a time before the index is a column like any other",
        argv=(
            "nvidia-smi",
            "--query-gpu=timestamp,index,name,memory.total",
            "--format=csv,noheader,nounits",
        ),
        out="2024/05/01 10:00:00.123, 0, Tesla T4, 15360\n",
        complete=True,
        devices=({"index": 0, "name": "Tesla T4", "memory_mib": 15360},),
    ),
    Run(
        says="a table that ends in a complaint names no card",
        argv=("nvidia-smi",),
        out=MIG_TABLE.partition("|   0")[0]
        + "Unable to determine the device handle for GPU 0000:0A:00.0: Unknown Error\n",
        code=None,
        status="tool_error",
        reason="device_handle_error",
    ),
    Run(
        says="links between cards are no cards",
        argv=("nvidia-smi", "topo", "-m"),
        out="\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-31\nGPU1\tNV12\t X \t0-31\n",
        status="unparseable",
        reason="not_understood",
    ),
    absent("German", "bash: nvidia-smi: Kommando nicht gefunden.\n"),
    absent("French", "bash: nvidia-smi\u00a0: commande introuvable\n"),
    absent("French with a plain space", "bash: nvidia-smi : commande introuvable\n"),
    absent("Chinese", "bash: nvidia-smi: 未找到命令\n"),
    absent(
        "an engine",
        "OCI runtime exec failed: exec failed: unable to start container process: "
        'exec: "nvidia-smi": executable file not found in $PATH: unknown\n',
        127,
    ),
)
