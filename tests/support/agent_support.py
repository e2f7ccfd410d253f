"""Builders for tests of the agent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from patience import PATIENCE

from fleet_contracts.workloads import (
    Accelerator,
    DriverName,
    RefSource,
    Resources,
    RuntimeSpec,
    WorkloadSpec,
)


AT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
SECRET = "a-token-that-must-never-be-seen"


def a_runtime(**changes: Any) -> RuntimeSpec:
    """Return a selected runtime for the simulation driver."""
    values: dict[str, Any] = {
        "name": "jupyter-cpu",
        "driver": DriverName.SIMULATION,
        "ref": "jupyter",
        "accelerator": Accelerator.CPU,
        "catalog_digest": "0" * 64,
        "source": RefSource.REF,
    }
    return RuntimeSpec(**values | changes)


def a_spec(**changes: Any) -> WorkloadSpec:
    """Return what a small notebook of olivia's looks like to an agent."""
    values: dict[str, Any] = {
        "owner": "olivia",
        "owner_id": 1,
        "notebook": "1-1",
        "profile": "jupyter",
        "class_name": "small",
        "runtime": a_runtime(),
        "resources": Resources(cpu_milli=100, memory_bytes=64 * 1024 * 1024),
        "environment": {
            "JUPYTERHUB_API_TOKEN": SECRET,
            "JUPYTERHUB_API_URL": "http://127.0.0.1:8081/hub/api",
            "JUPYTERHUB_ACTIVITY_URL": (
                "http://127.0.0.1:8081/hub/api/users/olivia/activity"
            ),
            "JUPYTERHUB_SERVICE_PREFIX": "/user/olivia/",
            "JUPYTERHUB_SERVICE_URL": "http://127.0.0.1:0/user/olivia/",
            "JUPYTERHUB_FLEET_URL": "http://127.0.0.1:8000/services/fleet/",
        },
        "arguments": ("--debug",),
        "prepare_seconds": PATIENCE,
        "start_seconds": PATIENCE,
        "stop_seconds": 2,
    }
    return WorkloadSpec(**values | changes)
