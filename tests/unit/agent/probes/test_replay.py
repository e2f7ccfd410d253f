"""A recording is judged elsewhere exactly as it was on its machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from probe_machines import (
    FIELDS_ROW,
    NOON,
    PretendMachine,
    a_pretend_machine,
    settings_for,
)

from fleet_agent.probes.detect import detect
from fleet_agent.probes.documents import picture_document
from fleet_agent.probes.record import Recorder
from fleet_agent.probes.replay import (
    CaseError,
    is_recording,
    load_case,
    load_settings,
)
from fleet_agent.probes.settings import Environment
from fleet_agent.probes.tools import ToolCall
from fleet_contracts.workloads import DriverName


PYTORCH = Environment(ref="pytorch", interpreter="/env/bin/python")


def a_busy_machine() -> PretendMachine:
    """Return a machine that is asked the same tool with different questions."""
    return a_pretend_machine(
        nvidia_smi=FIELDS_ROW,
        mpirun="mpirun (Open MPI) 4.1.4\n",
        docker='{"ServerVersion": "27.3.1"}',
        package_readings=json.dumps(
            {
                "found": True,
                "metadata": ["torch-2.5.1.dist-info"],
                "torch_version_py": "",
            }
        ),
        launcher_readings='{"found": ["torchrun"]}',
        torch_probe='##PROBE##{"stage": "started"}\n',
    )


@pytest.mark.asyncio
async def test_a_replayed_recording_gives_the_same_document(tmp_path: Path) -> None:
    """Every fact, note and time is that of the live probe."""
    recorder = Recorder(ask=a_busy_machine())
    settings = settings_for(
        recorder,  # type: ignore[arg-type]
        environments=(PYTORCH,),
        drivers=(DriverName.NATIVE, DriverName.DOCKER),
    )
    live = picture_document(await detect(settings))
    recorder.write(tmp_path, settings=settings, context={"os": "linux"}, visibility={})

    assert is_recording(tmp_path)
    replayed = picture_document(await detect(load_settings(tmp_path)))
    assert replayed == live
    assert replayed["capabilities"]["launchers"]


@pytest.mark.asyncio
async def test_each_recorded_answer_is_a_case_of_its_own(tmp_path: Path) -> None:
    """A case holds argv, exit code, both streams and what else decides."""
    recorder = Recorder(ask=a_busy_machine())
    settings = settings_for(recorder, environments=(PYTORCH,))  # type: ignore[arg-type]
    await detect(settings)
    recorder.write(
        tmp_path,
        settings=settings,
        context={"os": "linux"},
        visibility={"CUDA_VISIBLE_DEVICES": "0"},
    )
    case = load_case(_named(tmp_path, "nvidia-smi"))

    assert case.argv[0] == "nvidia-smi"
    assert case.exit_code == 0
    assert case.stdout == FIELDS_ROW
    assert case.context == {"os": "linux"}
    assert case.env == {"CUDA_VISIBLE_DEVICES": "0"}
    assert load_case(_named(tmp_path, "torch-probe")).argv == (
        "python",
        "-I",
        "-W",
        "ignore",
        "<torch probe>",
    )


def _named(folder: Path, tool: str) -> Path:
    return next(path for path in folder.iterdir() if path.name.endswith(tool))


def test_an_absent_tool_is_absent_in_its_recording(tmp_path: Path) -> None:
    """Not installed is recorded as a shell would say it."""
    recorder = Recorder(ask=a_pretend_machine())
    settings = settings_for(recorder)  # type: ignore[arg-type]
    from_machine = recorder(_call())
    recorder.write(tmp_path, settings=settings, context={}, visibility={})

    assert from_machine.exit_code == 127
    assert load_case(tmp_path / "01-nvidia-smi").exit_code == 127


def _call() -> ToolCall:

    return ToolCall(tool="nvidia-smi", argv=("nvidia-smi", "-L"))


@pytest.mark.parametrize(
    "meta", ["", "[]", "{", '{"tool": 7}', '{"argv": ["nvidia-smi"]}', "null"]
)
def test_a_folder_without_a_tool_is_no_case(tmp_path: Path, meta: str) -> None:
    """A wrong file is refused with its path, not judged."""
    (tmp_path / "meta.json").write_text(meta)

    with pytest.raises(CaseError, match=r"meta\.json"):
        load_case(tmp_path)


@pytest.mark.parametrize(
    "facts",
    [
        {"argv": None},
        {"exit_code": "0"},
        {"exit_code": None, "timed_out": True},
        {"env": ["x"]},
        {"context": "linux"},
        {"argv": [1, 2]},
    ],
)
def test_what_a_case_leaves_open_is_unknown(
    tmp_path: Path, facts: dict[str, Any]
) -> None:
    """A field of another form is as good as absent; missing streams are empty."""
    (tmp_path / "meta.json").write_text(json.dumps({"tool": "nvidia-smi"} | facts))
    case = load_case(tmp_path)

    assert case.stdout == case.stderr == ""
    assert case.exit_code is None


def test_bytes_that_are_no_text_are_read_all_the_same(tmp_path: Path) -> None:
    """A tool may print anything; what is not UTF-8 is replaced."""
    (tmp_path / "meta.json").write_text('{"tool": "nvidia-smi", "exit_code": 0}')
    (tmp_path / "stdout.txt").write_bytes(b"\xff\xfe\x00GPU\x80")

    assert "GPU" in load_case(tmp_path).stdout


def test_another_schema_is_refused(tmp_path: Path) -> None:
    """A recording of a newer version is not guessed at."""
    (tmp_path / "recording.json").write_text(
        json.dumps({"schema": "another/v9", "recorded_at": NOON.isoformat()})
    )

    with pytest.raises(CaseError, match="not of the form"):
        load_settings(tmp_path)
