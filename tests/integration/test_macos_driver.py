"""The native path of a Mac, whole, with a tool that enforces nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from fake_hub import FakeHub
from mac_bench import MacBench, a_tool, marked
from native_machine import TOKEN, last_handle
from notebook_client import Kernel, NotebookServer
from seatbelt_language import Profile

from fleet_agent.drivers.base import Handle, Standing
from fleet_agent.drivers.native.macos.driver import MacDriver
from fleet_agent.drivers.native.macos.planning import MARK
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Accelerator


pytestmark = [pytest.mark.asyncio, pytest.mark.slow, pytest.mark.timeout(300)]


@dataclass
class Mac:
    """A Mac with one notebook that answers."""

    bench: MacBench
    driver: MacDriver
    handle: Handle

    @property
    def server(self) -> NotebookServer:
        """The notebook, as its owner reaches it."""
        return NotebookServer(self.handle.url or "", TOKEN)

    @property
    def given(self) -> dict[str, Any]:
        """What the sandbox tool was given."""
        [run] = self.bench.tool.runs()
        return run

    @property
    def run(self) -> Path:
        """The run's folder."""
        return self.bench.state / "runs" / self.handle.data["run"]


@pytest_asyncio.fixture
async def mac(tmp_path: Path) -> AsyncIterator[Mac]:
    """Return a Mac on which a notebook of a GPU class answers."""
    state = tmp_path / "agent"
    state.mkdir(mode=0o700)
    async with FakeHub() as hub:
        bench = MacBench(
            state=state, hub=hub, silent_hub="http://127.0.0.1:1", tool=a_tool(tmp_path)
        )
        job = bench.job("ada-default")
        runtime = job.spec.runtime.model_copy(update={"accelerator": Accelerator.MPS})
        job = replace(job, spec=job.spec.model_copy(update={"runtime": runtime}))
        driver = bench.driver()
        handle = await last_handle(driver, job)
        try:
            yield Mac(bench, driver, handle)
        finally:
            await driver.stop(handle, grace_seconds=0)


async def test_the_tool_is_given_the_server_its_rights_and_nothing_else(
    mac: Mac,
) -> None:
    """Command, variables, profile and process group, as the kernel would get them."""
    given, run = mac.given, mac.run
    tree = given["argv"][0].removesuffix("/bin/python")

    assert given["argv"][1:3] == ["-I", "-c"]
    assert len(given["argv"]) == 4
    assert set(given["environment"]) == {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR"),
        *("JUPYTER_RUNTIME_DIR", MARK),
    } | ({"LC_CTYPE"} & set(given["environment"]))
    assert given["environment"]["TMPDIR"] == str(run / "tmp")
    assert given["pid"] == given["group"] == given["session"]
    assert given["pid"] == mac.handle.data["leader"]["pid"]
    rules = Profile(given["profile"])
    assert rules.allows("file-read-data", path=f"{tree}/bin/python")
    assert not rules.allows("file-write-create", path=f"{tree}/bin/python")
    notebook = mac.bench.state / "notebooks/ada-default"
    assert rules.allows("file-write-create", path=str(notebook / "work.ipynb"))
    assert not rules.allows("file-read-data", path=str(mac.bench.state / "token"))
    assert rules.allows("iokit-open", name="AGXDeviceUserClient")
    assert TOKEN not in str(given)


async def test_a_kernel_computes_in_the_owners_folder(mac: Mac) -> None:
    """Files are the notebook folder's; the kernel carries the mark of its run."""
    async with Kernel(mac.server) as kernel:
        told = await kernel.run(
            "import os\nopen('made', 'w').write('x')\n"
            f"print(os.getcwd(), os.environ[{MARK!r}], os.environ['TMPDIR'])"
        )

    folder = mac.bench.state / "notebooks/ada-default"
    assert told.split() == [
        str(folder),
        mac.handle.data["run"],
        str(mac.run / "tmp"),
    ]
    assert (folder / "made").read_text() == "x"


async def test_what_left_the_process_group_ends_with_the_server(mac: Mac) -> None:
    """A daemon in a session of its own is found by its mark."""
    async with Kernel(mac.server) as kernel:
        told = await kernel.run(
            "import subprocess\n"
            "p = subprocess.Popen(['sleep', '987654'], start_new_session=True)\n"
            "print(p.pid)"
        )
    daemon = int(told)
    assert daemon in marked(mac.handle.data["run"])
    waiting = asyncio.create_task(mac.driver.wait(mac.handle))

    os.kill(mac.handle.data["leader"]["pid"], signal.SIGKILL)
    condition = await waiting

    assert (condition.standing, condition.exit_code) == (Standing.GONE, 137)
    assert not marked(mac.handle.data["run"])
    assert not psutil.pid_exists(daemon) or (
        psutil.Process(daemon).status() == psutil.STATUS_ZOMBIE
    )


async def test_an_end_that_no_agent_saw_is_told_as_such(mac: Mac) -> None:
    """A later agent knows that it is gone and not how; the files are kept."""
    later = mac.bench.driver()
    await mac.driver.stop(mac.handle, grace_seconds=10)

    condition = await later.recover(mac.handle)

    assert condition.standing is Standing.GONE
    assert condition.explanation is not None
    assert condition.explanation.reason is Reason.SERVER_EXITED
    assert "no agent watched" in (condition.explanation.detail or "")
    assert (mac.bench.state / "notebooks/ada-default").is_dir()
    assert not mac.run.exists()


async def test_after_a_reboot_a_notebook_is_gone_and_nothing_is_signalled(
    mac: Mac,
) -> None:
    """The process ids of another boot mean nothing."""
    leader = {**mac.handle.data["leader"], "boot": "of-yesterday"}
    data = {**mac.handle.data, "boot": "of-yesterday", "leader": leader}
    other_boot = replace(mac.handle, data=data)

    condition = await mac.driver.recover(other_boot)

    assert condition.standing is Standing.GONE
    assert condition.explanation is not None
    assert condition.explanation.reason is Reason.MACHINE_REBOOTED
    assert (await mac.server.ask("api/status"))["kernels"] == 0


async def test_a_stranger_with_the_old_process_id_is_not_touched(mac: Mac) -> None:
    """The time of its start tells it apart."""
    stranger = await asyncio.create_subprocess_exec(
        "sleep", "60", start_new_session=True
    )
    leader = {**mac.handle.data["leader"], "pid": stranger.pid, "started": "1"}
    data = {**mac.handle.data, "run": "0" * 24, "leader": leader}

    condition = await mac.driver.recover(replace(mac.handle, data=data))
    await mac.driver.stop(replace(mac.handle, data=data), grace_seconds=1)

    assert condition.standing is Standing.GONE
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()
