"""torch is asked in a process of its own, and may do there whatever it likes."""

from __future__ import annotations

import venv
from pathlib import Path
from textwrap import dedent

import pytest

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.frameworks import FrameworkProbe
from fleet_agent.probes.readers import ask_machine
from fleet_agent.probes.torch.probe import TorchProbe
from fleet_contracts.capabilities import ProbeStatus, TorchFacts


pytestmark = pytest.mark.timeout(300)

WORKING = """
    from types import SimpleNamespace as Space

    __version__ = "2.5.1+cu124"
    version = Space(cuda="12.4", hip=None)
    backends = Space(
        cuda=Space(is_built=lambda: True),
        mps=Space(is_built=lambda: False, is_available=lambda: False),
    )
    PROPERTIES = Space(name="Pretend GPU", total_memory=8 << 30, major=9, minor=0)
    cuda = Space(
        is_available=lambda: True,
        device_count=lambda: 1,
        get_device_properties=lambda index: PROPERTIES,
    )

    class Numbers:
        def __init__(self, values):
            self.values = values

        def __add__(self, other):
            return Numbers([a + b for a, b in zip(self.values, other.values)])

        def sum(self):
            return self

        def item(self):
            return sum(self.values)

    def ones(count, device):
        return Numbers([1.0] * count)
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return an environment of a workload, with nothing in it yet."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


def install(environment: Path, source: str, name: str = "torch") -> None:
    """Put a package called *name* into *environment*."""
    [packages] = environment.glob("lib/python3*/site-packages")
    (packages / name).mkdir()
    (packages / name / "__init__.py").write_text(dedent(source))
    (packages / f"{name}-2.5.1.dist-info").mkdir()


def ask(environment: Path, seconds: float = 60.0) -> Answer:
    """Return what the torch in *environment* says."""
    interpreter = str(environment / "bin" / "python")
    return TorchProbe(
        ask=ask_machine, interpreter=interpreter, seconds=seconds
    ).observe()


def torch(answer: Answer) -> TorchFacts:
    """Return what an answer says about torch."""
    assert answer.torch is not None
    return answer.torch


def test_a_torch_that_computes_is_believed(environment: Path) -> None:
    """Version, build and the result of a computation come back."""
    install(environment, WORKING)
    answer = ask(environment)

    assert answer.status is ProbeStatus.OK
    assert torch(answer).version == "2.5.1+cu124"
    assert torch(answer).cuda is True
    assert torch(answer).interpreter == str(environment / "bin" / "python")


def test_a_torch_that_computes_wrongly_is_not(environment: Path) -> None:
    """Being available is no proof: the result counts."""
    install(environment, WORKING.replace("return sum(self.values)", "return 0.0"))
    answer = ask(environment)

    assert answer.status is ProbeStatus.OK_WITH_WARNINGS
    assert torch(answer).cuda_available is True
    assert torch(answer).cuda is False


def test_what_torch_prints_is_noise(environment: Path) -> None:
    """Banners on either stream, of Python and of C, do not reach the answer."""
    noise = """
    import os, sys
    print("##PROBE## is not mine", flush=True)
    os.write(1, b'{"stage": "forged"}\\n')
    sys.stderr.write("Traceback (most recent call last):\\n")
    """
    install(environment, dedent(noise) + dedent(WORKING))
    answer = ask(environment)

    assert torch(answer).cuda is True
    assert answer.reason == "import_noise"


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        ("import os; os.kill(os.getpid(), 11)", ProbeStatus.CRASH, "killed_by_sigsegv"),
        ("import os; os.kill(os.getpid(), 4)", ProbeStatus.CRASH, "killed_by_sigill"),
        (
            "raise ImportError('libcudart.so.12: cannot open shared object file')",
            ProbeStatus.CRASH,
            "import_failed",
        ),
        ("import os; os._exit(0)", ProbeStatus.CRASH, "import_failed"),
        ("import numpy_that_is_missing", ProbeStatus.CRASH, "import_failed"),
    ],
)
def test_a_torch_that_breaks_breaks_alone(
    environment: Path, source: str, status: ProbeStatus, reason: str
) -> None:
    """However its import ends, the probe knows how and the agent goes on."""
    install(environment, source)
    answer = ask(environment)

    assert (answer.status, answer.reason) == (status, reason)
    assert torch(answer).version is None


def test_a_torch_that_hangs_is_left_behind(environment: Path) -> None:
    """After its time it is killed, and whether it works stays unknown."""
    install(environment, "import threading; threading.Event().wait()")
    answer = ask(environment, seconds=3.0)

    assert (answer.status, answer.reason) == (ProbeStatus.TIMEOUT, "tool_timeout")
    assert torch(answer).cuda is None


def test_an_environment_without_torch_says_so(environment: Path) -> None:
    """Nothing to import is no fault."""
    answer = ask(environment)

    assert answer.status is ProbeStatus.TOOL_ABSENT
    assert torch(answer).cuda is False


def test_a_stray_torch_is_not_taken_for_torch(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the current folder nor PYTHONPATH can put another torch before it."""
    (tmp_path / "torch.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = ask(environment)

    assert answer.status is ProbeStatus.TOOL_ABSENT


def test_frameworks_are_read_and_not_run(environment: Path) -> None:
    """Name, version and build come from files; nothing is imported."""
    install(environment, "raise SystemExit('imported')")
    install(environment, "raise SystemExit('imported')", name="jax")
    [packages] = environment.glob("lib/python3*/site-packages")
    (packages / "torch" / "version.py").write_text(
        "__version__ = '2.5.1+rocm6.2'\ncuda: Optional[str] = None\nhip: Optional[str] = '6.2.41133'\n"
    )
    found = FrameworkProbe(
        ask=ask_machine, interpreter=str(environment / "bin" / "python")
    ).observe()

    assert found is not None
    assert [(item.name, item.version, item.build) for item in found] == [
        ("jax", "2.5.1", None),
        ("torch", "2.5.1", "hip6.2.41133"),
    ]


def test_an_environment_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    """Not built yet is not "without torch"."""
    missing = str(tmp_path / "nowhere" / "bin" / "python")

    assert FrameworkProbe(ask=ask_machine, interpreter=missing).observe() is None
