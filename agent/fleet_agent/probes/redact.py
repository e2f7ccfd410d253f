"""Takes personal details out of what a recording keeps.

A recording is made for a bug report.  Who uses the machine, its name, its serial
numbers and its addresses say nothing about how an output must be read.
"""

from __future__ import annotations

import getpass
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final


_UUID: Final = re.compile(
    r"\b(GPU|MIG)-(?:GPU-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE
)
_PLAIN_UUID: Final = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE
)
_SERIAL: Final = re.compile(
    r"(?im)^(?P<key>[^\n:=,]{0,60}(?:serial|unique id|board id|platform_uuid)[^\n:=,]{0,40}?"
    r"[\"']?\s*[:=]\s*[\"']?)(?P<value>[^\n\"',]+)"
)
_HOMES: Final = re.compile(r"(/home/|/Users/|[A-Z]:\\Users\\)[^/\\\s:\"']+")
_MAC: Final = re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_LONG_HEX: Final = re.compile(r"\b[0-9a-f]{32,}\b", re.IGNORECASE)
_SECRET: Final = re.compile(
    r"(?i)\b(?P<key>[\w-]*(?:token|secret|password|api[_-]?key)[\w-]*[\"']?\s*[:=]\s*[\"']?)"
    r"(?P<value>[^\s\"',}]+)"
)
_KEPT_VALUES: Final = frozenset({"n/a", "[n/a]", "unknown", "redacted"})
_SHORTEST_NAME: Final = 3


def _own_words() -> dict[str, str]:
    words: dict[str, str] = {}
    names = (("host", socket.gethostname), ("user", getpass.getuser))
    for replacement, read in names:
        try:
            word = read()
        except (OSError, KeyError, ImportError):
            continue
        # "root" is everybody's, and a name of two letters is in every word.
        if len(word) >= _SHORTEST_NAME and word not in ("root", "localhost"):
            words[word] = replacement
    return words


@dataclass(slots=True)
class Redaction:
    """Replaces personal details; equal details stay equal within one recording."""

    words: dict[str, str] = field(default_factory=_own_words)
    home: str = field(default_factory=lambda: str(Path("~").expanduser()))
    _uuids: dict[str, str] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        """Return *text* without personal details."""
        text = _UUID.sub(self._numbered, text)
        text = _PLAIN_UUID.sub(self._kept_zeros, text)
        text = _SERIAL.sub(_without_value, text)
        text = _SECRET.sub(_without_value, text)
        if self.home not in ("/", "/root"):
            text = text.replace(self.home, "/home/user")
        text = _HOMES.sub(lambda match: f"{match[1]}user", text)
        text = _MAC.sub("00:00:00:00:00:00", text)
        text = _ADDRESS.sub(_documentation_address, text)
        text = _LONG_HEX.sub("0" * 32, text)
        for word, replacement in self.words.items():
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", replacement, text)
        return text

    def _numbered(self, match: re.Match[str]) -> str:
        kind = match[1].upper()
        number = len(self._uuids) + 1
        replacement = f"{kind}-00000000-0000-0000-0000-{number:012d}"
        return self._uuids.setdefault(match[0].lower(), replacement)

    def _kept_zeros(self, match: re.Match[str]) -> str:
        # What was numbered above is no secret any more.
        kept = match[0].startswith("00000000-0000-0000-0000-")
        return match[0] if kept else "00000000-0000-0000-0000-000000000000"


def _without_value(match: re.Match[str]) -> str:
    kept = match["value"].strip().lower() in _KEPT_VALUES
    return match[0] if kept else f"{match['key']}REDACTED"


def _documentation_address(match: re.Match[str]) -> str:
    parts = [int(part) for part in match[0].split(".")]
    local = parts[0] in (0, 127) or any(part > 255 for part in parts)  # noqa: PLR2004 - no address
    return match[0] if local else "192.0.2.1"
