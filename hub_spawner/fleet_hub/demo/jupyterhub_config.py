"""The Hub of `jupyter-fleet demo`: like any other, on a fleet that is pretended."""

import os

from fleet_hub import configure
from fleet_hub.demo.visitors import SERVICE, token_of
from fleet_hub.local_login import login_with_codes


c = get_config()
places = configure(c, catalog=os.environ["JUPYTERHUB_FLEET_DEMO_CATALOG"])
login_with_codes(c, places)
c.FleetSpawner.queue_hold = 30

# The people of the demo ask for their servers through the Hub's REST API.
c.JupyterHub.services.append({"name": SERVICE, "api_token": token_of(places)})
c.JupyterHub.load_roles.append(
    {
        "name": SERVICE,
        "services": [SERVICE],
        "scopes": ["admin:users", "admin:servers"],
    }
)
