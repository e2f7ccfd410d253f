"""What does one job become?  Pure: from values to a plan, an environment, a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fleet_agent.drivers.common.accounts import HOME, Account
from fleet_agent.drivers.common.listening import Addresses, at_address
from fleet_agent.drivers.common.variables import is_the_drivers, service_url
from fleet_agent.drivers.native import inside
from fleet_agent.drivers.native.environments.store import Environment
from fleet_agent.drivers.native.host import SYSTEM_PATH
from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.drivers.native.sandbox import (
    BOOT,
    ENVIRONMENT,
    TEMPORARY,
    Access,
    Link,
    Mount,
    SandboxPlan,
)
from fleet_contracts.workloads import WorkloadSpec


_INSIDE = "fleet_agent/drivers/native/inside"
_COMMAND = (
    f"{ENVIRONMENT}/bin/python",
    # Neither the user's variables nor their packages reach the server itself.
    "-I",
    "-c",
    (
        f"import sys; sys.path.insert(0, {BOOT!r}); "
        "from fleet_agent.drivers.native.inside.bootstrap import main; main()"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What every sandbox on this machine has in common."""

    mounts: tuple[Mount, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one workload's own things are."""

    run: RunFolder
    notebook: Path
    account: Account
    devices: tuple[Mount, ...] = ()


def sandbox_plan(
    system: System, place: Place, environment: Environment, *, status_fd: int
) -> SandboxPlan:
    """Return what the workload at *place* sees and runs."""
    interpreter = environment.interpreter.prefix
    mounts = [*system.mounts]
    if not any(_is_below(interpreter, mount.target) for mount in mounts):
        mounts.append(Mount(source=interpreter, target=interpreter))
    mounts += [
        Mount(source=str(environment.tree), target=ENVIRONMENT),
        Mount(source=str(Path(inside.__file__).parent), target=f"{BOOT}/{_INSIDE}"),
        Mount(source=str(place.run.passwd), target="/etc/passwd"),
        Mount(source=str(place.run.group), target="/etc/group"),
        Mount(source=str(place.notebook), target=HOME, access=Access.WRITE),
        Mount(source=str(place.run.temporary), target=TEMPORARY, access=Access.WRITE),
        *place.devices,
    ]
    return SandboxPlan(
        account=place.account,
        mounts=tuple(mounts),
        links=(*system.links, Link(path="/var/tmp", to=TEMPORARY)),  # noqa: S108 - a private one
        command=_COMMAND,
        status_fd=status_fd,
    )


def clean_environment(account: Account) -> dict[str, str]:
    """Return the variables that the sandbox starts with: nothing of the agent's own."""
    return {
        "PATH": f"{ENVIRONMENT}/bin:{SYSTEM_PATH}",
        "HOME": HOME,
        "USER": account.name,
        "LOGNAME": account.name,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TMPDIR": TEMPORARY,
        # Sockets and pids of servers that are gone have no place in the user's files.
        "JUPYTER_RUNTIME_DIR": f"{TEMPORARY}/jupyter-runtime",
    }


def launch_environment(
    spec: WorkloadSpec, extra: Mapping[str, str], addresses: Addresses, port: int
) -> dict[str, str]:
    """Return the variables of *spec*'s server on *port*; they hold secrets.

    Raises:
        DriverError: the address that the Hub gave is missing.
    """
    given = {
        name: value
        for name, value in {**extra, **spec.environment}.items()
        if not is_the_drivers(name)
    }
    url = service_url(spec)
    return {
        **given,
        "JUPYTERHUB_SERVICE_URL": at_address(url, addresses.bind or "0.0.0.0", port),  # noqa: S104 - asked for
        # The only identity that the server accepts.
        "JUPYTERHUB_USER": spec.owner,
        "CUDA_VISIBLE_DEVICES": ",".join(spec.resources.devices),
    }


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
