"""The manifest notices everything that can happen to a tree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fleet_agent.drivers.native.environments import manifest
from fleet_agent.drivers.native.environments.wheel import record_hash


def a_tree(base: Path) -> Path:
    """Return a small tree with a file, a folder and a link."""
    tree = base / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "python").symlink_to("/usr/bin/python3")
    (tree / "module.py").write_text("value = 1\n")
    return tree


CHANGES: dict[str, Callable[[Path], object]] = {
    "a changed byte": lambda tree: (tree / "module.py").write_text("value = 2\n"),
    "a longer file": lambda tree: (tree / "module.py").write_text("value = 100\n"),
    "a missing file": lambda tree: (tree / "module.py").unlink(),
    "an added file": lambda tree: (tree / "extra.pth").write_text("import os\n"),
    "an added folder": lambda tree: (tree / "lib").mkdir(),
    "another mode": lambda tree: (tree / "module.py").chmod(0o777),
    "a redirected link": lambda tree: (
        (tree / "bin" / "python").unlink(),
        (tree / "bin" / "python").symlink_to("/bin/sh"),
    ),
    "a file replaced by a link": lambda tree: (
        (tree / "module.py").unlink(),
        (tree / "module.py").symlink_to("/etc/passwd"),
    ),
    "a missing tree": lambda tree: tree.rename(tree.parent / "away"),
}


def test_an_untouched_tree_is_as_its_manifest_says(tmp_path: Path) -> None:
    """Nothing differs, and the files were counted."""
    tree = a_tree(tmp_path)
    manifest.write(tmp_path / "manifest.json", manifest.take(tree))
    counted: list[tuple[int, int]] = []

    def count(done: int, total: int) -> None:
        counted.append((done, total))

    assert manifest.compare(tree, tmp_path / "manifest.json", count) is None
    assert counted[-1] == (3, 3)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_is_noticed(tmp_path: Path, change: Callable[[Path], object]) -> None:
    """Contents, modes, links, additions and losses all differ."""
    tree = a_tree(tmp_path)
    manifest.write(tmp_path / "manifest.json", manifest.take(tree))

    change(tree)

    assert manifest.compare(tree, tmp_path / "manifest.json") is not None


def test_the_first_difference_is_named_for_what_it_is(tmp_path: Path) -> None:
    """What was added, is missing or was changed is told apart, in the tree's order."""
    tree = a_tree(tmp_path)
    (tree / "bin-2").mkdir()
    manifest.write(tmp_path / "manifest.json", manifest.take(tree))

    def told() -> tuple[str, str]:
        difference = manifest.compare(tree, tmp_path / "manifest.json")
        assert difference is not None
        return difference.path, difference.what

    (tree / "bin" / "pip").touch()
    assert told() == ("bin/pip", "was added")
    (tree / "bin" / "pip").unlink()
    (tree / "bin" / "python").unlink()
    assert told() == ("bin/python", "is missing")
    (tree / "bin" / "python").symlink_to("/bin/sh")
    assert told() == ("bin/python", "was changed")


def test_a_manifest_without_its_last_lines_vouches_for_nothing(tmp_path: Path) -> None:
    """Not even for a tree that lost the same files."""
    tree = a_tree(tmp_path)
    manifest.write(tmp_path / "manifest.json", manifest.take(tree))
    *kept, _ = (tmp_path / "manifest.json").read_text().splitlines(keepends=True)
    (tmp_path / "manifest.json").write_text("".join(kept))
    (tree / "module.py").unlink()

    assert manifest.compare(tree, tmp_path / "manifest.json") is not None


@pytest.mark.parametrize("content", ["", "{", "[]", "0", "3\n[", "3\n1\n"])
def test_a_half_written_manifest_vouches_for_nothing(
    tmp_path: Path, content: str
) -> None:
    """An environment whose manifest is broken is broken."""
    tree = a_tree(tmp_path)
    (tmp_path / "manifest.json").write_text(content)

    assert manifest.compare(tree, tmp_path / "manifest.json") is not None


def test_a_file_that_differs_from_its_wheel_is_noticed(tmp_path: Path) -> None:
    """The RECORDs tie a fresh installation to the hashes of the lock."""
    tree = a_tree(tmp_path)
    info = tree / "thing-1.dist-info"
    info.mkdir()
    checksum = record_hash((tree / "module.py").read_bytes())
    (info / "RECORD").write_text(
        f"module.py,sha256={checksum},10\nthing-1.dist-info/RECORD,,\n"
    )
    vendored = tree / "thing" / "other-1.dist-info"
    vendored.mkdir(parents=True)
    (vendored / "RECORD").write_text("patched.py,sha256=AAAA,1\n")
    assert manifest.check_records(manifest.take(tree), tree) is None

    (tree / "module.py").write_text("value = 3\n")
    changed = manifest.check_records(manifest.take(tree), tree)
    (tree / "module.py").unlink()
    missing = manifest.check_records(manifest.take(tree), tree)

    assert changed is not None
    assert changed.path == "module.py"
    assert missing is not None
