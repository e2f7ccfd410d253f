"""Whoever writes a driver can use the published suite as the how-to shows it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


PAGE = Path(__file__).parents[2] / "docs/how-to/write-a-driver.md"


@pytest.mark.timeout(300)
def test_the_example_of_the_how_to_passes_the_published_suite(tmp_path: Path) -> None:
    """Outside of the project's tree, with nothing but what is installed."""
    [example] = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "test_plain_driver.py").write_text(example)

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:jupyter_server"),
            *("-p", "no:randomly", "-p", "no:cacheprovider", "--no-header"),
            *("-c", "/dev/null", "--rootdir", str(tmp_path), "test_plain_driver.py"),
        ],
        cwd=tmp_path,
        # What the example starts is not measured.
        env={k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"1[0-9] passed", done.stdout), done.stdout
    assert "4 skipped" in done.stdout
