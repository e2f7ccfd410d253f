"""A catalog is read once it is whole, and the last good one outlives a restart."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from edited_catalogs import GOOD, edit, looked
from typing_extensions import override

from fleet_contracts.catalog_file import CatalogError
from fleet_hub.service.catalogs import FileCatalog, Look, Stamp, refresh
from fleet_hub.service.kept_catalog import CatalogKeeper


def test_what_is_still_being_written_is_not_read(tmp_path: Path) -> None:
    """The first half of a catalog may be a catalog: without its quotas, say."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)
    catalogs = FileCatalog(file)
    quotas = "quotas:\n- {user: '*', devices: 1}\n"
    halves = ("", GOOD.replace("cpu: 1", "cpu: 2"), GOOD + quotas)
    for half in halves:
        edit(file, half)
        assert catalogs.look() is None
    found = catalogs.look()
    assert found is not None
    edit(file, GOOD)
    assert catalogs.take(found)
    assert catalogs.current().quotas
    assert looked(catalogs)
    assert not catalogs.current().quotas


def test_what_is_written_to_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    """The reading takes seconds, and what it found may be half of each."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)

    class Touched(FileCatalog):
        @override
        def _load(self, stamp: Stamp) -> Look:
            found = super()._load(stamp)
            if not written:
                edit(file, GOOD.replace("cpu: 1", "cpu: 3"))
                written.append(True)
            return found

    written: list[bool] = []
    catalogs = Touched(file)
    edit(file, GOOD.replace("cpu: 1", "cpu: 2"))
    assert [catalogs.look() for _ in range(2)] == [None, None]
    assert written
    assert catalogs.take(catalogs.look())
    assert catalogs.current().classes[0].cpu_milli == 3000


def kept_in(folder: Path, file: Path) -> FileCatalog:
    """Return the catalog in *file* as another process reads it that keeps it."""
    return FileCatalog(file, keeper=CatalogKeeper(file=folder / "kept.json"))


def test_a_bad_edit_changes_nothing_after_a_restart_either(tmp_path: Path) -> None:
    """The earlier catalog is in force, since when it was, and the faults are told."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)
    first = kept_in(tmp_path, file)
    edit(file, GOOD.replace("cpu: 1", "cpu: 2"))
    assert looked(first)
    edit(file, GOOD.replace("cpu: 1", "cpu: -1"))
    assert not looked(first)
    again = kept_in(tmp_path, file)
    assert again.current() == first.current()
    assert again.current().digest == first.current().digest
    assert again.status().loaded_at == first.status().loaded_at
    assert again.status().faults == first.status().faults
    assert again.look() is None
    edit(file, GOOD.replace("cpu: 1", "cpu: 4"))
    assert looked(again)
    assert kept_in(tmp_path, file).current().classes[0].cpu_milli == 4000
    # It has every ref.
    assert (tmp_path / "kept.json").stat().st_mode & 0o777 == 0o600


def test_what_is_being_written_while_the_controller_starts_is_not_read_either(
    tmp_path: Path,
) -> None:
    """Whoever waits for a profile of the second half would be refused for ever."""
    file = tmp_path / "catalog.yaml"
    quotas = "quotas:\n- {user: '*', devices: 1}\n"
    file.write_text(GOOD + quotas)
    first = kept_in(tmp_path, file)
    edit(file, GOOD)
    again = kept_in(tmp_path, file)
    assert again.current().quotas
    assert again.status().loaded_at == first.status().loaded_at
    edit(file, GOOD.replace("cpu: 1", "cpu: 2") + quotas)
    assert looked(again)
    assert again.current().quotas
    assert again.current().classes[0].cpu_milli == 2000
    (reload,) = again.status().reloads
    assert len(reload.edits) == 1, "and the edit is told, though nobody was there"


def test_an_edit_from_before_the_start_is_in_force_before_anybody_is_served(
    tmp_path: Path,
) -> None:
    """After a second in which it stayed as it is; without an edit nothing is waited for."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)
    kept_in(tmp_path, file).settle(lambda _: pytest.fail("there is no edit"))
    halves = [GOOD, GOOD.replace("cpu: 1", "cpu: 2")]
    edit(file, GOOD.replace("cpu: 1", "cpu: 3"))
    again = kept_in(tmp_path, file)
    assert again.current().classes[0].cpu_milli == 1000
    pauses: list[float] = []

    def goes_on_writing(seconds: float) -> None:
        pauses.append(seconds)
        if halves:
            edit(file, halves.pop(0))

    again.settle(goes_on_writing)
    assert again.current().classes[0].cpu_milli == 2000
    assert pauses == [1.0] * 3


def test_who_goes_on_writing_does_not_keep_a_controller_from_starting(
    tmp_path: Path,
) -> None:
    """The earlier catalog is in force meanwhile; nor does a bad edit keep it."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)
    kept_in(tmp_path, file)
    edit(file, GOOD.replace("cpu: 1", "cpu: 3"))
    again = kept_in(tmp_path, file)
    pauses: list[float] = []

    def writes(seconds: float) -> None:
        pauses.append(seconds)
        edit(file, GOOD.replace("cpu: 1", f"cpu: {len(pauses) + 3}"))

    again.settle(writes)
    assert len(pauses) == 5
    assert again.current().classes[0].cpu_milli == 1000
    edit(file, "classes: [")
    kept_in(tmp_path, file).settle(lambda _: pytest.fail("it was read, and is bad"))


def test_a_file_that_was_only_touched_or_replaced_is_in_force_at_once(
    tmp_path: Path,
) -> None:
    """What it says is what counts, and nothing is told of it."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)
    kept_in(tmp_path, file)
    edit(file, GOOD)
    again = kept_in(tmp_path, file)
    edit(file, f"{GOOD}\n")
    assert not looked(again)
    assert again.status().reloads == ()
    assert kept_in(tmp_path, file).look() is None


@pytest.mark.parametrize("kept", [None, "", "{}", "elsewhere"])
def test_a_catalog_that_was_never_in_order_is_refused_at_the_start(
    tmp_path: Path, kept: str | None
) -> None:
    """What was in force of another file, or cannot be read, is no earlier version."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)
    if kept == "elsewhere":
        kept_in(tmp_path, file)
        file = file.rename(tmp_path / "other.yaml")
    elif kept is not None:
        (tmp_path / "kept.json").write_text(kept)
    edit(file, "profiles: [")
    with pytest.raises(CatalogError):
        kept_in(tmp_path, file)


def test_a_catalog_that_cannot_be_kept_is_in_force_all_the_same(tmp_path: Path) -> None:
    """A full disk of the controller's own ends nothing."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)
    catalogs = kept_in(tmp_path / "no-such-folder", file)
    edit(file, GOOD.replace("cpu: 1", "cpu: 2"))
    assert looked(catalogs)


@pytest.mark.asyncio
async def test_a_large_catalog_is_read_beside_the_event_loop(tmp_path: Path) -> None:
    """Placement goes on meanwhile; what was found is used in the loop."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)
    loop, reader = threading.get_ident(), 0

    class Slow(FileCatalog):
        @override
        def look(self) -> Look | None:
            nonlocal reader
            reader = threading.get_ident()
            return super().look()

        @override
        def take(self, found: Look | None) -> bool:
            assert threading.get_ident() == loop
            return super().take(found)

    catalogs = Slow(file)
    edit(file, GOOD.replace("cpu: 1", "cpu: 2"))
    assert not await refresh(catalogs)
    assert await refresh(catalogs)
    assert reader != loop
    assert catalogs.current().classes[0].cpu_milli == 2000
