"""An agent as ever, but that it waits in the middle of sending files.

Its first argument is a folder: it makes ``waiting`` there when it waits, and goes on
once ``open`` is there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fleet_agent import cli
from fleet_agent.copying import sending
from fleet_agent.copying.reading import Source, frames


def _gated(gate: Path, source: Source) -> Iterator[bytes]:
    """Yield half of the frames, and the others once the gate is open."""
    told = list(frames(source))
    half = len(told) // 2
    yield from told[:half]
    (gate / "waiting").touch()
    while not (gate / "open").exists():
        time.sleep(0.01)
    yield from told[half:]


if __name__ == "__main__":
    gate = Path(sys.argv.pop(1))
    # What is not sent alone would wait in a batch.
    sending._BATCH_BYTES = 0  # type: ignore[misc]
    sending.frames = lambda source: _gated(gate, source)
    sys.exit(cli.main(sys.argv[1:]))
