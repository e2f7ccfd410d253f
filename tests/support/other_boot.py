"""A real agent that finds its computer started anew: ``python other_boot.py BOOT run …``.

The command line is the agent's own, and nothing else is other than in any agent.
"""

from __future__ import annotations

import sys

from fleet_agent import processes


if __name__ == "__main__":
    boot, *words = sys.argv[1:]
    # Before anybody imports it by name.
    processes.boot_id = lambda: boot  # type: ignore[assignment]
    from fleet_agent import cli

    sys.exit(cli.main(words))
