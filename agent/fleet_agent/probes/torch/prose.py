"""Reads what other torch probes print: environment reports and bare values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from fleet_agent.probes.text import known, lines
from fleet_agent.probes.torch.causes import CUDA_TRIED, MPS_TRIED, XPU_TRIED


_VERSION: Final = re.compile(r"['\"]?(\d+\.\d+(?:\.\d+)?[\w.+-]*)['\"]?")
_PAIR: Final = re.compile(r"\W*([A-Za-z][\w .()/-]{1,70}?)\s*[:=?]+\s*(.+)")
_WORDS: Final = re.compile(r"([A-Za-z_][\w.()]{2,60}) +(True|False|None|\d\S*)")
_FLAGS: Final = {"true": True, "false": False, "yes": True, "no": False}
_PROPERTIES: Final = re.compile(r"_?\w*DeviceProperties\((.*)\)")
_PROPERTY: Final = re.compile(r"(\w+)=('[^']*'|[^,)]+)")
_KEYS: Final = (
    # Order matters: "built" before "available", and Metal and XPU before CUDA.
    (re.compile(r"mps|metal"), re.compile(r"built"), "mps_built"),
    (re.compile(r"mps|metal"), re.compile(r"avail"), "mps_available"),
    (re.compile(r"xpu"), re.compile(r"avail"), "xpu_available"),
    (re.compile(r"cuda"), re.compile(r"avail"), "cuda_available"),
    (re.compile(r"cuda"), re.compile(r"backends.*built|is_built"), "cuda_flag"),
    (re.compile(r"cuda"), re.compile(r"used to build|version\.cuda"), "cuda_version"),
    (re.compile(r"rocm|hip"), re.compile(r"used to build|version\.hip"), "hip_version"),
    (re.compile(r"nccl"), re.compile(r"avail"), "nccl"),
    (re.compile(r"gloo"), re.compile(r"avail"), "gloo"),
)
_TORCH_VERSION: Final = re.compile(r"(py)?torch([ _.]*(__)?version(__)?)?|version")


def read_prose(stdout: str, clues: str) -> dict[str, Any]:
    """Return the facts that the lines state, by our names; None says "stated none".

    *clues* are the command and the complaints: they tell what a lone True is about.
    """
    facts: dict[str, Any] = {}
    bare: list[bool] = []
    for line in lines(stdout):
        if _structured(line, facts):
            continue
        pair = _PAIR.fullmatch(line.strip()) or _WORDS.fullmatch(line.strip())
        if pair:
            _take(facts, pair[1], pair[2].strip())
            continue
        version = _VERSION.fullmatch(line.strip())
        if version:
            facts.setdefault("version", version[1])
        elif line.strip() in ("True", "False"):
            bare.append(line.strip() == "True")
    _take_bare(facts, bare, clues)
    return facts


def _structured(line: str, facts: dict[str, Any]) -> bool:
    """Take a line that is JSON, a list of targets or a device's properties."""
    properties = _PROPERTIES.search(line)
    if properties:
        values = {
            key: text.strip("'") for key, text in _PROPERTY.findall(properties[1])
        }
        facts.setdefault("properties", []).append(values)
        return True
    targets = re.findall(r"'((?:gfx|sm_)\w+)'", line)
    if line.strip().startswith("[") and targets:
        facts["targets"] = targets
        return True
    start = line.find("{")
    if start < 0:
        return False
    try:
        value = json.JSONDecoder().raw_decode(line[start:])[0]
    except (ValueError, RecursionError):
        return False
    if isinstance(value, Mapping):
        for key, item in value.items():
            _take_json(facts, str(key).strip().lower(), item)
    return True


_JSON_KEYS: Final = {
    "torch": "version",
    "torch_version": "version",
    "__version__": "version",
    "version": "version",
    "cuda": "cuda_version",
    "cuda_version": "cuda_version",
    "hip": "hip_version",
    "hip_version": "hip_version",
    "rocm": "hip_version",
    "available": "cuda_available",
    "is_available": "cuda_available",
    "mps": "mps_available",
}


def _take_json(facts: dict[str, Any], key: str, value: Any) -> None:
    """Take one member of another probe's JSON; its form tells what its name leaves open."""
    name = _JSON_KEYS.get(key, "")
    if name.endswith("_version") and isinstance(value, bool):
        # {"cuda": true} answers whether it is available.
        name = "cuda_available"
    if key in ("backends", "distributed", "distributed_backends"):
        for backend in value if isinstance(value, list) else ():
            facts.setdefault(str(backend).lower(), True)
        facts.setdefault("gloo", False)
    elif key == "devices" and isinstance(value, list):
        found = [dict(item) for item in value if isinstance(item, Mapping)]
        facts.setdefault("properties", []).extend(found)
    elif not name:
        _take(facts, key, value)
    elif name == "version":
        _take(facts, "version", value)
    elif name.endswith("_available"):
        facts.setdefault(name, value if isinstance(value, bool) else None)
    else:
        facts.setdefault(name, _value(name, value) if value is not None else None)


def _take(facts: dict[str, Any], label: str, value: Any) -> None:
    plain = label.strip().lower()
    if _TORCH_VERSION.fullmatch(plain) and isinstance(value, str):
        found = _VERSION.fullmatch(value.split()[0] if value.split() else "")
        if found:
            facts.setdefault("version", found[1])
        return
    if plain in _SHORT:
        _take_short(facts, plain, value)
        return
    for subject, verb, name in _KEYS:
        if subject.search(plain) and verb.search(plain):
            facts.setdefault(name, _value(name, value))
            return


_SHORT: Final = {
    "cuda": ("cuda_version", "cuda_available"),
    "hip": ("hip_version", None),
    "rocm": ("hip_version", None),
    "mps": (None, "mps_available"),
}
"""Labels of one word: a version or a yes says which question they answer."""


def _take_short(facts: dict[str, Any], label: str, value: Any) -> None:
    version, available = _SHORT[label]
    answered = _FLAGS.get(str(value).strip().lower())
    if answered is not None and available is not None:
        facts.setdefault(available, answered)
    elif answered is None and version is not None:
        facts.setdefault(version, _value(version, value))


def _value(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return value
    text = str(value).strip()
    if name.endswith("_version"):
        # "N/A" states that there is none: the build is for something else.
        found = known(text)
        return found if found and re.match(r"\d", found) else None
    return _FLAGS.get(text.lower())


def _take_bare(facts: dict[str, Any], bare: list[bool], clues: str) -> None:
    """A lone True or False answers the question that the clues are about.

    Without any clue it is the question that every guide asks, about CUDA.
    """
    if not bare:
        return
    version = str(facts.get("version") or "")
    name = "cuda_available"
    if not CUDA_TRIED.search(clues):
        if "+xpu" in version or XPU_TRIED.search(clues):
            name = "xpu_available"
        elif MPS_TRIED.search(clues):
            name = "mps_available"
    facts.setdefault(name, bare[0])
