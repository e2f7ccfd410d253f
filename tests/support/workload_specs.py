"""What a driver is given to run: a notebook of somebody's, and what a test says of it."""

from __future__ import annotations

from typing import Any

from fleet_contracts.workloads import (
    Accelerator,
    DriverName,
    Resources,
    RuntimeSpec,
    WorkloadSpec,
)


def a_notebook_of(
    owner: str,
    driver: DriverName,
    ref: str,
    *,
    accelerator: Accelerator = Accelerator.CPU,
    environment: dict[str, str] | None = None,
    **changes: Any,
) -> WorkloadSpec:
    """Return the spec of *owner*'s notebook, in the environment or image *ref*."""
    values: dict[str, Any] = {
        "owner": owner,
        "owner_id": 1,
        "notebook": f"{owner}-default",
        "profile": "jupyter",
        "class_name": "cpu",
        "runtime": RuntimeSpec(
            name="jupyter",
            driver=driver,
            ref=ref,
            accelerator=accelerator,
            catalog_digest="0",
        ),
        "resources": Resources(),
        "environment": {
            "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:1/user/{owner}/",
            **(environment or {}),
        },
    }
    return WorkloadSpec(**(values | changes))
