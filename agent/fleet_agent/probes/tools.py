"""How a probe asks the world: one call of a tool, and what came back.

A probe never starts anything itself.  It is handed an ``Ask`` and judges the
``ToolResult``; a recording answers exactly as the machine did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final


_END: Final = 32 * 1024


class ToolFault(StrEnum):
    """Why a tool could not even be started."""

    NOT_FOUND = "not_found"
    NOT_EXECUTABLE = "not_executable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One question to one tool.

    ``places`` are paths to look at when the tool is not on PATH, in order.
    """

    tool: str
    argv: tuple[str, ...]
    seconds: float = 10.0
    places: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered.  ``exit_code`` None is unknown, or it never ended.

    ``context`` holds what is known about the machine from other sources, where the
    output alone does not decide.
    """

    tool: str
    argv: tuple[str, ...] = ()
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    fault: ToolFault | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Both streams; tools disagree about which one a complaint goes to."""
        return f"{ends(self.stdout)}\n{ends(self.stderr)}"


def ends(text: str) -> str:
    """Return where a tool says what went wrong: the beginning and the end."""
    if len(text) <= 2 * _END:
        return text
    return f"{text[:_END]}\n{text[-_END:]}"


Ask = Callable[[ToolCall], ToolResult]
"""Answers a call; never raises, and never takes much longer than ``seconds``."""
