"""A stand-in for ``sandbox-exec`` that keeps a program from the GPU, or fails to.

It runs the child as ``FakeSandboxExec`` does.  A child that looks for the GPU meets the
frameworks of ``pretended_gpu``: by default it reaches the GPU if its profile allows
that, read by the parser of the profile language.
"""

from __future__ import annotations

import json
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pretended_gpu
from fake_sandbox_exec import FakeSandboxExec
from typing_extensions import override


_MEETS = """\
sys.path.insert(0, {support!r})
from seatbelt_language import Profile
if "inside.fence" in child[-1]:
    witness = "torch" if "import torch" in child[-1] else "metal"
    rules = Profile(text)
    allowed = rules.allows("iokit-open", name="AGXDeviceUserClient")
    with open({behaviour!r}) as file:
        told = json.load(file)
    meets = told.get(f"{{witness}} {{'open' if allowed else 'fenced'}}")
    meets = meets or ("reached" if allowed else "nothing")
    child[-1] = (
        f"import sys; sys.path.insert(0, {support!r}); import pretended_gpu; "
        f"pretended_gpu.put_in_place({{meets!r}}); " + child[-1]
    )
"""


@dataclass(frozen=True)
class FakeMacKernel(FakeSandboxExec):
    """The program, the runs that it kept, and how its machine behaves."""

    @override
    @classmethod
    def make(cls, base: Path, *, more: str = "") -> Self:
        meets = _MEETS.format(
            support=str(Path(__file__).parent),
            behaviour=str(base / "behaviour.json"),
        )
        made = super().make(base, more=meets + more)
        made.behave({})
        return made

    def behave(self, told: dict[str, str]) -> None:
        """Let a witness meet something else: ``{"metal fenced": "reached"}``."""
        path = self.program.parent / "behaviour.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(told))
        part.replace(path)

    def looks(self) -> list[dict[str, object]]:
        """Return the runs that looked for the GPU, the oldest first."""
        return [run for run in self.runs() if "inside.fence" in run["argv"][-1]]


def a_python_with_torch(folder: Path, text: str = pretended_gpu.TORCH) -> Path:
    """Return the Python of an environment whose torch is *text*."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "torch").mkdir()
    support = str(Path(__file__).parent)
    (packages / "torch/__init__.py").write_text(
        text.replace("{support!r}", repr(support))
    )
    return folder / "bin/python"
