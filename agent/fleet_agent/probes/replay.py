"""Interprets recorded cases on any machine: one, a collection, or a whole recording."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fleet_agent.probes.record import MANIFEST, SCHEMA, recorded_argv
from fleet_agent.probes.settings import DetectSettings, Environment
from fleet_agent.probes.tools import ToolCall, ToolResult
from fleet_contracts.workloads import DriverName


META: Final = "meta.json"
_LARGEST: Final = 4 * 1024 * 1024


class CaseError(ValueError):
    """A folder that is no case and no recording."""


def load_case(folder: Path) -> ToolResult:
    """Return the run that *folder* keeps.

    Raises:
        CaseError: it is no case.
    """
    meta = _load_json(folder / META)
    tool = meta.get("tool")
    if not isinstance(tool, str):
        raise CaseError(f"{folder / META} does not say which tool ran")
    exit_code = meta.get("exit_code")
    argv = meta.get("argv")
    return ToolResult(
        tool=tool,
        argv=tuple(str(part) for part in argv) if isinstance(argv, list) else (),
        exit_code=exit_code if isinstance(exit_code, int) else None,
        stdout=_text(folder / "stdout.txt"),
        stderr=_text(folder / "stderr.txt"),
        timed_out=meta.get("timed_out") is True,
        env=_strings(meta.get("env")),
        context=context if isinstance(context := meta.get("context"), Mapping) else {},
    )


def is_case(folder: Path) -> bool:
    """Whether *folder* keeps one case."""
    return (folder / META).is_file()


def is_recording(folder: Path) -> bool:
    """Whether *folder* keeps the whole recording of one machine."""
    return (folder / MANIFEST).is_file()


def case_folders(folder: Path) -> tuple[Path, ...]:
    """Return the cases directly below *folder*, by name."""
    return tuple(sorted(item for item in folder.iterdir() if is_case(item)))


@dataclass(slots=True)
class RecordedMachine:
    """Answers calls from a recording, each as often as it was asked."""

    results: dict[tuple[str, tuple[str, ...]], deque[ToolResult]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def load(cls, folder: Path) -> RecordedMachine:
        """Return the machine behind *folder*.

        Raises:
            CaseError: a case in it cannot be read.
        """
        machine = cls()
        for case in case_folders(folder):
            result = load_case(case)
            machine.results[_key(result.tool, result.argv)].append(result)
        return machine

    def __call__(self, call: ToolCall) -> ToolResult:
        """Answer *call* as the recorded machine did."""
        with self._lock:
            kept = self.results.get(_key(call.tool, recorded_argv(call.argv)))
            if not kept:
                told = f"{call.tool} was not asked this in the recording"
                return ToolResult(
                    tool=call.tool, argv=call.argv, exit_code=1, stderr=told
                )
            # The last answer stands for any further question.
            return kept.popleft() if len(kept) > 1 else kept[0]


def _key(tool: str, argv: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    # Readings name folders of their machine; every other argument is part of the question.
    return tool, () if tool.endswith("-readings") else argv[1:]


def load_settings(folder: Path) -> DetectSettings:
    """Return the settings under which *folder* was recorded.

    Raises:
        CaseError: it is no recording.
    """
    manifest = _load_json(folder / MANIFEST)
    if manifest.get("schema") != SCHEMA:
        raise CaseError(f"{folder / MANIFEST} is not of the form {SCHEMA}")
    listed = manifest.get("environments")
    names = manifest.get("drivers")
    known = {name.value for name in DriverName}
    at = _moment(manifest.get("recorded_at"))
    return DetectSettings(
        state_dir=str(manifest.get("state_dir", "/")),
        environments=tuple(
            Environment(ref=str(item["ref"]), interpreter=str(item["interpreter"]))
            for item in (listed if isinstance(listed, list) else ())
            if isinstance(item, Mapping) and {"ref", "interpreter"} <= set(item)
        ),
        drivers=tuple(
            DriverName(name)
            for name in (names if isinstance(names, list) else ())
            if name in known
        ),
        unsandboxed=manifest.get("unsandboxed") is True,
        torch=manifest.get("torch") is not False,
        # What was seen then is not seen now.
        now=lambda: at,
        ask=RecordedMachine.load(folder),
    )


def _moment(text: object) -> datetime:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise CaseError(f"{MANIFEST} does not say when it was recorded") from error
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _load_json(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise CaseError(f"{path} is no JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise CaseError(f"{path} is no JSON object")
    return value


def _text(path: Path) -> str:
    """Return a file's text; one that is not there is empty."""
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CaseError(f"{path} cannot be read: {error.strerror}") from error


def _strings(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): str(item) for name, item in value.items()}
