"""JupyterHub with a fleet of one machine: this one.

`make run` starts it.  Read on to see all that a JupyterHub needs for a fleet; every
other JupyterHub setting works as its own manual says.
"""

from pathlib import Path

from fleet_hub import configure
from fleet_hub.local_login import login_with_codes


c = get_config()

# The fleet: FleetSpawner, the controller as a service of this Hub with the few rights
# that it needs, pages that show where a start is, and settings that let a Hub restart
# interrupt nobody.  Databases and secrets go into .fleet, readable by you alone.  What
# people can choose from is the built-in catalog, until catalog="…" names your own.
places = configure(c, data_dir=Path(__file__).parent / ".fleet")

# Who may log in: whoever has a single-use code.  `make run` prints one for you, the
# owner of this machine, and `jupyter-fleet login-code NAME` makes more.  For a Hub that
# others can reach, replace this line by your own authenticator.
login_with_codes(c, places)

# Where it listens: this machine alone.  Beyond it, put https in front.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"

# How long a start waits in line before its page lets go.  The place is kept, and the
# server starts by itself when its turn comes.
c.FleetSpawner.queue_hold = 60
