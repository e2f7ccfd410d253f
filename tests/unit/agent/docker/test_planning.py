"""What a job becomes: the engine's create request, word by word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from workload_specs import a_notebook_of

from fleet_agent.drivers.base import DriverError, Job
from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.common.listening import Addresses
from fleet_agent.drivers.docker.facts import EngineFacts
from fleet_agent.drivers.docker.planning import (
    Image,
    Offer,
    Place,
    accounts_files,
    container_config,
    container_environment,
    published_port,
    seen_from_inside,
)
from fleet_contracts.workloads import (
    Accelerator,
    DriverName,
    Resources,
)


BEA = Account(uid=1_901_000_003, gid=1_901_000_003, name="bea")
PLACE = Place(
    account=BEA,
    notebook=Path("/state/notebooks/bea-default"),
    temporary=Path("/state/runs/1/tmp"),
    passwd=Path("/state/runs/1/passwd"),
    group=Path("/state/runs/1/group"),
    network="fleet-0123",
    gateway="10.1.0.1",
)
OFFER = Offer(agent="0123", processes=4096)
IMAGE = Image(id="sha256:1")


def a_job(*devices: str, **environment: str) -> Job:
    """Return the job of a notebook; with *devices* of a GPU class."""
    spec = a_notebook_of(
        "bea",
        DriverName.DOCKER,
        "example/lab@sha256:1",
        accelerator=Accelerator.CUDA if devices else Accelerator.CPU,
        class_name="small",
        resources=Resources(cpu_milli=1500, memory_bytes=2**30, devices=devices),
        environment=environment,
        arguments=("--debug",),
    )
    return Job(allocation="7-8", epoch=3, spec=spec)


def host_config(job: Job, image: Image = IMAGE, **offer: Any) -> dict[str, Any]:
    """Return the part of the request that is about the machine."""
    config = container_config(job, image, PLACE, replace(OFFER, **offer))
    part: dict[str, Any] = config["HostConfig"]
    return part


def test_the_whole_request() -> None:
    """Nothing is asked for that is not written here."""
    assert container_config(a_job(TOKEN="t"), IMAGE, PLACE, OFFER) == {
        "Image": "sha256:1",
        "Cmd": ["jupyterhub-singleuser", "--debug"],
        "Env": [
            "HOME=/home/jovyan",
            "JUPYTERHUB_SERVICE_URL=http://0.0.0.0:8888/user/bea/",
            "JUPYTER_RUNTIME_DIR=/tmp/jupyter-runtime",
            "LOGNAME=bea",
            "NVIDIA_VISIBLE_DEVICES=void",
            "SHELL=/bin/bash",
            "TOKEN=t",
            "USER=bea",
        ],
        "User": "1901000003:1901000003",
        "WorkingDir": "/home/jovyan",
        "StopSignal": "SIGTERM",
        "Labels": {
            "org.jupyter.fleet.agent": "0123",
            "org.jupyter.fleet.run": "23b39b26b501f1ec6355977e",
            "org.jupyter.fleet.allocation": "7-8",
            "org.jupyter.fleet.epoch": "3",
        },
        "ExposedPorts": {"8888/tcp": {}},
        "HostConfig": {
            "NanoCpus": 1_500_000_000,
            "Memory": 2**30,
            "MemorySwap": 2**30,
            "ShmSize": 2**29,
            "PidsLimit": 4096,
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Privileged": False,
            "Init": True,
            "UsernsMode": "",
            "NetworkMode": "fleet-0123",
            "ExtraHosts": ["host.docker.internal:10.1.0.1"],
            "PortBindings": {"8888/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}]},
            "Mounts": [
                mount("/state/runs/1/passwd", "/etc/passwd", read_only=True),
                mount("/state/runs/1/group", "/etc/group", read_only=True),
                mount("/state/runs/1/tmp", "/tmp"),
                mount("/state/runs/1/tmp", "/var/tmp"),
                mount("/state/notebooks/bea-default", "/home/jovyan"),
            ],
            "DeviceRequests": [],
            "LogConfig": {
                "Type": "json-file",
                "Config": {"max-size": "5m", "max-file": "2"},
            },
            "RestartPolicy": {"Name": "no"},
        },
    }


def mount(source: str, target: str, *, read_only: bool = False) -> dict[str, Any]:
    """Return a mount as the engine wants it written."""
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def test_gpu_classes_get_their_own_gpus_by_uuid() -> None:
    """An index would mean another GPU after a restart of the machine."""
    job = a_job("GPU-b", "GPU-a")

    assert host_config(job)["DeviceRequests"] == [
        {"Driver": "nvidia", "DeviceIDs": ["GPU-b", "GPU-a"], "Capabilities": [["gpu"]]}
    ]
    assert "NVIDIA_VISIBLE_DEVICES" not in container_environment(job.spec, PLACE, OFFER)


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "USER", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "LD_X"],
)
def test_what_means_another_machine_does_not_come_along(name: str) -> None:
    """Neither the Hub's paths nor a wish for more devices than are held."""
    told = container_environment(a_job(**{name: "/evil"}).spec, PLACE, OFFER)

    assert "/evil" not in told.values()


def test_the_owner_of_the_machine_adds_variables_and_the_hub_wins() -> None:
    """A proxy's address is the machine's to give, the Hub's own words are not."""
    offer = replace(OFFER, environment={"GIVEN": "own", "MORE": "x"})

    told = container_environment(a_job(GIVEN="hub").spec, PLACE, offer)

    assert (told["GIVEN"], told["MORE"]) == ("hub", "x")


