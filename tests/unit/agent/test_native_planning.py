"""What a job becomes: its view, its variables, its address."""

from __future__ import annotations

from pathlib import Path

import pytest
from workload_specs import a_notebook_of

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.common.listening import Addresses, at_address
from fleet_agent.drivers.common.variables import server_prefix
from fleet_agent.drivers.native.environments.interpreter import Interpreter
from fleet_agent.drivers.native.environments.store import Environment
from fleet_agent.drivers.native.planning import (
    Place,
    System,
    clean_environment,
    launch_environment,
    sandbox_plan,
)
from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.drivers.native.sandbox import Access, Mount
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import (
    DriverName,
    Resources,
    WorkloadSpec,
)


ANNA = Account(uid=1_900_000_000, gid=1_900_000_000, name="anna")


def a_spec(*devices: str, **environment: str) -> WorkloadSpec:
    """Return the spec of a notebook."""
    return a_notebook_of(
        "anna",
        DriverName.NATIVE,
        "jupyter",
        resources=Resources(devices=devices),
        environment=environment,
    )


def an_environment(interpreter_prefix: str) -> Environment:
    """Return an environment over the Python at *interpreter_prefix*."""
    return Environment(
        identity="0" * 32,
        tree=Path("/state/environments/0/tree"),
        interpreter=Interpreter(
            executable=f"{interpreter_prefix}/bin/python3",
            prefix=interpreter_prefix,
            version="3.11",
            minor="3.11",
            platform="linux-x86_64",
            soabi=None,
        ),
    )


def planned(interpreter_prefix: str = "/opt/python") -> dict[str, Mount]:
    """Return the mounts of a plan, by where they are seen."""
    plan = sandbox_plan(
        System(mounts=(Mount(source="/usr", target="/usr"),), links=()),
        Place(
            run=RunFolder(Path("/state/runs/1")),
            notebook=Path("/state/notebooks/anna"),
            account=ANNA,
        ),
        an_environment(interpreter_prefix),
        status_fd=3,
    )
    return {mount.target: mount for mount in plan.mounts}


def test_only_the_notebook_folder_and_the_private_temp_are_writable() -> None:
    """Everything else is for reading."""
    writable = {
        target: mount.source
        for target, mount in planned().items()
        if mount.access is not Access.READ
    }

    assert writable == {
        "/home/jovyan": "/state/notebooks/anna",
        "/tmp": "/state/runs/1/tmp",
    }


def test_the_interpreter_is_seen_at_its_own_path() -> None:
    """Elsewhere it would load another libpython; below /usr it is there already."""
    assert planned("/home/x/python")["/home/x/python"].source == "/home/x/python"
    assert "/usr" in planned("/usr")
    assert "/usr/local/python" not in planned("/usr/local/python")


def test_variables_that_describe_another_machine_are_dropped() -> None:
    """PATH, library paths and devices are this machine's business."""
    spec = a_spec(
        PATH="/evil",
        HOME="/evil",
        LD_PRELOAD="/evil.so",
        PYTHONPATH="/evil",
        CUDA_VISIBLE_DEVICES="0,1,2",
        JUPYTER_CONFIG_DIR="/evil",
        JUPYTERHUB_SINGLEUSER_APP="notebook",
        JUPYTERHUB_USER="somebody",
        JUPYTERHUB_API_TOKEN="secret",
    )

    result = launch_environment(spec, {}, Addresses(), 4711)

    assert "/evil" not in " ".join(result.values())
    assert "JUPYTERHUB_SINGLEUSER_APP" not in result
    assert result["CUDA_VISIBLE_DEVICES"] == ""
    assert result["JUPYTERHUB_API_TOKEN"] == "secret"
    # The owner's name comes from the allocation, not from a variable.
    assert result["JUPYTERHUB_USER"] == "anna"


def test_gpu_classes_see_their_own_gpus_by_uuid() -> None:
    """An index would mean another GPU after a restart of the machine."""
    result = launch_environment(a_spec("GPU-b", "GPU-a"), {}, Addresses(), 1)

    assert result["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-a"


def test_the_hubs_word_outranks_what_the_machines_owner_gives() -> None:
    """The owner's own variables are a default, such as a proxy."""
    spec = a_spec(GIVEN="hub")

    result = launch_environment(spec, {"GIVEN": "own", "MORE": "x"}, Addresses(), 1)

    assert (result["GIVEN"], result["MORE"]) == ("hub", "x")


def test_the_service_url_names_the_chosen_port() -> None:
    """The path stays what the Hub said."""
    addresses = Addresses(bind="", advertise="10.0.0.9")

    result = launch_environment(a_spec(), {}, addresses, 4711)

    assert result["JUPYTERHUB_SERVICE_URL"] == "http://0.0.0.0:4711/user/anna/"
    assert server_prefix(a_spec()) == "/user/anna/"
    assert at_address("http://x/user/anna/", "::1", 2) == "http://[::1]:2/user/anna/"


@pytest.mark.parametrize("url", ["", "https://127.0.0.1/user/anna/", "/user/anna/"])
def test_a_launch_without_a_usable_address_is_refused(url: str) -> None:
    """Without it the server would listen somewhere else."""
    with pytest.raises(DriverError) as refused:
        server_prefix(a_spec(JUPYTERHUB_SERVICE_URL=url))

    assert refused.value.explanation.reason is Reason.START_FAILED


def test_the_sandbox_starts_with_nothing_of_the_agents_environment() -> None:
    """Its first variables are a constant list, without a secret."""
    assert set(clean_environment(ANNA)) == {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "TMPDIR",
        "JUPYTER_RUNTIME_DIR",
    }
