"""What is a half of a copy, what is one that nobody used, and what is the user's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fleet_agent.copying import places
from fleet_agent.drivers.base import NotebookFolder
from fleet_agent.ledger_entry import Key


FIRST, SECOND = Key("a", 1), Key("a", 2)


@pytest.fixture
def folder(tmp_path: Path) -> NotebookFolder:
    """Return where a copy is to come."""
    base = tmp_path / "notebooks"
    return NotebookFolder(base=base, name="ada-1", uid=os.geteuid(), gid=os.getegid())


def arrive(folder: NotebookFolder, key: Key = FIRST) -> None:
    """Let a whole copy come for *key*."""
    path = places.begin(folder)
    path.mkdir()
    (path / "work").write_text("copied")
    places.commit(folder, key)


def left(folder: NotebookFolder) -> list[str]:
    """Return everything that is there, hidden places included."""
    base = folder.base
    return sorted(str(path.relative_to(base)) for path in base.rglob("*/*"))


def test_a_half_is_never_shown_and_the_next_try_begins_anew(
    folder: NotebookFolder,
) -> None:
    """Whatever an earlier try had made."""
    places.begin(folder).mkdir()
    assert not folder.path.exists()
    assert not places.is_complete(folder, FIRST)
    assert not places.begin(folder).exists()


def test_a_whole_copy_counts_for_its_own_allocation_only(
    folder: NotebookFolder,
) -> None:
    """A repeated launch has nothing to do; a later epoch takes what is true by then."""
    arrive(folder)
    assert places.is_complete(folder, FIRST)
    assert (folder.path / "work").read_text() == "copied"
    assert not places.is_complete(folder, SECOND)
    assert not folder.path.exists()
    assert left(folder) == []


def test_what_a_server_has_used_is_never_removed(folder: NotebookFolder) -> None:
    """By no end, no later copy, and no agent that tidies up."""
    arrive(folder)
    places.hand_over(folder)
    places.hand_over(folder)
    places.discard(folder)
    places.tidy(folder.base, held=())
    assert places.is_complete(folder, SECOND)
    assert (folder.path / "work").read_text() == "copied"


def test_a_copy_that_no_server_has_used_goes_with_its_start(
    folder: NotebookFolder,
) -> None:
    """All of it; twice is once."""
    arrive(folder)
    places.discard(folder)
    places.discard(folder)
    assert not folder.path.exists()
    assert left(folder) == []


def test_the_next_agent_keeps_what_is_wanted_and_removes_the_rest(
    folder: NotebookFolder,
) -> None:
    """Halves always; whole ones where nothing in the ledger begins with them."""
    arrive(folder)
    other = NotebookFolder(base=folder.base, name="bob-2", uid=0, gid=0)
    arrive(other)
    places.begin(folder).mkdir()
    own = folder.base / "cy-3"
    own.mkdir()
    places.tidy(folder.base, held={"ada-1"})
    assert folder.path.exists()
    assert not other.path.exists()
    assert own.exists()
    assert left(folder) == [".arrived/ada-1", "ada-1/work"]


@pytest.mark.parametrize("broken", ["", "{", '["a"]'])
def test_a_mark_that_cannot_be_read_is_no_reason_to_keep_a_copy(
    folder: NotebookFolder, broken: str
) -> None:
    """A machine that lost its power while it was written."""
    arrive(folder)
    (folder.base / ".arrived" / folder.name).write_text(broken)
    assert not places.is_complete(folder, FIRST)
    assert not folder.path.exists()


def test_a_kill_between_mark_and_folder_leaves_nothing(folder: NotebookFolder) -> None:
    """A mark alone stands for nothing."""
    arrive(folder)
    folder.path.rename(places.begin(folder))
    places.tidy(folder.base, held=())
    assert left(folder) == []


def test_nothing_to_tidy_is_fine(tmp_path: Path) -> None:
    """A machine that never copied."""
    places.tidy(tmp_path / "none", held=())
    assert list(tmp_path.iterdir()) == []
