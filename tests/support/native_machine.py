"""A machine that runs native notebooks for a test, in this process or another one."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import uv
from fake_hub import FakeHub
from workload_specs import a_notebook_of

from fleet_agent.drivers.base import Handle, Job
from fleet_agent.drivers.common.accounts import UidRange
from fleet_agent.drivers.native.driver import NativeDriver
from fleet_agent.drivers.native.environments.interpreter import own_interpreter
from fleet_agent.drivers.native.environments.wheel import installed_lab_package
from fleet_agent.drivers.native.settings import NativeSettings
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import (
    DriverName,
    WorkloadSpec,
)


OWNER = "anna"
TOKEN = secrets.token_hex(16)
PREFIX = f"/user/{OWNER}/"


def _shared() -> Path:
    """Return where environments are kept between test runs, since a build takes time.

    The store verifies them before each use.
    """
    folder = Path(tempfile.gettempdir()) / f"jupyterhub-fleet-tests-{os.getuid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    return folder


SHARED = Path(os.environ.get("FLEET_TEST_ENVIRONMENTS") or _shared())
_LEFT_OUT = ("labextension", "__pycache__")


@cache
def _lab_without_front_end() -> Path:
    """Return a copy of the lab package that building the front end does not change.

    Other processes may be reading it: it is there wholly or not at all, and no file of
    it is ever written again.
    """
    package = installed_lab_package()
    known = sha256()
    for path in sorted(package.rglob("*")):
        part = path.relative_to(package)
        if path.is_file() and not set(part.parts) & set(_LEFT_OUT):
            known.update(f"{part}\0".encode() + path.read_bytes())
    copy = SHARED / f"lab-{known.hexdigest()[:16]}" / "fleet_lab"
    if not copy.exists():
        SHARED.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".part-", dir=SHARED))
        made.chmod(0o755)
        ignored = shutil.ignore_patterns(*_LEFT_OUT)
        shutil.copytree(package, made / "fleet_lab", ignore=ignored)
        try:
            made.rename(copy.parent)
        except OSError:
            # Another process was faster.
            shutil.rmtree(made)
    return copy


def native_settings(state: Path, **changes: Any) -> NativeSettings:
    """Return the settings of an agent on this machine with its state in *state*."""
    settings = NativeSettings(
        state=state,
        interpreter=own_interpreter(),
        uv=Path(uv.find_uv_bin()),
        uids=UidRange() if os.geteuid() == 0 else None,
        lab_package=_lab_without_front_end(),
        environments=SHARED / "environments",
        cache=SHARED / "cache",
        standby=False,
        build_environment={
            name: value
            for name, value in os.environ.items()
            if name.startswith(("SSL_CERT_", "UV_")) or name.lower().endswith("_proxy")
        },
    )
    return replace(settings, **changes)


def a_notebook(hub: FakeHub, **changes: Any) -> WorkloadSpec:
    """Return the spec of the owner's notebook, as *hub* would have it run."""
    hub.add_token(TOKEN, OWNER, "access:servers")
    environment = {
        "JUPYTERHUB_API_TOKEN": TOKEN,
        "JUPYTERHUB_API_URL": hub.api_url,
        "JUPYTERHUB_ACTIVITY_URL": f"{hub.api_url}/users/{OWNER}/activity",
        "JUPYTERHUB_BASE_URL": "/",
        "JUPYTERHUB_CLIENT_ID": f"jupyterhub-user-{OWNER}",
        "JUPYTERHUB_HOST": "",
        "JUPYTERHUB_OAUTH_ACCESS_SCOPES": '["access:servers"]',
        "JUPYTERHUB_OAUTH_CALLBACK_URL": f"{PREFIX}oauth_callback",
        "JUPYTERHUB_OAUTH_SCOPES": '["access:servers"]',
        "JUPYTERHUB_SERVER_NAME": "",
        "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
        "JUPYTERHUB_USER": OWNER,
        **changes.pop("environment", {}),
    }
    spec = a_notebook_of(OWNER, DriverName.NATIVE, "jupyter", environment=environment)
    return spec.model_copy(update=changes)


async def last_handle(driver: NativeDriver, job: Job) -> Handle:
    """Start *job* and return its last handle; on failure nothing of it remains."""
    handle: Handle | None = None
    try:
        async for made in driver.start(job, unheard):
            handle = made
    except BaseException:
        if handle is not None:
            await driver.stop(handle, grace_seconds=0)
        raise
    if handle is None:
        raise AssertionError("the driver yielded no handle")
    return handle


def unheard(progress: Progress) -> None:
    """Hear nothing."""
