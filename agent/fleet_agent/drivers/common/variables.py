"""What of the Hub's environment does a notebook server on this machine get?"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from fleet_agent.drivers.base import DriverError
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import WorkloadSpec


_OWN = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|PYTHON.*|LD_.*|VIRTUAL_ENV|CONDA_.*"
    r"|XDG_.*|JUPYTER_PATH|JUPYTER_.*_DIR|CUDA_VISIBLE_DEVICES|NVIDIA_.*"
    r"|JUPYTERHUB_SINGLEUSER_(APP|EXTENSION)"
)


def is_the_drivers(name: str) -> bool:
    """Whether only the driver sets the variable *name*.

    Whoever else did meant another machine.
    """
    return _OWN.fullmatch(name) is not None


def server_prefix(spec: WorkloadSpec) -> str:
    """Return the path below which *spec*'s server answers, with slashes around it.

    Raises:
        DriverError: the address that the Hub gave is missing.
    """
    path = urlsplit(service_url(spec)).path
    return path if path.endswith("/") else f"{path}/"


def service_url(spec: WorkloadSpec) -> str:
    """Return where the Hub would have *spec*'s server answer; its host means nothing.

    Raises:
        DriverError: the address is missing, or is none that a driver can serve at.
    """
    url = spec.environment.get("JUPYTERHUB_SERVICE_URL", "")
    if urlsplit(url).scheme != "http":
        raise DriverError(
            Reason.START_FAILED,
            "the launch has no http JUPYTERHUB_SERVICE_URL",
            detail="The Hub did not say under which address the server is to answer.",
        )
    return url
