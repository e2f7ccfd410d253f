"""A simulated agent that goes on from its pause once a file is there.

``python held_agent.py FILE run …``: where ``pause_at`` would stop it for ever, it waits
for FILE.  Everything else is as in any agent.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fleet_agent import cli
from fleet_agent.drivers import simulation
from fleet_agent.drivers.simulation_behaviour import Behaviour, Pause


if __name__ == "__main__":
    gate = Path(sys.argv.pop(1))

    async def _pause(here: Pause, behaviour: Behaviour, _progress: object) -> None:
        while behaviour.pause_at is here and not gate.exists():  # noqa: ASYNC110, ASYNC240 - another process's file
            await asyncio.sleep(0.01)

    simulation._pause = _pause
    sys.exit(cli.main(sys.argv[1:]))
