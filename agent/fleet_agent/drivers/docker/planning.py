"""What does one job become?  Pure: from values to the engine's create request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fleet_agent.addresses import is_loopback
from fleet_agent.drivers.base import Job
from fleet_agent.drivers.common.accounts import HOME, Account
from fleet_agent.drivers.common.listening import Addresses, at_address
from fleet_agent.drivers.common.variables import is_the_drivers, server_prefix
from fleet_agent.drivers.docker import inside
from fleet_agent.drivers.docker.facts import EngineFacts
from fleet_agent.drivers.docker.records import labels
from fleet_contracts.workloads import Accelerator, WorkloadSpec


COMMAND = "jupyterhub-singleuser"
PORT = 8888
"""Inside: each container has a network of its own, so all use the same."""
MACHINE = "host.docker.internal"
"""The name of this machine inside, as Docker Desktop calls it."""
WRITABLE_ROOT = "org.jupyter.fleet.writable-root"
"""The label of an image that cannot run with its own files read-only."""

_BOOT = "/opt/fleet/boot"
_TEMPORARY = "/tmp"  # noqa: S108 - a private folder is mounted there
_ROOT_ACCOUNT = "root:x:0:0:root:/root:/bin/sh\n"
_ROOT_GROUP = "root:x:0:\n"
_HUB_URLS = ("JUPYTERHUB_API_URL", "JUPYTERHUB_ACTIVITY_URL", "JUPYTERHUB_FLEET_URL")
_NANO_PER_MILLI = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What of an image decides how a container of it is made."""

    id: str
    entrypoint: bool = False
    writable_root: bool = False
    python_path: str = ""
    """The PYTHONPATH that it sets itself."""
    volumes: tuple[str, ...] = ()
    """Where it asks for a volume, which is empty and goes with the container."""

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> Image:
        """Return what the engine's description of an image says."""
        config = answer.get("Config") or {}
        variables = dict(item.partition("=")[::2] for item in config.get("Env") or ())
        label = (config.get("Labels") or {}).get(WRITABLE_ROOT, "")
        return cls(
            id=answer["Id"],
            entrypoint=bool(config.get("Entrypoint")),
            writable_root=str(label).lower() == "true",
            python_path=variables.get("PYTHONPATH", ""),
            volumes=tuple(sorted(config.get("Volumes") or ())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one workload's own things are on this machine."""

    account: Account
    notebook: Path
    temporary: Path
    passwd: Path
    group: Path
    network: str
    gateway: str
    """This machine's address as the network's containers see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the machine's owner settled for all notebooks."""

    agent: str
    engine: EngineFacts = field(default_factory=EngineFacts)
    addresses: Addresses = field(default_factory=Addresses)
    environment: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    trimming: Path | None = None
    processes: int


def container_config(
    job: Job, image: Image, place: Place, offer: Offer
) -> dict[str, Any]:
    """Return the body of the engine's create request; it holds secrets."""
    environment = container_environment(job.spec, place, offer)
    if offer.trimming is not None:
        paths = (_BOOT, image.python_path)
        environment["PYTHONPATH"] = ":".join(path for path in paths if path)
    return {
        "Image": image.id,
        "Cmd": [COMMAND, *job.spec.arguments],
        "Env": [f"{name}={value}" for name, value in sorted(environment.items())],
        "User": _user(place.account, offer.engine),
        "WorkingDir": HOME,
        "StopSignal": "SIGTERM",
        "Labels": labels(job, offer.agent),
        "ExposedPorts": {f"{PORT}/tcp": {}},
        "HostConfig": {
            **_amounts(job.spec, offer),
            **_confinement(image, offer.engine),
            **_network(place, offer),
            "Mounts": [*_mounts(place, offer), *_volumes(job, image, place, offer)],
            "DeviceRequests": _devices(job.spec),
            # A log that nobody reads must not fill the machine's disk.
            "LogConfig": {
                "Type": "json-file",
                "Config": {"max-size": "5m", "max-file": "2"},
            },
            "RestartPolicy": {"Name": "no"},
        },
    }


def container_environment(
    spec: WorkloadSpec, place: Place, offer: Offer
) -> dict[str, str]:
    """Return the variables that *spec*'s container gets beside its image's own.

    Raises:
        DriverError: the address that the Hub gave is missing.
    """
    given = {
        name: value
        for name, value in {**offer.environment, **spec.environment}.items()
        if not is_the_drivers(name)
    }
    for name in _HUB_URLS:
        if name in given:
            given[name] = seen_from_inside(given[name])
    url = f"http://host{server_prefix(spec)}"
    name = place.account.name
    return {
        **given,
        "HOME": HOME,
        "USER": name,
        "LOGNAME": name,
        "SHELL": "/bin/bash",
        # Sockets and pids of servers that are gone have no place in the user's files.
        "JUPYTER_RUNTIME_DIR": f"{_TEMPORARY}/jupyter-runtime",
        "JUPYTERHUB_SERVICE_URL": at_address(url, "0.0.0.0", PORT),  # noqa: S104 - of the container
        # A GPU runtime that is the engine's default must hand out nothing unasked.
        **({} if spec.resources.devices else {"NVIDIA_VISIBLE_DEVICES": "void"}),
    }


def seen_from_inside(url: str) -> str:
    """Return *url* as a container reaches it: its loopback is not this machine's."""
    parts = urlsplit(url)
    if not is_loopback(parts.hostname or ""):
        return url
    port = parts.port or {"https": 443}.get(parts.scheme, 80)
    return at_address(url, MACHINE, port)


def accounts_files(account: Account) -> tuple[str, str]:
    """Return the passwd and the group file inside: root, and who runs there."""
    return _ROOT_ACCOUNT + account.passwd(), _ROOT_GROUP + account.group()


def published_port(answer: Mapping[str, Any]) -> int | None:
    """Return the machine's port that the engine chose; None: it published none."""
    ports = (answer.get("NetworkSettings") or {}).get("Ports") or {}
    bindings = ports.get(f"{PORT}/tcp") or ()
    return int(bindings[0]["HostPort"]) if bindings else None


def _user(account: Account, engine: EngineFacts) -> str:
    # A rootless engine's root is the agent's own user, to whom the folders belong.
    return "0:0" if engine.rootless else f"{account.uid}:{account.gid}"


def _amounts(spec: WorkloadSpec, offer: Offer) -> dict[str, Any]:
    memory = spec.resources.memory_bytes
    return {
        "NanoCpus": spec.resources.cpu_milli * _NANO_PER_MILLI,
        "Memory": memory,
        # The sum of memory and swap: no swap.
        "MemorySwap": memory,
        # Counts as memory of the container; libraries share arrays through it.
        **({"ShmSize": memory // 2} if memory else {}),
        "PidsLimit": offer.processes,
    }


def _confinement(image: Image, engine: EngineFacts) -> dict[str, Any]:
    return {
        "ReadonlyRootfs": not image.writable_root,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        # An image that starts a program of its own has one that reaps processes.
        "Init": not image.entrypoint,
        # The uids are the machine's own and unprivileged: folders belong to them.
        "UsernsMode": "host" if engine.remapped else "",
    }


def _network(place: Place, offer: Offer) -> dict[str, Any]:
    first, last = offer.addresses.ports or (0, 0)
    gateway = "host-gateway" if offer.engine.desktop else place.gateway
    return {
        "NetworkMode": place.network,
        "ExtraHosts": [f"{MACHINE}:{gateway}"],
        "PortBindings": {
            f"{PORT}/tcp": [
                {
                    "HostIp": offer.addresses.bind or "0.0.0.0",  # noqa: S104 - asked for
                    # The engine binds it at once: nobody can take it in between.
                    "HostPort": f"{first}-{last}" if first else "",
                }
            ]
        },
    }


def _mounts(place: Place, offer: Offer) -> list[dict[str, Any]]:
    return [
        _mount(place.passwd, "/etc/passwd", read_only=True),
        _mount(place.group, "/etc/group", read_only=True),
        *(_mount(path, str(path), read_only=True) for path in offer.folders),
        *_boot_mounts(offer.trimming),
        _mount(place.temporary, _TEMPORARY),
        _mount(place.temporary, "/var/tmp"),  # noqa: S108 - as above
        _mount(place.notebook, HOME),
    ]


def _volumes(
    job: Job, image: Image, place: Place, offer: Offer
) -> list[dict[str, Any]]:
    """Return the volumes that *image* asks for, labelled: none is left unknown."""
    taken = {mount["Target"] for mount in _mounts(place, offer)}
    return [
        {
            "Type": "volume",
            "Target": path,
            "VolumeOptions": {"Labels": labels(job, offer.agent)},
        }
        for path in image.volumes
        if path not in taken
    ]


def _boot_mounts(trimming: Path | None) -> list[dict[str, Any]]:
    """Return what lets a known server start quickly, where Python looks for it."""
    if trimming is None:
        return []
    first = Path(inside.__file__).with_name("sitecustomize.py")
    return [
        _mount(first, f"{_BOOT}/sitecustomize.py", read_only=True),
        _mount(trimming, f"{_BOOT}/fleet_trimming.py", read_only=True),
    ]


def _mount(source: Path, target: str, *, read_only: bool = False) -> dict[str, Any]:
    return {
        "Type": "bind",
        "Source": str(source),
        "Target": target,
        "ReadOnly": read_only,
    }


def _devices(spec: WorkloadSpec) -> list[dict[str, Any]]:
    if spec.runtime.accelerator is not Accelerator.CUDA:
        return []
    # By UUID: an index would mean another GPU after a restart of the machine.
    return [
        {
            "Driver": "nvidia",
            "DeviceIDs": list(spec.resources.devices),
            "Capabilities": [["gpu"]],
        }
    ]
