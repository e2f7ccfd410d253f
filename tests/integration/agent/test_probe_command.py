"""``fleet-agent probe`` shows, records and replays what this computer can do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from probe_cases import CASES, ProbeCase, all_cases, differences
from probe_machines import FIELDS_ROW


pytestmark = pytest.mark.timeout(300)

NVIDIA_SMI = f"""#!/bin/sh
case "$1" in
--query-gpu=*) printf '%s' '{FIELDS_ROW}' ;;
*) exit 2 ;;
esac
"""


def probe(
    *arguments: str, path: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command, with the tools in *path* before the machine's own."""
    search = f"{path}{os.pathsep}{os.environ['PATH']}" if path else os.environ["PATH"]
    return subprocess.run(
        [sys.executable, "-m", "fleet_agent.cli", "probe", *arguments],
        env=os.environ | {"PATH": search} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def document(*arguments: str, path: Path | None = None, **environment: str) -> Any:
    """Return the JSON that the command prints."""
    done = probe(*arguments, path=path, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder of tools with an nvidia-smi of one healthy card."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "nvidia-smi").write_text(NVIDIA_SMI)
    (folder / "nvidia-smi").chmod(0o755)
    return folder


def test_a_person_reads_the_whole_picture(tools: Path) -> None:
    """Each section is there, and every unknown has its reason in the notes."""
    done = probe(path=tools)

    assert done.returncode == 0
    for words in (
        "This computer",
        "NVIDIA H100 80GB HBM3, memory 81559 MiB, compute capability 9.0",
        "usable",
        "Ways to run workloads",
        "amd: its tool is not installed, so its devices are unknown",
    ):
        assert words in done.stdout


def test_the_json_holds_the_answer_and_the_picture(tools: Path) -> None:
    """Programs find status, devices and the whole picture under stable names."""
    shown = document("--json", path=tools)

    assert (shown["status"], shown["reason"]) == ("ok", "ok")
    assert shown["devices_complete"] is True
    assert shown["devices"][0]["execution_supported"] is True
    assert shown["capabilities"]["accelerators"] == shown["devices"]
    assert shown["capabilities"]["settled"] is True
    assert shown["capabilities"]["host"]["cores_allowed_milli"]["value"] > 0


def test_the_agents_own_visibility_variables_hide_nothing(tools: Path) -> None:
    """Whoever starts the command inside a GPU job still sees the machine."""
    (tools / "nvidia-smi").write_text(
        '#!/bin/sh\n[ -z "${CUDA_VISIBLE_DEVICES+set}" ] || exit 9\n'
        f"printf '%s' '{FIELDS_ROW}'\n"
    )
    shown = document(
        "--json", path=tools, CUDA_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES="-1"
    )

    assert len(shown["devices"]) == 1


def test_a_recording_replays_to_the_same_answer(tools: Path, tmp_path: Path) -> None:
    """Recorded here and interpreted from the files alone: the same devices and facts."""
    folder = tmp_path / "recording"
    live = document("--json", "--record", str(folder), path=tools)
    replayed = document("--replay", str(folder))

    assert replayed["devices"][0]["name"] == live["devices"][0]["name"]
    for field in ("status", "reason", "devices_complete", "warnings"):
        assert replayed[field] == live[field]
    for field in ("sandboxes", "drivers", "container_engines", "probes"):
        mine, theirs = (
            [
                {key: value for key, value in item.items() if key != "observed"}
                for item in shown["capabilities"][field]
            ]
            for shown in (live, replayed)
        )
        assert mine == theirs, field


def test_a_recording_names_nobody(tools: Path, tmp_path: Path) -> None:
    """The home folder's owner and the machine's identities are not in any file."""
    (tools / "nvidia-smi").write_text(
        "#!/bin/sh\necho '0, GPU-5f2c3a11-9d3e-4c1b-8a77-0123456789ab, "
        "/home/annika/secret, owner annika'\n"
    )
    folder = tmp_path / "recording"
    done = probe(
        "--record", str(folder), path=tools, HOME="/home/annika", LOGNAME="annika"
    )
    kept = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())

    assert done.returncode == 0
    assert "annika" not in kept
    assert "5f2c3a11" not in kept
    assert "GPU-00000000-0000-0000-0000-000000000001" in kept
    assert f"{len(list(folder.glob('*/meta.json')))} answers" in done.stderr


def test_a_folder_of_cases_is_answered_case_by_case() -> None:
    """Every recorded case is judged by the command as by the library."""
    shown = document("--replay", str(CASES))
    cases: tuple[ProbeCase, ...] = all_cases()

    assert set(shown) == {case.name for case in cases}
    wrong = {case.name: differences(shown[case.name], case) for case in cases}
    assert {
        name: found
        for name, found in wrong.items()
        if found and not all(item.startswith("reason: 'ok'") for item in found)
    } == {}


def test_one_case_is_answered_alone() -> None:
    """The answer has the fields of the collection's own expectations."""
    shown = document("--replay", str(CASES / "torch-sm120-no-kernel"))

    assert shown["status"] == "ok_with_warnings"
    assert shown["torch"]["cuda_available"] is True
    assert shown["torch"]["cuda"] is False


@pytest.mark.parametrize("what", ["missing", "empty", "broken"])
def test_what_is_no_recording_is_refused_with_a_reason(
    tmp_path: Path, what: str
) -> None:
    """A wrong folder ends with status 2 and one line, not with a traceback."""
    folder = tmp_path / what
    if what != "missing":
        folder.mkdir()
    if what == "broken":
        (folder / "meta.json").write_text("{")
    done = probe("--replay", str(folder))

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("fleet-agent probe: ")
    assert "Traceback" not in done.stderr


def test_a_hanging_tool_does_not_hold_the_others_up(tools: Path) -> None:
    """A launcher that never answers costs its own facts, and is killed."""
    (tools / "mpirun").write_text("#!/bin/sh\nexec sleep 600\n")
    (tools / "mpirun").chmod(0o755)
    shown = document("--json", path=tools)

    found = shown["capabilities"]["launchers"]
    # The system may have launchers of its own.
    [launcher] = [each for each in found if each["name"] == "mpirun"]
    assert (launcher["usable"], launcher["reason"]) == (None, "tool_timeout")
    assert len(shown["devices"]) == 1
