"""Outputs beyond the recorded ones: each stands for a kind that machines produce."""

from __future__ import annotations

import json
from typing import Any

import pytest
from further_outputs import NVIDIA, Run

from fleet_agent.probes.documents import answer_document
from fleet_agent.probes.interpret import interpret
from fleet_agent.probes.tools import ToolResult


MAC = {"os": "darwin", "apple_silicon": True, "cpu_brand": "Apple M2 Pro"}
AMD_JSON = ("amd-smi", "static", "--asic", "--vram", "--json")
AMD = (
    Run(
        says="a number in quotation marks is a number",
        tool="amd-smi",
        argv=AMD_JSON,
        out=json.dumps([{"gpu": "1", "asic": {"market_name": "MI100"}}]),
        complete=True,
        devices=({"index": 1, "name": "MI100", "execution_supported": False},),
    ),
    Run(
        says="yes is no number",
        tool="amd-smi",
        argv=AMD_JSON,
        out=json.dumps([{"gpu": True, "asic": {"market_name": "MI100"}}]),
        complete=True,
        devices=({"index": None, "name": "MI100"},),
    ),
    Run(
        says="a size in GB is rounded, and a made-up target is none",
        tool="amd-smi",
        argv=AMD_JSON,
        out="WARNING: User is missing the following required groups: render.\n"
        + json.dumps(
            {
                "gpu_data": [
                    {
                        "gpu": 0,
                        "asic": {"target_graphics_version": "gfx9010"},
                        "board": {"product_name": "MI250"},
                        "vram": {"size": {"value": 64, "unit": "GB"}},
                    }
                ]
            }
        ),
        status="ok_with_warnings",
        reason="missing_groups",
        complete=True,
        devices=({"name": "MI250", "memory_mib": None, "architecture": None},),
    ),
    Run(
        says="an error instead of a list is an error",
        tool="amd-smi",
        argv=AMD_JSON,
        out=json.dumps({"error": "AMDSMI_STATUS_NO_DRV"}),
        status="tool_error",
        reason="driver_not_running",
    ),
    Run(
        says="a library that is not there is a broken tool",
        tool="rocm-smi",
        argv=("rocm-smi", "--json"),
        err="Exception caught: librocm_smi64.so.7: cannot open shared object file: "
        "No such file or directory\n",
        code=1,
        status="tool_error",
        reason="library_missing",
    ),
)


def displays(*entries: dict[str, Any]) -> str:
    """Return what system_profiler prints."""
    return json.dumps({"SPDisplaysDataType": entries}, indent=2)


APPLE = (
    Run(
        says="a display's vendor is not the GPU's",
        tool="system_profiler",
        argv=("system_profiler", "SPDisplaysDataType", "-json"),
        out=displays(
            {
                "sppci_model": "Apple M3 Max",
                "sppci_cores": "40",
                "spdisplays_vendor": "sppci_vendor_Apple",
                "spdisplays_ndrvs": [{"spdisplays_vendor": "sppci_vendor_amd"}],
            }
        ),
        complete=True,
        devices=({"accelerator": "mps", "name": "Apple M3 Max", "memory_mib": None},),
    ),
    Run(
        says="an Intel Mac with an external GPU has two that nothing computes on",
        tool="system_profiler",
        argv=("system_profiler", "SPDisplaysDataType", "-json"),
        out=displays(
            {
                "sppci_model": "Intel UHD Graphics 630",
                "spdisplays_vendor": "sppci_vendor_intel",
                "spdisplays_vram_shared": "1536 MB",
            },
            {
                "sppci_model": "Radeon RX 580",
                "spdisplays_vendor": "sppci_vendor_amd",
                "spdisplays_vram": "8 GB",
            },
        ),
        complete=True,
        devices=(
            {"accelerator": "other", "vendor": "intel", "memory_mib": None},
            {"accelerator": "other", "vendor": "amd", "memory_mib": 8192},
        ),
    ),
    Run(
        says="an answer that was cut off hides no Mac's GPU",
        tool="system_profiler",
        argv=("system_profiler", "SPDisplaysDataType", "-json"),
        out=displays({"sppci_model": "Apple M2 Pro"})[:40],
        context=MAC,
        status="unparseable",
        reason="not_understood",
        complete=True,
        devices=({"accelerator": "mps", "name": "Apple M2 Pro"},),
    ),
    Run(
        says="a Japanese text has the same shape",
        tool="system_profiler",
        argv=("system_profiler", "SPDisplaysDataType"),
        out="グラフィックス/ディスプレイ:\n\n    Apple M2:\n\n"
        "      チップセットのモデル: Apple M2\n      コアの総数: 10\n"
        "      製造元: Apple (0x106b)\n",
        complete=True,
        devices=({"accelerator": "mps", "name": "Apple M2"},),
    ),
    Run(
        says="only Apple Silicon translates processes",
        tool="sysctl",
        argv=("sysctl", "sysctl.proc_translated", "machdep.cpu.brand_string"),
        out="sysctl.proc_translated: 1\n"
        "machdep.cpu.brand_string: VirtualApple @ 2.50GHz\n",
        complete=True,
        devices=({"accelerator": "mps", "name": None, "execution_supported": True},),
    ),
    Run(
        says="a lone processor word names no system",
        tool="uname",
        argv=("uname", "-m"),
        out="x86_64\n",
        context=MAC,
        reason="translated_process",
        complete=True,
        devices=({"accelerator": "mps", "execution_supported": True},),
    ),
    Run(
        says="nor does it make a Mac", tool="uname", argv=("uname", "-m"), out="arm64\n"
    ),
)

PROBE = ("python", "-c", "<torch probe>")


