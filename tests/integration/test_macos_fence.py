"""Whether a Mac's sandbox keeps notebooks from the GPU is seen, or unknown.

Real processes with the real profile and the real command line; the sandbox tool stands
in for the kernel of macOS, and the frameworks that the witnesses ask are pretended.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from fake_mac_kernel import FakeMacKernel, a_python_with_torch
from mac_bench import marked
from native_machine import native_settings
from patience import until_so
from pretended_gpu import LYING_TORCH
from seatbelt_language import Profile

from fleet_agent.drivers.native.environments.interpreter import own_interpreter
from fleet_agent.drivers.native.macos.driver import MacDriver
from fleet_agent.drivers.native.macos.fence import rules
from fleet_agent.drivers.native.macos.fence_verdict import Witness
from fleet_agent.drivers.native.macos.planning import MARK


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

BUILD = "24F74"


@dataclass
class Mac:
    """A Mac, its owner's Python with torch, and what its kernel does."""

    base: Path
    state: Path
    kernel: FakeMacKernel
    python: Path

    def driver(self, *, seconds: float = 60.0, python: Path | None = None) -> MacDriver:
        """Return the driver of a new agent process."""
        settings = native_settings(
            self.state, uids=None, fence_python=python or self.python
        )
        driver = MacDriver(settings, sandbox_exec=self.kernel.program)
        driver._fence.seconds = dict.fromkeys(Witness, seconds)
        return driver

    def left(self) -> list[str]:
        """Return what a probe left on the disk and in the process table."""
        runs = [path.name for path in (self.state / "fence/runs").glob("*")]
        marks = {str(run["environment"][MARK]) for run in self.kernel.looks()}
        return runs + [f"process {pid}" for mark in marks for pid in marked(mark)]


@pytest_asyncio.fixture
async def mac(tmp_path: Path) -> AsyncIterator[Mac]:
    """Return a Mac whose kernel keeps to the profile."""
    state = tmp_path / "agent"
    state.mkdir(mode=0o700)
    mac = Mac(
        base=tmp_path,
        state=state,
        kernel=FakeMacKernel.make(tmp_path),
        python=a_python_with_torch(tmp_path / "torch"),
    )
    yield mac
    assert mac.left() == []


async def test_a_fence_holds_where_the_gpu_is_there_and_out_of_reach(mac: Mac) -> None:
    """Both witnesses, each with the GPU's rights and without; it is remembered."""
    found = await mac.driver().probe_fence(BUILD)

    assert (found.holds, found.reason, found.os_build) == (True, "ok", BUILD)
    assert await mac.driver().known_fence(BUILD) == found
    allowed = [
        Profile(run["profile"]).allows("iokit-open", name="AGXDeviceUserClient")
        for run in mac.kernel.looks()
    ]
    assert allowed == [True, False, True, False]


async def test_the_witnesses_look_from_where_a_cpu_notebook_would_be(mac: Mac) -> None:
    """Command, variables and profile exactly; a fresh folder, and no package of anyone."""
    await mac.driver().probe_fence(BUILD)
    _, metal, _, torch = mac.kernel.looks()

    for run, python, options in (
        (metal, str(own_interpreter()), ["-I", "-S", "-c"]),
        (torch, str(mac.python), ["-I", "-c"]),
    ):
        name = run["environment"][MARK]
        place = mac.state / "fence/runs" / name
        # The stand-in is handed the command; it has put its frameworks before it later.
        assert run["argv"][0] == python
        assert run["argv"][1:-1] == options
        [boot] = (mac.state / "boot").iterdir()
        witness = "metal" if run is metal else "torch"
        start, call = run["argv"][-1].rsplit("; ", 1)
        assert start == (
            f"import sys; sys.path.insert(0, {str(boot)!r}); "
            f"from fleet_agent.drivers.native.inside.fence import {witness}"
        )
        assert call.startswith(f"{witness}('")
        variables = dict(run["environment"])
        variables.pop("LC_CTYPE", None)
        assert variables.pop("PATH").endswith(":/usr/bin:/bin:/usr/sbin:/sbin")
        assert variables == {
            "HOME": str(place / "notebook"),
            "USER": "fence",
            "LOGNAME": "fence",
            "SHELL": "/bin/zsh",
            "LANG": "en_US.UTF-8",
            "TMPDIR": str(place / "tmp"),
            "JUPYTER_RUNTIME_DIR": str(place / "tmp/jupyter-runtime"),
            MARK: name,
        }
        assert run["pid"] == run["group"] == run["session"]
        profile = Profile(run["profile"])
        assert profile.allows("file-write-create", path=str(place / "notebook/x"))
        assert not profile.allows("file-read-data", path=str(mac.state / "token"))
        for service in ("com.apple.MTLCompilerService", "com.apple.cvmsServ"):
            assert not profile.allows("mach-lookup", name=service)


