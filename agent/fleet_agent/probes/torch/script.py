"""Runs inside a workload's interpreter and says, step by step, what torch can do.

It is copied nowhere and imports nothing of ours: any Python from 3.8 on runs it.
Importing torch may crash, hang or print pages, so the answer is one marked JSON line
for each step on the first standard output, and whatever else prints goes to standard
error.  The last line that came out is how far it got.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any


MARK = "##PROBE##"
_channel = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
os.dup2(2, 1)


def say(stage: str, **facts: Any) -> None:
    """Write one step's facts, at once."""
    _channel.write(MARK + json.dumps(dict(facts, stage=stage)) + "\n")
    _channel.flush()


def attempt(read: Callable[[], Any]) -> Any:
    """Return what *read* returns, or None when it cannot be known."""
    try:
        return read()
    except Exception:  # noqa: BLE001 - a version without this attribute is no fault
        return None


def describe(torch: Any, index: int) -> dict[str, Any]:
    """Return one CUDA or ROCm device."""
    properties = torch.cuda.get_device_properties(index)
    return {
        "index": index,
        "name": properties.name,
        "memory_mib": properties.total_memory >> 20,
        "major": properties.major,
        "minor": properties.minor,
        "architecture": attempt(lambda: properties.gcnArchName.split(":")[0]),
        "uuid": attempt(lambda: str(properties.uuid)),
    }


def operate(torch: Any, device: str) -> None:
    """Compute on *device* and compare: being available is no proof."""
    ones = torch.ones(2, device=device)
    total = float((ones + ones).sum().item())
    if total != 4.0:  # noqa: PLR2004 - twice one plus one
        msg = f"the device computed {total!r} instead of 4.0"
        raise ValueError(msg)


def try_device(torch: Any, device: str) -> None:
    """Say whether *device* computes."""
    say("trying", device=device)
    try:
        operate(torch, device)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        text = f"{type(error).__name__}: {str(error)[:500]}"
        say("operation", device=device, ok=False, error=text)
    else:
        say("operation", device=device, ok=True)


def report(torch: Any) -> None:
    """Say everything that torch knows, the risky parts last."""
    version = torch.version
    say(
        "versions",
        version=str(torch.__version__),
        cuda=attempt(lambda: version.cuda),
        hip=attempt(lambda: version.hip),
        cuda_built=attempt(torch.backends.cuda.is_built),
        mps_built=attempt(torch.backends.mps.is_built),
        backends=distributed(torch),
    )
    cuda = attempt(torch.cuda.is_available)
    mps = attempt(torch.backends.mps.is_available)
    say("availability", cuda_available=cuda, mps_available=mps)
    count = attempt(torch.cuda.device_count) if cuda else 0
    indexes = range(count or 0)
    say("devices", devices=[attempt(partial(describe, torch, at)) for at in indexes])
    for index in indexes:
        try_device(torch, f"cuda:{index}")
    if mps:
        try_device(torch, "mps")
        say("metal", memory=attempt(torch.mps.recommended_max_memory))
    say("done")


def distributed(torch: Any) -> list[str] | None:
    """Return the collective back ends of this build, or None when it cannot tell."""
    module = attempt(lambda: importlib.import_module("torch.distributed"))
    if module is None or not attempt(module.is_available):
        return [] if module is not None else None
    names = ("gloo", "nccl", "mpi")
    checks = {
        name: attempt(getattr(module, f"is_{name}_available", lambda: None))
        for name in names
    }
    return [name for name in names if checks[name]]


def main() -> None:
    """Say the steps in order; an exception of the import ends the process."""
    say("started", python=sys.version.split()[0], executable=sys.executable)
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        say("absent")
        return
    say("imported")
    report(torch)


if __name__ == "__main__":
    main()
