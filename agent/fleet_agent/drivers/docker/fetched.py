"""Which images did this agent fetch, and when were they used?  Kept in one file."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock

from fleet_agent.drivers.docker.keeping import Fetched


class FetchedImages:
    """The record of one agent, by the engine's ids of images.

    An image that is not in it is not the agent's: whatever is lost of the record keeps
    an image too long, and removes nobody else's.
    """

    def __init__(self, path: Path) -> None:
        """Keep it in *path*; nothing is read yet."""
        self._path = path
        self._lock = Lock()

    def all(self) -> dict[str, Fetched]:
        """Return the images."""
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
            return {
                image: Fetched(refs=tuple(entry["refs"]), used=float(entry["used"]))
                for image, entry in known.items()
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def fetched(self, image: str, ref: str, *, new: bool, now: float) -> None:
        """Note that *ref* was fetched and is *image*, which was *new* to the engine."""
        with self._lock:
            known = self.all()
            if image not in known and not new:
                # Somebody else has it, under another name.
                return
            refs = known[image].refs if image in known else ()
            entry = Fetched(refs=tuple(sorted({*refs, ref})), used=now)
            self._write({**known, image: entry})

    def used(self, image: str, *, now: float) -> None:
        """Note that *image* was asked for, if the agent fetched it."""
        with self._lock:
            known = self.all()
            if image in known:
                self._write({**known, image: replace(known[image], used=now)})

    def forget(self, image: str) -> None:
        """Drop *image*: what is left of it is somebody else's."""
        with self._lock:
            known = self.all()
            if known.pop(image, None) is not None:
                self._write(known)

    def _write(self, known: dict[str, Fetched]) -> None:
        # A disk that is full keeps no notebook from starting.
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = self._path.with_suffix(".part")
            entries = {image: asdict(entry) for image, entry in known.items()}
            part.write_text(json.dumps(entries, indent=1), encoding="utf-8")
            part.rename(self._path)
