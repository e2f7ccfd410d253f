"""The first thing that runs in the sandbox."""

from __future__ import annotations

import os
import sys

from fleet_agent.drivers.native.inside import landlock, reaching
from fleet_agent.drivers.native.inside.channel import Channel


def main() -> None:
    """Close what must be closed, import, wait for the launch message, and serve.

    The imports come before the message: they need nothing of it, and the agent makes
    its record durable meanwhile.  A process that has imported and still waits is a
    standby.
    """
    scoped = landlock.close_foreign_sockets()
    os.chdir(os.environ["HOME"])
    channel = Channel()
    channel.say(event="contained", sockets_closed=scoped)

    from fleet_agent.drivers.native.inside import server  # noqa: PLC0415 - see above

    server.import_everything()
    channel.say(event="imported")
    launch = channel.receive()
    if launch is None:
        sys.exit("the agent went away before it said what to launch")
    if launch.check:
        reaching.insist(launch.check, launch.environment)
    server.become(launch.environment, launch.arguments, launch.listener)
