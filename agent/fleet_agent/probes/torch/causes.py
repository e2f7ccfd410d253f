"""Why torch cannot: the causes that its warnings and errors state."""

from __future__ import annotations

import re
from typing import Final


# Order matters: the cause before the words that accompany it.
_CAUSES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (r"error 802\b|system not yet initialized", "fabric_manager_missing"),
        (r"error 804\b|forward compatibility was attempted", "cuda_forward_compat"),
        (
            r"error 803\b|unsupported display driver / cuda driver",
            "driver_library_mismatch",
        ),
        (
            r"no kernel image is available|not compatible with the current pytorch",
            "arch_not_in_build",
        ),
        (
            r"driver on your system is too old|driver version is insufficient",
            "driver_too_old",
        ),
        (r"found no nvidia driver", "driver_not_found"),
        (r"no cuda-capable device|error 100\b|error 101\b", "no_cuda_device"),
        (r"failed to initiali[sz]e xpu", "xpu_init_failed"),
        (r"hip error|hiperror", "hip_error"),
        (r"mps backend is supported on macos", "mps_os_too_old"),
        (r"cuda initialization:|cuda unknown error|error 999\b", "cuda_init_failed"),
        (
            (
                r"out of memory|cuda error|cuda_error|cublas_status|mps backend"
                r"|^(runtime|notimplemented|value)error:|torch\.\w*error:"
            ),
            "execution_failed",
        ),
    )
)
NOT_BUILT: Final = re.compile(r"torch not compiled with cuda enabled", re.IGNORECASE)
NOT_BUILT_FOR_METAL: Final = re.compile(
    r"not linked with support for mps|not compiled with mps", re.IGNORECASE
)
HIP_TRIED: Final = re.compile(r"\bhip error|\bhiperror", re.IGNORECASE)
METAL_TOO_OLD: Final = re.compile(r"mps backend is supported on macos", re.IGNORECASE)
NO_CUDA_DRIVER: Final = re.compile(
    r"found no nvidia driver|driver on your system is too old"
    r"|driver version is insufficient|no cuda-capable device",
    re.IGNORECASE,
)
"""What only a build for CUDA says, and only where CUDA cannot be used at all."""
MISSING: Final = re.compile(r"no module named ['\"]?torch['\"]?(\s|$)", re.IGNORECASE)
CUDA_TRIED: Final = re.compile(
    r"cuda initialization:|cudagetdevicecount|cuda error|torch/cuda/__init__|error 80[2-4]",
    re.IGNORECASE,
)
MPS_TRIED: Final = re.compile(r"\bmps\b|metal", re.IGNORECASE)
XPU_TRIED: Final = re.compile(r"\bxpu\b", re.IGNORECASE)
TRACEBACK: Final = re.compile(r"traceback \(most recent call last\)", re.IGNORECASE)
IMPORT_FAILED: Final = re.compile(
    r"^(importerror|oserror|attributeerror|syntaxerror|modulenotfounderror|nameerror)\b"
    r"|undefined symbol|cannot open shared object|dll load failed|winerror 12[67]",
    re.IGNORECASE | re.MULTILINE,
)


def cause(text: str) -> str | None:
    """Return the first known cause in *text*."""
    for pattern, reason in _CAUSES:
        if any(pattern.search(line) for line in text.splitlines()):
            return reason
    return None
