"""Which GPU frameworks an environment has, from its packages' metadata alone.

Nothing is imported and nothing runs.  The metadata of a torch wheel does not say what
it was built for, so ``torch/version.py`` is read, as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fleet_agent.probes.tools import Ask, ToolCall


TOOL: Final = "package-readings"
_NAMES: Final = frozenset(
    {
        "torch",
        "torchvision",
        "torchaudio",
        "tensorflow",
        "tensorflow-metal",
        "tensorflow-macos",
        "keras",
        "jax",
        "jaxlib",
        "jax-metal",
        "mlx",
        "onnxruntime",
        "onnxruntime-gpu",
        "transformers",
        "accelerate",
        "deepspeed",
        "vllm",
        "triton",
        "xgboost",
        "lightgbm",
    }
)
_PREFIXES: Final = ("cupy-", "jax-cuda", "jax-rocm")
_FOLDERS: Final = (
    "lib/python3*/site-packages",
    "lib64/python3*/site-packages",
    "Lib/site-packages",
)
_METADATA: Final = re.compile(
    r"(?P<name>[\w.]+)-(?P<version>[\w.+!]+)\.(dist|egg)-info"
)
_BUILD: Final = re.compile(
    r"^\s*(?P<key>cuda|hip|xpu)\b[^=\n]*= *['\"](?P<value>[\w.-]+)", re.MULTILINE
)
_VERSION: Final = re.compile(r"^\s*__version__ *= *['\"]([\w.+-]{1,60})", re.MULTILINE)
_SMALL: Final = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One installed framework."""

    name: str
    version: str | None
    build: str | None = None


def read_packages(interpreter: str) -> dict[str, Any]:
    """Return the names in the environment of *interpreter*, and torch's version file."""
    prefix = Path(interpreter).parent.parent
    names: list[str] = []
    torch: str | None = None
    for folder in _site_folders(prefix):
        names.extend(entry.name for entry in folder.iterdir())
        version = folder / "torch" / "version.py"
        if torch is None and version.is_file():
            with version.open("rb") as file:
                torch = file.read(_SMALL).decode("utf-8", errors="replace")
    wanted = [name for name in names if _package(name) is not None]
    return {"found": bool(names), "metadata": sorted(wanted), "torch_version_py": torch}


def _site_folders(prefix: Path) -> Iterator[Path]:
    seen: set[Path] = set()
    for pattern in _FOLDERS:
        for folder in sorted(prefix.glob(pattern)):
            if folder.resolve() not in seen:
                seen.add(folder.resolve())
                yield folder


def _package(entry: str) -> Package | None:
    match = _METADATA.fullmatch(entry)
    if match is None:
        return None
    name = re.sub(r"[-_.]+", "-", match["name"]).lower()
    if name not in _NAMES and not name.startswith(_PREFIXES):
        return None
    return Package(name=name, version=match["version"])


def judge_packages(readings: Any) -> tuple[Package, ...] | None:
    """Return the frameworks, or None when the environment could not be read."""
    if not isinstance(readings, dict) or not readings.get("found"):
        return None
    listed = readings.get("metadata")
    entries: Iterable[Any] = listed if isinstance(listed, list) else ()
    found = {
        package.name: package
        for entry in entries
        if isinstance(entry, str) and (package := _package(entry)) is not None
    }
    source = readings.get("torch_version_py")
    if isinstance(source, str):
        found["torch"] = _torch(source, found.get("torch"))
    return tuple(found[name] for name in sorted(found))


def _torch(source: str, package: Package | None) -> Package:
    told = _VERSION.search(source)
    builds = {match["key"]: match["value"] for match in _BUILD.finditer(source)}
    build = next(
        (f"{key}{builds[key]}" for key in ("hip", "cuda", "xpu") if key in builds),
        "cpu",
    )
    version = package.version if package else None
    return Package(
        name="torch", version=version or (told[1] if told else None), build=build
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkProbe:
    """Reports the frameworks of the environment of *interpreter*."""

    ask: Ask
    interpreter: str

    def observe(self) -> tuple[Package, ...] | None:
        """Return the frameworks; None is unknown."""
        result = self.ask(ToolCall(tool=TOOL, argv=(TOOL, self.interpreter)))
        try:
            return judge_packages(json.loads(result.stdout))
        except (ValueError, RecursionError):
            return None
