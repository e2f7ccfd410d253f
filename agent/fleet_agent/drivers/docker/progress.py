"""How far is a pull?  Pure: from the engine's lines to bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet_contracts.timeline import Progress


@dataclass(slots=True)
class _Layer:
    size: int | None = None
    fetched: int = 0
    unpacked: int = 0
    is_fetched: bool = False
    is_unpacked: bool = False


@dataclass(slots=True)
class PullProgress:
    """Adds up the layers of one pull; layers that were there already do not count."""

    _layers: dict[str, _Layer] = field(default_factory=dict)

    def take(self, line: Mapping[str, Any]) -> Progress | None:
        """Return the progress after *line*; None: the line says nothing about it."""
        layer_id, status = line.get("id"), line.get("status")
        if not isinstance(layer_id, str) or not isinstance(status, str):
            return None
        if status == "Already exists":
            self._layers.pop(layer_id, None)
        elif not self._note(layer_id, status, line.get("progressDetail")):
            return None
        return self._progress()

    def _note(self, layer_id: str, status: str, detail: object) -> bool:
        numbers = detail if isinstance(detail, Mapping) else {}
        current, total = _count(numbers, "current"), _count(numbers, "total")
        if status in {"Pulling fs layer", "Waiting"}:
            self._layers.setdefault(layer_id, _Layer())
            return True
        layer = self._layers.get(layer_id)
        if layer is None:
            return False
        if status == "Downloading":
            layer.size = total or layer.size
            layer.fetched = max(layer.fetched, current)
        elif status in {"Verifying Checksum", "Download complete"}:
            layer.is_fetched = True
        elif status == "Extracting":
            layer.size = total or layer.size
            layer.is_fetched = True
            layer.unpacked = max(layer.unpacked, current)
        elif status == "Pull complete":
            layer.is_fetched = layer.is_unpacked = True
        else:
            return False
        return True

    def _progress(self) -> Progress | None:
        layers = list(self._layers.values())
        if not layers:
            return None
        known = all(layer.size is not None or layer.is_fetched for layer in layers)
        total = sum(layer.size or layer.fetched for layer in layers) if known else None
        if all(layer.is_fetched for layer in layers):
            step = "unpack_image"
            done = sum(
                (layer.size or layer.fetched) if layer.is_unpacked else layer.unpacked
                for layer in layers
            )
        else:
            step = "pull_image"
            done = sum(
                (layer.size or layer.fetched) if layer.is_fetched else layer.fetched
                for layer in layers
            )
        return Progress(step=step, done=done, total=total, unit="bytes")


def _count(numbers: Mapping[str, Any], name: str) -> int:
    value = numbers.get(name)
    return value if isinstance(value, int) and value > 0 else 0
