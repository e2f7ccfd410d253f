"""Lets a Mac's GPU fill memory, with nothing but the system's Metal framework.

Runs inside a kernel as one cell and prints one line of JSON: the device's name and
whether the memory holds what the GPU was told to write.
"""

import ctypes
import ctypes.util
import json
import sys


_LENGTH = 4096
_FILL = 0x5A

objc = ctypes.CDLL(ctypes.util.find_library("objc"))
metal = ctypes.CDLL("/System/Library/Frameworks/Metal.framework/Metal")
objc.sel_registerName.restype = ctypes.c_void_p
objc.sel_registerName.argtypes = [ctypes.c_char_p]
metal.MTLCreateSystemDefaultDevice.restype = ctypes.c_void_p


class Range(ctypes.Structure):
    """Foundation's NSRange."""

    _fields_ = [("location", ctypes.c_ulong), ("length", ctypes.c_ulong)]


def send(target, selector, *arguments, result=ctypes.c_void_p, kinds=()):
    """Send an Objective-C message with arguments of the given kinds."""
    kind = ctypes.CFUNCTYPE(result, ctypes.c_void_p, ctypes.c_void_p, *kinds)
    message = kind(("objc_msgSend", objc))
    return message(target, objc.sel_registerName(selector.encode()), *arguments)


def main():
    """Print what the GPU did."""
    device = metal.MTLCreateSystemDefaultDevice()
    if not device:
        sys.stdout.write(json.dumps({"name": None, "filled": None}))
        return
    name = send(send(device, "name"), "UTF8String", result=ctypes.c_char_p)
    buffer = send(
        device,
        "newBufferWithLength:options:",
        _LENGTH,
        0,
        kinds=(ctypes.c_ulong, ctypes.c_ulong),
    )
    queue = send(device, "newCommandQueue")
    commands = send(queue, "commandBuffer")
    encoder = send(commands, "blitCommandEncoder")
    send(
        encoder,
        "fillBuffer:range:value:",
        buffer,
        Range(0, _LENGTH),
        _FILL,
        result=None,
        kinds=(ctypes.c_void_p, Range, ctypes.c_uint8),
    )
    send(encoder, "endEncoding", result=None)
    send(commands, "commit", result=None)
    send(commands, "waitUntilCompleted", result=None)
    contents = ctypes.string_at(send(buffer, "contents"), _LENGTH)
    filled = contents == bytes([_FILL]) * _LENGTH
    sys.stdout.write(json.dumps({"name": name.decode(), "filled": filled}))


main()
