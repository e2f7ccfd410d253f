"""A machine that runs notebooks in containers of a private engine, for a test."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docker_engine import PrivateEngine
from docker_images import INTERPRETER, SHOWN, STUB
from patience import PATIENCE
from workload_specs import a_notebook_of

from fleet_agent.drivers.base import Handle, Job
from fleet_agent.drivers.common.accounts import UidRange
from fleet_agent.drivers.docker.driver import DockerDriver
from fleet_agent.drivers.docker.settings import FIRST_UID, DockerSettings
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import (
    DriverName,
    Resources,
    WorkloadSpec,
)


OWNER = "bea"
TOKEN = "a-secret-of-bea's-notebook-that-nobody-may-read"
PREFIX = f"/user/{OWNER}/"
MIB = 1024 * 1024


def docker_settings(
    state: Path, engine: PrivateEngine, **changes: Any
) -> DockerSettings:
    """Return the settings of an agent on this machine with its state in *state*."""
    settings = DockerSettings(
        state=state,
        host=engine.host,
        uids=UidRange(first=FIRST_UID) if os.geteuid() == 0 else None,
        folders=SHOWN,
    )
    return replace(settings, **changes)


def a_container(ref: str = STUB, **changes: Any) -> WorkloadSpec:
    """Return the spec of a notebook in a container of the image *ref*."""
    environment = {
        "JUPYTERHUB_API_TOKEN": TOKEN,
        "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
        "JUPYTERHUB_USER": OWNER,
        **changes.pop("environment", {}),
    }
    spec = a_notebook_of(
        OWNER,
        DriverName.DOCKER,
        ref,
        owner_id=2,
        resources=Resources(cpu_milli=1000, memory_bytes=512 * MIB),
        environment=environment,
        start_seconds=PATIENCE,
    )
    return spec.model_copy(update=changes)


def a_job(spec: WorkloadSpec | None = None, name: str = "a", epoch: int = 1) -> Job:
    """Return *spec* as one allocation."""
    return Job(allocation=name, epoch=epoch, spec=spec or a_container())


async def started(driver: DockerDriver, job: Job) -> Handle:
    """Prepare and start *job* and return its last handle; on failure nothing remains."""
    handle: Handle | None = None
    await driver.prepare(job, unheard)
    try:
        async for made in driver.start(job, unheard):
            handle = made
    except BaseException:
        if handle is not None:
            await driver.stop(handle, grace_seconds=0)
        raise
    assert handle is not None
    return handle


def run_inside(client: Any, handle: Handle, code: str) -> str:
    """Return what the Python program *code* prints in a running container."""
    command = [f"{INTERPRETER}/bin/python3", "-I", "-c", code]
    task = client.exec_create(handle.data["container"], command)
    told: bytes = client.exec_start(task["Id"])
    return told.decode().strip()


async def status_of(url: str | None, path: str = "api") -> int | None:
    """Return the status with which the server at *url* answers; None: nobody does."""
    address = urlsplit(url or "")
    try:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
    except OSError:
        return None
    try:
        writer.write(f"GET {address.path}{path} HTTP/1.0\r\n\r\n".encode())
        line = await reader.readline()
    except OSError:
        return None
    finally:
        writer.close()
    return int(line.split()[1]) if line else None


def unheard(progress: Progress) -> None:
    """Hear nothing."""
