"""What is shown to containers shortens a known server's start, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fleet_agent.drivers.docker import inside
from fleet_agent.drivers.native.inside import trimming


PROGRAM = """
import os, sys
print(os.environ.get("PYTHONPATH"), "jupyterhub.singleuser.extension" in sys.modules,
      "jupyterhub.orm" in sys.modules, hasattr(sys, "of_the_image"))
"""


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    """The folder as a container sees it."""
    folder = tmp_path / "boot"
    folder.mkdir()
    first = Path(inside.__file__).with_name("sitecustomize.py")
    shutil.copy(first, folder / "sitecustomize.py")
    shutil.copy(trimming.__file__, folder / "fleet_trimming.py")
    return folder


def run(boot: Path, name: str, python_path: str = "") -> tuple[list[str], str]:
    """Return what a program called *name* finds, and what was complained about."""
    program = boot.parent / name
    program.write_text(PROGRAM)
    paths = [str(boot), *([python_path] if python_path else [])]
    done = subprocess.run(
        [sys.executable, str(program)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split(), done.stderr


def test_a_known_server_has_what_it_needs_and_not_the_hubs_database(
    boot: Path,
) -> None:
    """Its children find PYTHONPATH as if nothing had been done."""
    found, complaint = run(boot, "jupyterhub-singleuser", "/image")

    assert found == ["/image", "True", "False", "False"]
    assert complaint == ""


def test_any_other_program_is_left_alone(boot: Path) -> None:
    """Nothing is imported for it; what it starts may be a server yet."""
    found, _ = run(boot, "anything")

    assert found == [str(boot), "False", "False", "False"]


def test_the_images_own_module_of_this_name_runs_as_well(
    boot: Path, tmp_path: Path
) -> None:
    """It would be hidden otherwise."""
    image = tmp_path / "image"
    image.mkdir()
    (image / "sitecustomize.py").write_text("import sys; sys.of_the_image = True")

    found, _ = run(boot, "jupyterhub-singleuser", str(image))

    assert found[-1] == "True"


def test_imports_that_go_wrong_leave_a_server_that_starts_slowly(boot: Path) -> None:
    """The log says so; the notebook comes all the same."""
    (boot / "fleet_trimming.py").write_text("raise RuntimeError('broken')")

    found, complaint = run(boot, "jupyterhub-singleuser")

    assert found == ["None", "False", "False", "False"]
    assert "no quick start: RuntimeError: broken" in complaint


def test_a_version_that_was_not_tried_starts_as_anywhere(boot: Path) -> None:
    """Its imports may need what is left out."""
    first = boot / "sitecustomize.py"
    first.write_text(first.read_text().replace('_KNOWN = "6.1."', '_KNOWN = "5.0."'))

    found, complaint = run(boot, "jupyterhub-singleuser")

    assert found[1] == "False"
    assert complaint == ""
