"""Keeps what every tool answered, in the form in which cases are collected.

One folder for each call: ``stdout.txt``, ``stderr.txt`` and ``meta.json``.  The whole
is a recording of one machine, from which its picture can be made again anywhere.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fleet_agent.probes.redact import Redaction
from fleet_agent.probes.settings import DetectSettings
from fleet_agent.probes.tools import Ask, ToolCall, ToolResult
from fleet_agent.probes.torch.probe import SCRIPT


MANIFEST: Final = "recording.json"
SCHEMA: Final = "jupyterhub-fleet/recording/v1"
TORCH_SCRIPT: Final = "<torch probe>"


@dataclass(slots=True)
class Recorder:
    """Stands between the probes and the machine, and remembers every answer."""

    ask: Ask
    results: list[ToolResult] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, call: ToolCall) -> ToolResult:
        """Answer *call* as the machine does, and remember it."""
        result = self.ask(call)
        with self._lock:
            self.results.append(result)
        return result

    def write(
        self,
        folder: Path,
        *,
        settings: DetectSettings,
        context: Mapping[str, Any],
        visibility: Mapping[str, str],
    ) -> int:
        """Write the cases below *folder* and return how many there are.

        Raises:
            OSError: it cannot be written.
        """
        redact = Redaction()
        folder.mkdir(parents=True, exist_ok=True)
        with self._lock:
            results = list(self.results)
        for number, result in enumerate(results, start=1):
            case = folder / f"{number:02d}-{result.tool}"
            _write_case(case, result, redact, context, visibility)
        manifest = _manifest(settings, redact, [result.tool for result in results])
        (folder / MANIFEST).write_text(f"{_json(manifest)}\n", "utf-8")
        return len(results)


def recorded_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return *argv* as a recording names it, whatever machine it ran on."""
    if SCRIPT in argv:
        return (
            "python",
            *(TORCH_SCRIPT if part == SCRIPT else part for part in argv[1:]),
        )
    return argv


def _write_case(
    folder: Path,
    result: ToolResult,
    redact: Redaction,
    context: Mapping[str, Any],
    visibility: Mapping[str, str],
) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in (("stdout.txt", result.stdout), ("stderr.txt", result.stderr)):
        # Byte for byte: the line ends are part of what a tool printed.
        (folder / name).write_bytes(redact(text).encode())
    meta = {
        "id": folder.name,
        "tool": result.tool,
        "argv": [redact(part) for part in recorded_argv(result.argv)],
        "exit_code": result.exit_code,
        "timed_out": result.timed_out,
        "env": {name: redact(value) for name, value in visibility.items()},
        "context": {
            name: redact(value) if isinstance(value, str) else value
            for name, value in context.items()
        },
    }
    (folder / "meta.json").write_text(f"{_json(meta)}\n", "utf-8")


def _manifest(
    settings: DetectSettings, redact: Redaction, tools: list[str]
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "recorded_at": settings.now().isoformat(),
        "state_dir": redact(settings.state_dir),
        "environments": [
            {"ref": item.ref, "interpreter": redact(item.interpreter)}
            for item in settings.environments
        ],
        "drivers": [name.value for name in settings.drivers],
        "unsandboxed": settings.unsandboxed,
        "torch": settings.torch,
        "tools": tools,
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
