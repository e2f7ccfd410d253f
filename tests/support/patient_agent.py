"""An agent as ever, but that its first word waits for the first facts, however long.

Any other registers without them after some seconds, and tells them as soon as it can.
"""

from __future__ import annotations

import sys

from patience import PATIENCE

from fleet_agent import cli, picture


if __name__ == "__main__":
    picture._FIRST_SECONDS = PATIENCE  # type: ignore[misc]
    sys.exit(cli.main(sys.argv[1:]))
