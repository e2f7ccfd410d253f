"""The place of a user's own packages shows the kernel as the environment does."""

from __future__ import annotations

import json
from pathlib import Path

from fleet_agent.drivers.native.inside import overlay


KERNEL = Path("share/jupyter/kernels/python3")


def an_environment(folder: Path) -> Path:
    """Return a folder with a kernel's pictures, as ipykernel installs them."""
    kernel = folder / KERNEL
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text("{}")
    (kernel / "logo-64x64.png").write_bytes(b"\x89PNG")
    (kernel / "logo-svg.svg").write_text("<svg/>")
    return folder


def test_the_launcher_finds_the_kernel_s_pictures(tmp_path: Path) -> None:
    """They are beside the description that hides the environment's own kernel."""
    environment = an_environment(tmp_path / "environment")

    made = overlay.make(tmp_path / "home", environment)

    kernel = made / KERNEL
    assert (kernel / "logo-64x64.png").read_bytes() == b"\x89PNG"
    assert (kernel / "logo-svg.svg").read_text() == "<svg/>"
    assert json.loads((kernel / "kernel.json").read_text())["argv"][0].startswith(
        str(made)
    )


def test_making_it_again_follows_the_environment(tmp_path: Path) -> None:
    """A newer environment's pictures replace the old ones."""
    environment = an_environment(tmp_path / "environment")
    overlay.make(tmp_path / "home", environment)
    (environment / KERNEL / "logo-svg.svg").write_text("<svg>new</svg>")

    made = overlay.make(tmp_path / "home", environment)

    assert (made / KERNEL / "logo-svg.svg").read_text() == "<svg>new</svg>"
