"""kill -9 at each step of a copy on the receiving disk: whole, or not at all.

The next agent tidies up with what its ledger still wants, and the copy goes on.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import copying_crashes
import pytest
from copying_crashes import FILES, GIVEN_UP, KEY, USED, a_folder, arrive

from fleet_agent.copying import places


@pytest.fixture(scope="module")
def crashes(
    tmp_path_factory: pytest.TempPathFactory,
) -> list[tuple[Path, frozenset[str]]]:
    """The notebooks' folder at each kill, with what had been done by then."""
    root = tmp_path_factory.mktemp("copies")
    ran = subprocess.run(
        [sys.executable, copying_crashes.__file__, str(root)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = ran.stdout.splitlines()
    return [
        (root / str(number) / "notebooks", frozenset(line.split()))
        for number, line in enumerate(lines, 1)
    ]


def shown(base: Path) -> dict[str, list[str]]:
    """Return what a user sees in each folder."""
    folders = [path for path in base.glob("[!.]*") if path.is_dir()]
    return {path.name: sorted(file.name for file in path.iterdir()) for path in folders}


def hidden(base: Path) -> list[str]:
    """Return what is left of copies."""
    return [path.name for path in base.glob(".arriv*/*")]


@pytest.mark.parametrize("wanted", [frozenset[str](), frozenset({USED, GIVEN_UP})])
def test_a_copy_that_is_killed_anywhere_is_whole_or_is_not(
    crashes: list[tuple[Path, frozenset[str]]],
    tmp_path: Path,
    wanted: frozenset[str],
) -> None:
    """Nothing half is shown or left, and what a user had is not touched."""
    assert len(crashes) > 30
    assert crashes[-1][1] == {"used", "changed", "given-up"}
    for number, (killed, done) in enumerate(crashes):
        base = tmp_path / str(number)
        base.mkdir()
        if killed.exists():
            subprocess.run(["cp", "-a", f"{killed}/.", base], check=True)
        assert all(files == sorted(FILES) for files in shown(base).values()), number
        places.tidy(base, held=wanted)
        if "used" in done:
            assert USED in shown(base), number
        if not wanted:
            assert hidden(base) == [], number
        for name in (USED, GIVEN_UP):
            folder = a_folder(base, name)
            arrive(folder, KEY)
            assert shown(base)[name] == sorted(FILES), number
            places.hand_over(folder)
        told = (base / USED / FILES[0]).read_text()
        assert told == "the user's own" or "changed" not in done, number
        assert hidden(base) == [], number
        for name in (USED, GIVEN_UP):
            places.discard(a_folder(base, name))
        assert shown(base).keys() == {USED, GIVEN_UP}, number
