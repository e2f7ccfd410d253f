"""Tools run within limits of time and output, and nothing of them stays behind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from patience import PATIENCE

from fleet_agent.probes import running
from fleet_agent.probes.running import OUTPUT_LIMIT, run
from fleet_agent.probes.tools import ToolCall, ToolFault


pytestmark = pytest.mark.timeout(300)


def a_tool(folder: Path, script: str, *, name: str = "tool", mode: int = 0o755) -> str:
    """Return the path of an executable with *script* as its text."""
    path = folder / name
    path.write_text(script)
    path.chmod(mode)
    return str(path)


def call(
    path: str, *arguments: str, seconds: float = PATIENCE, **facts: object
) -> ToolCall:
    """Return a call of the program at *path*."""
    return ToolCall(tool="tool", argv=(path, *arguments), seconds=seconds, **facts)  # type: ignore[arg-type]


@pytest.fixture
def over_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Let the time of a tool be over once there is a file, and no moment earlier."""

    def over(sign: Path) -> None:
        begun = time.monotonic()

        def clock() -> float:
            # Its time is counted from the first call: that one may be late as well.
            return begun + (2 * PATIENCE if next(calls) and sign.exists() else 0)

        calls = count()
        monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=clock))

    return over


def is_gone(pid: int) -> bool:
    """Whether no process, or only a dead one, has *pid*; waits for the kernel a while."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return True
        if status.rpartition(")")[2].split()[0] in "ZX":
            return True
        os.sched_yield()
    return False


def test_both_streams_and_the_exit_code_come_back(tmp_path: Path) -> None:
    """What a tool says on each stream is told apart."""
    tool = a_tool(tmp_path, '#!/bin/sh\necho "out $1"\necho err >&2\nexit 9\n')
    result = run(call(tool, "one"))

    assert (result.stdout, result.stderr) == ("out one\n", "err\n")
    assert result.exit_code == 9
    assert not result.timed_out


def test_a_tool_that_hangs_is_killed_with_all_of_its_children(
    tmp_path: Path, over_once: Callable[[Path], None]
) -> None:
    """After its time the whole process group is gone, and the caller is free."""
    pids = tmp_path / "pids"
    tool = a_tool(
        tmp_path,
        "#!/bin/sh\nsleep 600 &\necho said before\n"
        f'echo "$$ $!" > {pids}.new\nmv {pids}.new {pids}\nwait\n',
    )
    over_once(pids)
    result = run(call(tool))

    assert result.timed_out
    assert result.exit_code is None
    assert result.stdout == "said before\n"
    assert all(is_gone(int(pid)) for pid in pids.read_text().split())


def test_a_child_that_keeps_the_pipe_open_does_not_keep_the_caller(
    tmp_path: Path,
) -> None:
    """The tool ended; what it left behind is killed, and its answer stands."""
    pids = tmp_path / "pids"
    tool = a_tool(
        tmp_path, f"#!/bin/sh\nsleep 600 &\necho $! > {pids}\necho done\nexit 0\n"
    )
    result = run(call(tool))

    assert not result.timed_out
    assert (result.stdout, result.exit_code) == ("done\n", 0)
    assert is_gone(int(pids.read_text()))


def test_endless_output_is_cut_and_the_tool_still_ends(tmp_path: Path) -> None:
    """What is too much is thrown away, so that neither side waits for the other."""
    tool = a_tool(tmp_path, "#!/bin/sh\nyes out | head -c 3000000\necho >&2 end\n")
    result = run(call(tool))

    assert len(result.stdout) == OUTPUT_LIMIT
    assert result.stderr == "end\n"
    assert result.exit_code == 0


def test_output_without_end_is_ended(
    tmp_path: Path, over_once: Callable[[Path], None]
) -> None:
    """A tool that prints for ever is stopped at its time, not at its output's end."""
    begun = tmp_path / "begun"
    over_once(begun)
    result = run(call(a_tool(tmp_path, f"#!/bin/sh\necho y\n: >{begun}\nexec yes\n")))

    assert result.timed_out
    assert 0 < len(result.stdout) <= OUTPUT_LIMIT


def test_what_was_said_in_time_is_heard_by_an_agent_that_was_held_up(
    tmp_path: Path, over_once: Callable[[Path], None]
) -> None:
    """The tool answered and ended; that nobody read it before is no fault of its own."""
    said = tmp_path / "said"
    over_once(said)
    tool = a_tool(tmp_path, f"#!/bin/sh\necho out\necho err >&2\n: >{said}\n")
    spawn = running._spawn

    def spawn_and_wait(path: str, call: ToolCall) -> object:
        process = spawn(path, call)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "_spawn", spawn_and_wait)
        result = run(call(tool, seconds=0.0))

    assert (result.timed_out, result.exit_code) == (False, 0)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    """No encoding of a tool's raises."""
    result = run(call(a_tool(tmp_path, "#!/bin/sh\nprintf '\\377\\000ok'\n")))

    assert result.stdout == "\ufffd\x00ok"


@pytest.mark.parametrize(
    ("name", "text", "mode", "fault"),
    [
        ("absent", None, 0, ToolFault.NOT_FOUND),
        ("garbage", "\x7fELF no program", 0o755, ToolFault.NOT_EXECUTABLE),
        ("orphan", "#!/no/such/interpreter\n", 0o755, ToolFault.NOT_FOUND),
    ],
)
def test_what_cannot_be_started_is_a_fact(
    tmp_path: Path, name: str, text: str | None, mode: int, fault: ToolFault
) -> None:
    """Absent and broken programs are told apart, and neither raises."""
    if text is not None:
        a_tool(tmp_path, text, name=name, mode=mode)
    result = run(call(str(tmp_path / name)))

    assert result.fault is fault
    assert result.exit_code in (126, 127)


def test_a_crash_keeps_its_signal(tmp_path: Path) -> None:
    """A tool that died of a signal has a negative exit code."""
    result = run(call(a_tool(tmp_path, "#!/bin/sh\nkill -SEGV $$\n")))

    assert result.exit_code == -11


def test_a_tool_sees_plain_language_and_every_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's own visibility variables and locale do not reach its tools."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-of-another-job")
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "void")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    tool = a_tool(
        tmp_path,
        '#!/bin/sh\necho "${CUDA_VISIBLE_DEVICES-none} '
        '${NVIDIA_VISIBLE_DEVICES-none} $LC_ALL $EXTRA"\n',
    )
    result = run(call(tool, environment={"EXTRA": "more"}))

    assert result.stdout == "none none C more\n"


def test_a_tool_is_found_in_its_usual_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that PATH does not hold is looked for where its vendor puts it."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    path = a_tool(tmp_path, "#!/bin/sh\necho found\n", name="vendor-tool")
    result = run(
        ToolCall(tool="vendor-tool", argv=("vendor-tool",), places=("/nowhere", path))
    )

    assert result.stdout == "found\n"


def test_a_file_that_cannot_be_run_hides_no_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next place is looked at; that it cannot be run is told where nothing else is."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    broken = a_tool(tmp_path, "#!/bin/sh\n", name="broken", mode=0o644)
    path = a_tool(tmp_path, "#!/bin/sh\necho found\n", name="vendor-tool")
    argv = ("vendor-tool",)

    found = run(ToolCall(tool="vendor-tool", argv=argv, places=(broken, path)))
    alone = run(ToolCall(tool="vendor-tool", argv=argv, places=("/nowhere", broken)))

    assert found.stdout == "found\n"
    assert alone.fault is ToolFault.NOT_EXECUTABLE
