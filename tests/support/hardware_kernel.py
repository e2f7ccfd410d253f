"""Notebook kernels for the hardware tests, and the cells that they run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager


CELLS = Path(__file__).parent.parent / "hardware" / "cells"


def cell(name: str) -> str:
    """Return the text of one cell."""
    return (CELLS / f"{name}.py").read_text("utf-8")


@contextmanager
def a_kernel(environment: dict[str, str], folder: Path) -> Iterator[KernelManager]:
    """Run a notebook kernel of the tests' own interpreter, with more *environment*."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=dict(os.environ) | environment, cwd=str(folder))
    try:
        yield manager
    finally:
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def run_cell(manager: KernelManager, code: str) -> str:
    """Run *code* as one cell and return what it printed; an error is a failure."""
    client = manager.client()
    client.start_channels()
    printed: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    try:
        client.wait_for_ready(timeout=60)
        reply = client.execute_interactive(code, output_hook=hear, timeout=120)
    finally:
        client.stop_channels()
    if reply["content"]["status"] != "ok":
        raise AssertionError("\n".join(reply["content"]["traceback"]))
    return "".join(printed)