def torch(says: str, expected: dict[str, Any], **facts: Any) -> Run:
    """Return a run of a torch probe that is not ours."""
    return Run(says=says, tool="torch-probe", argv=PROBE, torch=expected, **facts)


TORCH = (
    torch(
        "an error of HIP tells a build for AMD",
        {"cuda_built": False, "cuda_available": True, "cuda": False},
        out="True\n",
        err="RuntimeError: HIP error: invalid device function\n",
        code=1,
        status="ok_with_warnings",
        reason="hip_error",
    ),
    torch(
        "a build for AMD has no CUDA, available or not",
        {"version": "2.5.1+rocm6.2", "cuda_built": False, "cuda": False},
        out="2.5.1+rocm6.2\nTrue\n",
        reason="rocm_build",
    ),
    torch(
        "a word of yes or no is no version",
        {"version": "2.4.0+cpu", "cuda_built": False, "cuda_available": False},
        out="torch 2.4.0+cpu\ncuda False\n",
        reason="framework_without_cuda",
    ),
    torch(
        "a version is no yes",
        {"version": "2.6.0", "cuda_built": True, "cuda_available": None},
        out="torch: 2.6.0\ncuda: 12.4\n",
    ),
    torch(
        "an operation without a driver is evidence, and no crash",
        {"cuda_built": True, "cuda_available": False, "cuda": False},
        err="RuntimeError: Found no NVIDIA driver on your system. Please check that "
        "you have an NVIDIA GPU and installed a driver\n",
        code=1,
        status="ok_with_warnings",
        reason="driver_not_found",
    ),
    torch(
        "a fabric that is not up is evidence, and no crash",
        {"cuda_built": True, "cuda_available": None, "cuda": False},
        err="RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: "
        "system not yet initialized\n",
        code=1,
        status="ok_with_warnings",
        reason="fabric_manager_missing",
    ),
    torch(
        "an old macOS is told by its error",
        {"mps_built": True, "mps_available": False, "mps": False},
        err="RuntimeError: The MPS backend is supported on MacOS 12.3+.\n",
        code=1,
        status="ok_with_warnings",
        reason="mps_os_too_old",
    ),
    torch(
        "a build without Metal is told by its error",
        {"mps_built": False, "mps_available": False, "mps": False},
        err="RuntimeError: PyTorch is not linked with support for mps devices\n",
        code=1,
        reason="framework_without_mps",
    ),
    torch(
        "what was printed before a hang stays said",
        {"version": "2.1.0+cu118", "cuda_built": True, "cuda_available": None},
        out="2.1.0+cu118\n",
        code=None,
        late=True,
        status="timeout",
        reason="tool_timeout",
    ),
    torch(
        "a missing file of names is noise",
        {"version": "2.5.1+rocm6.2", "cuda_available": True},
        out="2.5.1+rocm6.2\nTrue\n",
        err="/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory\n",
        status="ok_with_warnings",
        reason="import_noise",
    ),
    torch(
        "a broken library is a failed import, and no absent torch",
        {"version": None, "cuda": None, "mps": None},
        err="ImportError: libcudnn.so.9: cannot open shared object file: No such "
        "file or directory\n",
        code=1,
        status="crash",
        reason="import_failed",
    ),
)


CGROUP = ("sh", "-c", "nproc; cat /sys/fs/cgroup/cpu.max")
MEMORY = ("python", "-c", "import psutil; print(psutil.virtual_memory())")
HOST = (
    Run(
        says="no quota leaves what is visible",
        tool="cgroup",
        argv=CGROUP,
        out="16\nmax 100000\n",
        facts={"cpu_visible": 16, "cpu_effective": 16.0},
    ),
    Run(
        says="a file that is not there is no limit of nothing",
        tool="cgroup",
        argv=("cat", "/sys/fs/cgroup/cpu.max"),
        err="cat: /sys/fs/cgroup/cpu.max: No such file or directory\n",
        code=1,
        status="tool_error",
        reason="tool_failed",
        facts={"cpu_effective": None},
    ),
    Run(
        says="a tuple is read by its name for the total",
        tool="psutil",
        argv=MEMORY,
        out="svmem(total=16742875136, available=1048576, percent=6.2)\n",
        context={"memory_limit_bytes": 1 << 30},
        reason="memory_limit_ignored",
        facts={
            "memory_visible_bytes": 16742875136,
            "memory_effective_bytes": 1 << 30,
        },
    ),
    Run(
        says="an empty registry is empty",
        tool="ioreg",
        argv=("ioreg", "-l"),
        status="unparseable",
        reason="empty_output",
    ),
)


@pytest.mark.parametrize(
    "run",
    [*HOST, *NVIDIA, *AMD, *APPLE, *TORCH],
    ids=lambda run: f"{run.tool}: {run.says}",
)
def test_a_further_output_is_read_by_the_same_rules(run: Run) -> None:
    """What it shows is concluded, and nothing that it does not show."""
    document = answer_document(
        interpret(
            ToolResult(
                tool=run.tool,
                argv=run.argv,
                exit_code=run.code,
                stdout=run.out,
                stderr=run.err,
                timed_out=run.late,
                context=run.context,
            )
        )
    )

    told = (document["status"], document["reason"], document["devices_complete"])
    assert told == (run.status, run.reason, run.complete)
    assert len(document["devices"]) == len(run.devices)
    for device, expected in zip(document["devices"], run.devices, strict=True):
        assert {name: device[name] for name in expected} == expected
    for name, value in run.facts.items():
        assert document["facts"].get(name) == value
    if run.torch is not None:
        assert {name: document["torch"][name] for name in run.torch} == run.torch