@pytest.mark.parametrize(
    ("behaviour", "holds", "reason"),
    [
        # The kernel does not keep to the profile, or not for everybody.
        ({"metal fenced": "reached", "torch fenced": "reached"}, False, "gpu_reached"),
        ({"metal fenced": "reached"}, False, "gpu_reached"),
        ({"metal fenced": "half"}, False, "gpu_reached"),
        ({"torch fenced": "reached"}, False, "gpu_reached"),
        # A witness that never sees the GPU proves nothing.
        ({"metal open": "nothing"}, None, "control_failed"),
        ({"metal open": "half"}, None, "control_failed"),
        ({"torch open": "nothing"}, None, "control_failed"),
        ({"torch open": "crashes"}, None, "control_failed"),
        # Whatever else goes wrong.
        ({"metal fenced": "crashes"}, None, "probe_failed"),
        ({"torch fenced": "crashes"}, None, "probe_failed"),
        ({"metal fenced": "fails"}, None, "probe_failed"),
        ({"torch fenced": "fails"}, None, "probe_failed"),
        ({"metal fenced": "chatters"}, None, "probe_failed"),
        ({"metal fenced": "floods"}, None, "probe_failed"),
    ],
)
async def test_anything_else_is_no_fence(
    mac: Mac, behaviour: dict[str, str], holds: bool | None, reason: str
) -> None:
    """Only what is certain is remembered, and it is never a yes."""
    mac.kernel.behave(behaviour)

    found = await mac.driver().probe_fence(BUILD)

    assert (found.holds, found.reason) == (holds, reason)
    known = await mac.driver().known_fence(BUILD)
    assert (known is not None) is (holds is False)


async def test_a_witness_that_hangs_is_ended_and_proves_nothing(mac: Mac) -> None:
    """It gets its time and no more."""
    mac.kernel.behave({"metal fenced": "hangs"})

    found = await mac.driver(seconds=2).probe_fence(BUILD)

    assert found.holds is None


async def test_what_a_witness_leaves_behind_is_ended(mac: Mac) -> None:
    """A process that has left its group and keeps the pipe open is found by its mark."""
    mac.kernel.behave({"torch fenced": "leaves somebody behind"})

    found = await mac.driver(seconds=2).probe_fence(BUILD)

    assert found.holds is None


async def test_a_torch_that_denies_the_gpu_does_not_make_a_fence(mac: Mac) -> None:
    """It would deny it behind a broken fence too: the control finds it out."""
    liar = a_python_with_torch(mac.base / "liar", LYING_TORCH)
    mac.kernel.behave({"torch fenced": "reached"})

    found = await mac.driver(python=liar).probe_fence(BUILD)

    assert (found.holds, found.reason) == (None, "control_failed")