@pytest.mark.parametrize(
    ("url", "inside"),
    [
        ("http://127.0.0.1:8081/hub/api", "http://host.docker.internal:8081/hub/api"),
        ("http://localhost/hub/api", "http://host.docker.internal:80/hub/api"),
        ("https://[::1]/hub/api", "https://host.docker.internal:443/hub/api"),
        ("https://hub.example.org/hub/api", "https://hub.example.org/hub/api"),
        ("http://10.0.0.5:8081/hub/api", "http://10.0.0.5:8081/hub/api"),
    ],
)
def test_the_machines_loopback_has_another_name_inside(url: str, inside: str) -> None:
    """A container's own loopback is somewhere else; every other address is the same."""
    assert seen_from_inside(url) == inside


@pytest.mark.parametrize(
    "name", ["JUPYTERHUB_API_URL", "JUPYTERHUB_ACTIVITY_URL", "JUPYTERHUB_FLEET_URL"]
)
def test_every_address_of_the_hub_is_rewritten(name: str) -> None:
    """Activity and the timeline go the same way as the API."""
    told = container_environment(
        a_job(**{name: "http://127.0.0.1:1/x"}).spec, PLACE, OFFER
    )

    assert told[name] == "http://host.docker.internal:1/x"


def test_a_launch_without_an_address_is_refused() -> None:
    """The Hub did not say below which path the server is to answer."""
    with pytest.raises(DriverError, match="no http JUPYTERHUB_SERVICE_URL"):
        container_config(a_job(JUPYTERHUB_SERVICE_URL=""), IMAGE, PLACE, OFFER)


def test_ports_of_the_owners_range_are_asked_for() -> None:
    """A firewall may let only those through; an open address means all of them."""
    addresses = Addresses(bind="", ports=(20000, 20100))

    bindings = host_config(a_job(), addresses=addresses)["PortBindings"]

    assert bindings == {"8888/tcp": [{"HostIp": "0.0.0.0", "HostPort": "20000-20100"}]}


def test_an_image_may_ask_for_a_writable_root_and_bring_its_own_first_process() -> None:
    """By its label, and by its entry point; everything else stays shut."""
    image = Image.from_answer(
        {
            "Id": "sha256:2",
            "Config": {
                "Entrypoint": ["tini", "--"],
                "Labels": {"org.jupyter.fleet.writable-root": "true"},
            },
        }
    )

    told = host_config(a_job(), image)

    assert (told["ReadonlyRootfs"], told["Init"]) == (False, False)
    assert told["CapDrop"] == ["ALL"]


def test_an_image_without_a_word_is_shut() -> None:
    """Missing labels and entry points are no permission."""
    assert Image.from_answer({"Id": "x", "Config": None}) == Image(id="x")


def test_folders_of_the_machine_are_shown_read_only() -> None:
    """At the same path, and before the user's own places."""
    told = host_config(a_job(), folders=(Path("/srv/data"),))["Mounts"]

    assert mount("/srv/data", "/srv/data", read_only=True) in told


def test_a_known_server_starts_quickly_where_the_machine_can_help() -> None:
    """Beside the image's own Python paths, which come after."""
    image = Image.from_answer(
        {"Id": "x", "Config": {"Env": ["PATH=/bin", "PYTHONPATH=/image:/more"]}}
    )
    offer = replace(OFFER, trimming=Path("/agent/trimming.py"))

    config = container_config(a_job(), image, PLACE, offer)

    assert "PYTHONPATH=/opt/fleet/boot:/image:/more" in config["Env"]
    targets = [item["Target"] for item in config["HostConfig"]["Mounts"]]
    assert "/opt/fleet/boot/sitecustomize.py" in targets
    assert "/opt/fleet/boot/fleet_trimming.py" in targets


def test_a_rootless_engines_root_is_the_agents_own_user() -> None:
    """To whom the folders belong; another uid would be a subordinate of theirs."""
    offer = replace(OFFER, engine=EngineFacts(rootless=True))

    assert container_config(a_job(), IMAGE, PLACE, offer)["User"] == "0:0"


def test_a_remapping_engine_leaves_our_uids_alone() -> None:
    """They are unprivileged already, and the folders belong to them."""
    assert (
        host_config(a_job(), engine=EngineFacts(remapped=True))["UsernsMode"] == "host"
    )


def test_docker_desktop_knows_the_way_to_the_machine_itself() -> None:
    """Its network's gateway is the virtual machine, which is no way out."""
    told = host_config(a_job(), engine=EngineFacts(desktop=True))

    assert told["ExtraHosts"] == ["host.docker.internal:host-gateway"]


def test_a_class_without_limits_has_none() -> None:
    """Zero is the engine's word for unlimited, and no share of it is promised."""
    job = a_job()
    spec = job.spec.model_copy(update={"resources": Resources()})

    told = host_config(replace(job, spec=spec))

    assert (told["Memory"], told["NanoCpus"]) == (0, 0)
    assert "ShmSize" not in told


def test_the_account_files_name_root_and_the_owner() -> None:
    """Programs that ask who they are get an answer."""
    passwd, group = accounts_files(BEA)

    assert "root:x:0:0:" in passwd
    assert "bea:x:1901000003:1901000003::/home/jovyan:/bin/bash" in passwd
    assert "bea:x:1901000003:" in group


@pytest.mark.parametrize(
    ("ports", "port"),
    [
        ({"8888/tcp": [{"HostIp": "127.0.0.1", "HostPort": "32768"}]}, 32768),
        ({"8888/tcp": None}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_published_port_is_the_engines(ports: Any, port: int | None) -> None:
    """A container that ended at once publishes none."""
    assert published_port({"NetworkSettings": {"Ports": ports}}) == port
