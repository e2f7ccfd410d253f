"""What a process of the agent leaves out, since it is idle for most of its life."""

from __future__ import annotations

import subprocess
import sys


LOADED = """
import sys
from fleet_agent import cli
cli._leave_out_extras()
import fleet_agent.daemon
print(*sorted({name.partition(".")[0] for name in sys.modules if sys.modules[name]}))
"""
NEVER = {
    *("rich", "docker", "jinja2", "jupyterhub", "jupyter_server", "sqlalchemy"),
    *("torch", "pynvml", "uv", "IPython", "fleet_hub", "fleet_lab"),
}


def test_an_agent_loads_nothing_that_it_does_not_need() -> None:
    """A driver that is not offered, a drawer of tracebacks and a GPU library stay away."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )

    assert not NEVER & set(done.stdout.split())


def test_a_probe_loads_no_server() -> None:
    """A person waits for it: it loads neither the network's parts nor the log's."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, fleet_agent.commands.probe; print(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not (NEVER | {"tornado", "structlog", "traitlets", "sqlite3"}) & loaded