async def test_no_package_answers_for_the_system(mac: Mac) -> None:
    """An environment that changes Python itself has no say in what Metal shows."""
    packages = next((mac.base / "torch").glob("lib/python*/site-packages"))
    (packages / "sitecustomize.py").write_text(
        "import ctypes\n"
        "class Nothing:\n"
        "    def __getattr__(self, name):\n"
        "        return lambda *a: None\n"
        "ctypes.CDLL = lambda *a, **k: Nothing()\n"
    )
    mac.kernel.behave({"metal fenced": "reached"})

    found = await mac.driver().probe_fence(BUILD)

    assert (found.holds, found.reason) == (False, "gpu_reached")


async def test_without_a_torch_nobody_can_tell(mac: Mac) -> None:
    """The system's framework alone is one witness too few."""
    settings = native_settings(mac.state, uids=None)
    driver = MacDriver(settings, sandbox_exec=mac.kernel.program)

    found = await driver.probe_fence(BUILD)

    assert (found.holds, found.reason) == (None, "torch_missing")
    assert mac.kernel.looks() == []


async def test_what_was_seen_on_one_build_says_nothing_about_another(mac: Mac) -> None:
    """Nor does what was seen with other rules, nor a file that somebody wrote."""
    driver = mac.driver()
    await driver.probe_fence(BUILD)
    kept = mac.state / "fence/found.json"
    facts = json.loads(kept.read_text())

    assert await driver.known_fence("24G84") is None
    assert kept.stat().st_mode & 0o777 == 0o600
    for broken in (
        json.dumps(facts | {"rules": "of an older agent"}),
        json.dumps(facts | {"holds": "yes"}),
        json.dumps(facts | {"holds": 1}),
        json.dumps(facts | {"holds": None}),
        json.dumps(facts | {"at": "yesterday"}),
        json.dumps([facts]),
        "{",
    ):
        kept.write_text(broken)
        assert await driver.known_fence(BUILD) is None, broken
    kept.write_text(json.dumps(facts | {"rules": rules()}))
    assert await driver.known_fence(BUILD) is not None


async def test_a_new_probe_forgets_what_an_earlier_one_saw(mac: Mac) -> None:
    """A fence that was seen to hold and then comes to no result is unknown."""
    driver = mac.driver()
    await driver.probe_fence(BUILD)
    mac.kernel.behave({"torch open": "crashes"})

    await driver.probe_fence(BUILD)

    assert await driver.known_fence(BUILD) is None


async def test_an_agent_that_is_told_to_end_takes_its_witness_along(mac: Mac) -> None:
    """Nothing of the probe runs on, and nothing of it stays."""
    mac.kernel.behave({"metal fenced": "hangs"})
    probing = asyncio.create_task(mac.driver().probe_fence(BUILD))
    await until_so(lambda: len(mac.kernel.looks()) > 1, "the witness looks")

    probing.cancel()
    await asyncio.gather(probing, return_exceptions=True)

    assert mac.left() == []


async def test_the_next_agent_ends_what_a_killed_one_left(mac: Mac) -> None:
    """The mark of the run finds the process, and its folder goes."""
    mac.kernel.behave({"metal fenced": "hangs"})
    script = (
        "import asyncio, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1] / 'support')!r})\n"
        "from pathlib import Path\n"
        "from native_machine import native_settings\n"
        "from fleet_agent.drivers.native.macos.driver import MacDriver\n"
        f"settings = native_settings(Path({str(mac.state)!r}), uids=None,\n"
        f"    fence_python=Path({str(mac.python)!r}))\n"
        f"driver = MacDriver(settings, sandbox_exec=Path({str(mac.kernel.program)!r}))\n"
        f"asyncio.run(driver.probe_fence({BUILD!r}))\n"
    )
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    await until_so(lambda: len(mac.kernel.looks()) > 1, "the witness looks")
    agent.kill()
    await agent.wait()
    assert mac.left() != []

    await mac.driver().open()

    assert mac.left() == []
    assert await mac.driver().known_fence(BUILD) is None
