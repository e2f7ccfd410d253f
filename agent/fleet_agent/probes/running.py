"""Runs one tool within limits of time and output, and never waits for what is stuck.

A wedged GPU driver leaves its tool in uninterruptible sleep: killed, and still
there.  So after the limit the whole process group is killed and, if it does not go,
abandoned.  ``subprocess.run(timeout=…)`` would wait for it without end.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import IO, Final

from fleet_agent.probes.tools import ToolCall, ToolFault, ToolResult


OUTPUT_LIMIT: Final = 1024 * 1024
"""Bytes kept of each stream; the rest is read and thrown away."""
_GRACE_SECONDS: Final = 2.0
_PIPE_SECONDS: Final = 0.5
"""How long a pipe may stay open after its process ended: a grandchild holds it."""
_CHUNK: Final = 65536
_VISIBILITY: Final = ("CUDA_", "HIP_", "ROCR_", "NVIDIA_VISIBLE_DEVICES")


@dataclass(slots=True)
class _Stream:
    kept: bytearray = field(default_factory=bytearray)
    open: bool = True

    def take(self, chunk: bytes) -> None:
        self.kept += chunk[: max(0, OUTPUT_LIMIT - len(self.kept))]

    def text(self) -> str:
        return self.kept.decode("utf-8", errors="replace")


def find(call: ToolCall) -> str | None:
    """Return the path of *call*'s program: PATH first, then its usual places.

    A file there that nobody may run is returned only where no other place has one: then
    that it cannot be run is the fact.
    """
    on_path = shutil.which(call.argv[0])
    if on_path is not None:
        return on_path
    there = [place for place in call.places if os.path.exists(place)]  # noqa: PTH110 - a plain string from a table
    return next((place for place in there if os.access(place, os.X_OK)), None) or next(
        iter(there), None
    )


def run(call: ToolCall) -> ToolResult:
    """Run *call* and return what it said; never raises for anything the tool does."""
    path = find(call)
    if path is None:
        return _fault(call, ToolFault.NOT_FOUND, f"{call.argv[0]}: command not found")
    try:
        process = _spawn(path, call)
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        fault = ToolFault.NOT_FOUND if missing else ToolFault.NOT_EXECUTABLE
        return _fault(call, fault, f"{type(error).__name__}: {error}")
    _without_core_dump(process.pid)
    out, err = _Stream(), _Stream()
    in_time = _collect(process, out, err, call.seconds)
    return ToolResult(
        tool=call.tool,
        argv=call.argv,
        exit_code=process.returncode if in_time else None,
        stdout=out.text(),
        stderr=err.text(),
        timed_out=not in_time,
    )


def _fault(call: ToolCall, fault: ToolFault, text: str) -> ToolResult:
    return ToolResult(
        tool=call.tool,
        argv=call.argv,
        # What a shell would have said, so that a recording reads the same.
        exit_code=127 if fault is ToolFault.NOT_FOUND else 126,
        stderr=text,
        fault=fault,
    )


def environment(extra: dict[str, str]) -> dict[str, str]:
    """Return a tool's environment: plain language, and no device hidden from it.

    The agent's own CUDA_VISIBLE_DEVICES and the like belong to whoever started it;
    the inventory must not depend on them.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_VISIBILITY)
    }
    return kept | {"LC_ALL": "C", "LANG": "C", "LANGUAGE": "C"} | extra


def _spawn(path: str, call: ToolCall) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [path, *call.argv[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        close_fds=True,
        cwd="/" if os.name == "posix" else None,
        env=environment(dict(call.environment)),
    )


def _without_core_dump(pid: int) -> None:
    # Linux only; elsewhere the machine's own limit holds.
    if hasattr(resource, "prlimit"):
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def _collect(
    process: subprocess.Popen[bytes], out: _Stream, err: _Stream, seconds: float
) -> bool:
    """Read until the process ends or its time is over; say whether it was in time."""
    assert process.stdout is not None  # noqa: S101 - both are pipes, see _spawn
    assert process.stderr is not None  # noqa: S101 - as above
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for pipe, stream in ((process.stdout, out), (process.stderr, err)):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, stream)
        ended_at: float | None = None
        while out.open or err.open:
            now = time.monotonic()
            if ended_at is None and process.poll() is not None:
                ended_at = now
            if now >= deadline or (ended_at and now >= ended_at + _PIPE_SECONDS):
                break
            _drain(selector, min(0.05, deadline - now))
    left_over = out.open or err.open
    in_time = _ended(process, max(0.0, deadline - time.monotonic()))
    if left_over or not in_time:
        _kill_group(process)
        _ended(process, _GRACE_SECONDS)
        # An agent that got no time itself has not read what was said in time.
        for pipe, stream in ((process.stdout, out), (process.stderr, err)):
            _take_rest(pipe, stream)
    for pipe in (process.stdout, process.stderr):
        with contextlib.suppress(OSError):
            pipe.close()
    return in_time


def _drain(selector: selectors.BaseSelector, seconds: float) -> None:
    for key, _ in selector.select(max(0.0, seconds)):
        pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]  # registered above
        stream: _Stream = key.data
        try:
            chunk = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            chunk = b""
        if chunk:
            stream.take(chunk)
        else:
            stream.open = False
            selector.unregister(pipe)


def _take_rest(pipe: IO[bytes], stream: _Stream) -> None:
    """Take what lies in *pipe*, and wait for nothing; whoever writes on is not heard."""
    for _ in range(OUTPUT_LIMIT // _CHUNK):
        try:
            chunk = os.read(pipe.fileno(), _CHUNK)
        except OSError:
            return
        if not chunk:
            return
        stream.take(chunk)


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # The tool leads its own session, so its group holds all of its children.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
