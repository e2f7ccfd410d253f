"""What a job becomes on a Mac: its rights, its command, its variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.common.accounts import Account, UidRange
from fleet_agent.drivers.native.environments.interpreter import Interpreter
from fleet_agent.drivers.native.environments.store import Environment
from fleet_agent.drivers.native.macos.boot import PACKAGE, boot_folder, collect
from fleet_agent.drivers.native.macos.driver import MacDriver
from fleet_agent.drivers.native.macos.planning import (
    Place,
    clean_environment,
    command,
    rights,
)
from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.drivers.native.settings import NativeSettings
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Accelerator


STATE = Path("/Users/ada/fleet/native")
PLACE = Place(
    run=RunFolder(STATE / "runs/1234"),
    notebook=STATE / "notebooks/ada-default",
    boot=STATE / "boot/77aa",
    account=Account(uid=501, gid=20, name="ada"),
)
ENVIRONMENT = Environment(
    identity="0" * 32,
    tree=STATE / "environments/0/tree",
    interpreter=Interpreter(
        executable="/opt/python/bin/python3.11",
        prefix="/opt/python",
        version="3.11",
        minor="3.11",
        platform="macosx-14.0-arm64",
        soabi=None,
    ),
)


def test_the_command_is_the_tool_the_profile_and_the_server() -> None:
    """Each word exactly: Python hears neither the user's variables nor packages."""
    assert command(
        Path("/usr/bin/sandbox-exec"), PLACE.run.profile, PLACE, ENVIRONMENT
    ) == (
        "/usr/bin/sandbox-exec",
        "-f",
        "/Users/ada/fleet/native/runs/1234/sandbox.sb",
        "/Users/ada/fleet/native/environments/0/tree/bin/python",
        "-I",
        "-c",
        (
            "import sys; sys.path.insert(0, '/Users/ada/fleet/native/boot/77aa'); "
            "from fleet_agent.drivers.native.inside.bootstrap import main; main()"
        ),
    )


def test_the_sandbox_starts_with_nothing_of_the_agents_environment() -> None:
    """Each variable exactly; secrets come later, over the launch message."""
    assert clean_environment(PLACE, ENVIRONMENT) == {
        "PATH": "/Users/ada/fleet/native/environments/0/tree/bin"
        ":/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": "/Users/ada/fleet/native/notebooks/ada-default",
        "USER": "ada",
        "LOGNAME": "ada",
        "SHELL": "/bin/zsh",
        "LANG": "en_US.UTF-8",
        "TMPDIR": "/Users/ada/fleet/native/runs/1234/tmp",
        "JUPYTER_RUNTIME_DIR": "/Users/ada/fleet/native/runs/1234/tmp/jupyter-runtime",
        "JUPYTERHUB_FLEET_RUN": "1234",
    }


def test_only_the_notebook_folder_and_the_private_temp_are_writable() -> None:
    """The environment, its Python and our own modules are for reading."""
    plan = rights(PLACE, ENVIRONMENT, Accelerator.CPU)

    assert plan.write == (str(PLACE.notebook), str(PLACE.run.temporary))
    assert plan.read == (str(ENVIRONMENT.tree), "/opt/python", str(PLACE.boot))
    assert not plan.metal


def test_only_a_class_that_asked_for_the_gpu_is_given_it() -> None:
    """The class decides, whatever the Mac has."""
    assert rights(PLACE, ENVIRONMENT, Accelerator.MPS).metal


def test_what_runs_inside_is_a_copy_without_the_agent(tmp_path: Path) -> None:
    """The same modules, once for all runs, and nothing else of the agent."""
    first, second = boot_folder(tmp_path / "boot"), boot_folder(tmp_path / "boot")

    assert first == second
    assert [path.name for path in (tmp_path / "boot").iterdir()] == [first.name]
    files = {
        str(path.relative_to(first)) for path in first.rglob("*") if path.is_file()
    }
    assert f"{PACKAGE}/bootstrap.py" in files
    assert all(name.startswith(f"{PACKAGE}/") for name in files)


def test_copies_of_other_versions_are_collected(tmp_path: Path) -> None:
    """The one in use stays; a folder that was never made is no fault."""
    collect(tmp_path / "boot")
    kept = boot_folder(tmp_path / "boot")
    (tmp_path / "boot/0ld" / PACKAGE).mkdir(parents=True)
    collect(tmp_path / "boot")

    assert list((tmp_path / "boot").iterdir()) == [kept]


def a_driver(state: Path, *, tool: Path, uids: UidRange | None) -> MacDriver:
    """Return a driver that is asked nothing but whether it can run anything."""
    settings = NativeSettings(
        state=state, interpreter=Path("/x"), uv=Path("/x"), uids=uids
    )
    return MacDriver(settings, sandbox_exec=tool)


def test_a_mac_without_the_tool_runs_nothing(tmp_path: Path) -> None:
    """No sandbox, no notebook, and the reason says so."""
    driver = a_driver(tmp_path, tool=tmp_path / "absent", uids=None)

    with pytest.raises(DriverError) as refused:
        driver.check()

    assert refused.value.explanation.reason is Reason.SANDBOX_MISSING


def test_an_agent_that_is_root_runs_nothing_on_a_mac(tmp_path: Path) -> None:
    """No workload runs as root; the remedy is the owner's own agent."""
    tool = tmp_path / "sandbox-exec"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    driver = a_driver(tmp_path, tool=tool, uids=UidRange())

    with pytest.raises(DriverError) as refused:
        driver.check()

    assert "fleet-agent install" in (refused.value.explanation.detail or "")
