"""Computes on an NVIDIA GPU with nothing but its driver: no framework, no toolkit.

Runs inside a notebook's kernel, so it is one cell and prints one line of JSON: the
visibility variable as the kernel sees it, the devices it can reach, and whether the
first of them squares numbers.
"""

import ctypes
import json
import os
import sys


_KERNEL = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry square(.param .u64 numbers)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [numbers];
    cvta.to.global.u64 %d2, %d1;
    mov.u32 %r1, %tid.x;
    mul.lo.u32 %r2, %r1, %r1;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d2, %d3;
    st.global.u32 [%d4], %r2;
    ret;
}
"""
_COUNT = 256


def call(function, *arguments):
    """Call the driver; any fault ends the cell with its number."""
    code = function(*arguments)
    if code != 0:
        raise RuntimeError(f"{function.__name__} answered {code}")


def compute(cuda):
    """Return the numbers that the first visible device has squared."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call(cuda.cuDeviceGet, ctypes.byref(device), 0)
    call(cuda.cuDevicePrimaryCtxRetain, ctypes.byref(context), device)
    call(cuda.cuCtxSetCurrent, context)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call(cuda.cuModuleLoadData, ctypes.byref(module), _KERNEL)
    call(cuda.cuModuleGetFunction, ctypes.byref(function), module, b"square")
    numbers = (ctypes.c_uint32 * _COUNT)()
    memory = ctypes.c_uint64()
    call(cuda.cuMemAlloc_v2, ctypes.byref(memory), ctypes.c_size_t(4 * _COUNT))
    arguments = (ctypes.c_void_p * 1)(
        ctypes.cast(ctypes.byref(memory), ctypes.c_void_p)
    )
    shape = [ctypes.c_uint(size) for size in (1, 1, 1, _COUNT, 1, 1, 0)]
    call(cuda.cuLaunchKernel, function, *shape, None, arguments, None)
    call(cuda.cuCtxSynchronize)
    call(
        cuda.cuMemcpyDtoH_v2,
        ctypes.byref(numbers),
        memory,
        ctypes.c_size_t(4 * _COUNT),
    )
    call(cuda.cuMemFree_v2, memory)
    return list(numbers)


def uuids(cuda):
    """Return the UUIDs of the visible devices."""
    count = ctypes.c_int()
    call(cuda.cuDeviceGetCount, ctypes.byref(count))
    found = []
    for index in range(count.value):
        device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        call(cuda.cuDeviceGet, ctypes.byref(device), index)
        call(cuda.cuDeviceGetUuid, ctypes.byref(raw), device)
        text = bytes(raw).hex()
        parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
        found.append("GPU-" + "-".join(parts))
    return found


def main():
    """Print what this process can see and compute."""
    seen = {
        "variable": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "uuids": [],
        "squares": None,
    }
    cuda = ctypes.CDLL("libcuda.so.1")
    if cuda.cuInit(0) == 0:
        seen["uuids"] = uuids(cuda)
        if seen["uuids"]:
            seen["squares"] = compute(cuda) == [n * n for n in range(_COUNT)]
    sys.stdout.write(json.dumps(seen))


main()
