"""Reads ``sysctl``, ``ioreg`` and ``uname``: single values, some of them not there."""

from __future__ import annotations

import re
from typing import Final

from fleet_agent.probes.text import known, lines, shortened


_NAMED: Final = re.compile(r"([a-z][\w.]{2,80}) ?[:=] ?(.*)")
_UNKNOWN_OID: Final = re.compile(r"unknown oid '?([\w.]+)'?")
_IOREG: Final = re.compile(r"[| ]*\"([\w-]{1,60})\" = (.{1,200})")
_HEX: Final = re.compile(r"<([0-9a-f]{2,16})>", re.IGNORECASE)


def sysctl_values(
    argv: tuple[str, ...], stdout: str, stderr: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the values by key, and the keys that this system does not know.

    With ``-n`` the output has values only, in the order of the keys that exist.
    """
    told = lines(stdout)
    missing = tuple(_UNKNOWN_OID.findall(f"{stdout}\n{stderr}"))
    values = {match[1]: match[2] for line in told if (match := _NAMED.fullmatch(line))}
    asked = [part for part in argv[1:] if re.fullmatch(r"[a-z][\w]*(\.\w+)+", part)]
    there = [key for key in asked if key not in missing]
    bare = [line for line in told if not _UNKNOWN_OID.search(line)]
    if not values and len(bare) == len(there):
        values = dict(zip(there, bare, strict=True))
    return values, missing


def ioreg_values(stdout: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the properties of a registry dump, numbers as decimal text."""
    values: dict[str, str] = {}
    other: list[str] = []
    for line in lines(stdout):
        match = _IOREG.fullmatch(line)
        if match:
            values.setdefault(match[1], _decimal(match[2].strip()))
        elif '"' in line:
            other.append(shortened(line))
    return values, tuple(other[:20])


def _decimal(value: str) -> str:
    """Data is little-endian hexadecimal: <06000000> is 6."""
    match = _HEX.fullmatch(value)
    if match is None or len(match[1]) % 2:
        return value.strip('"')
    return str(int.from_bytes(bytes.fromhex(match[1]), "little"))


def uname_facts(stdout: str) -> dict[str, str | bool | None]:
    """Return the system, this process's architecture, and whether the kernel is arm64."""
    words = stdout.split()
    machine = next(
        (word for word in reversed(words) if word in ("x86_64", "arm64", "aarch64")),
        None,
    )
    return {
        # `uname -m` alone names no system; what else is known decides about it.
        "system": words[0].lower() if words and words[0] != machine else None,
        "machine": known(machine),
        "arm_kernel": bool(re.search(r"ARM64|_arm64e?\b", stdout)) or None,
    }
