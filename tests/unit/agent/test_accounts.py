"""Owners keep their uid, and share it with nobody."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.common.accounts import (
    Identities,
    OutOfUidsError,
    UidRange,
)
from fleet_agent.drivers.common.folders import NotebookFolders
from fleet_contracts.reasons import Reason


def test_an_owner_keeps_the_uid_over_restarts_and_renames(tmp_path: Path) -> None:
    """It goes by the Hub's number of the user."""
    first = Identities(tmp_path / "uids.json", UidRange()).account(1, "anna")
    Identities(tmp_path / "uids.json", UidRange()).account(2, "bert")
    again = Identities(tmp_path / "uids.json", UidRange()).account(1, "annabel")

    assert again.uid == again.gid == first.uid


def test_two_owners_never_share_a_uid(tmp_path: Path) -> None:
    """Not even when their names look alike inside."""
    identities = Identities(tmp_path / "uids.json", UidRange())
    accounts = [identities.account(number, "Ann a") for number in range(20)]

    assert len({account.uid for account in accounts}) == 20
    assert all(account.uid >= UidRange().first for account in accounts)


def test_a_uid_that_the_machine_knows_is_nobodys(tmp_path: Path) -> None:
    """A login's uid inside a range that somebody chose is left out."""
    known = pwd.getpwnam("root").pw_uid
    identities = Identities(tmp_path / "uids.json", UidRange(first=known, count=1))

    with pytest.raises(OutOfUidsError):
        identities.account(1, "anna")


def test_an_agent_that_is_not_root_runs_everything_as_itself(tmp_path: Path) -> None:
    """It could do nothing else."""
    account = Identities(tmp_path / "uids.json", None).account(1, "anna")

    assert account.uid == os.geteuid()
    assert not (tmp_path / "uids.json").exists()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("anna", "anna"),
        ("Anna.Müller@example.org", "anna-m-ller-example-org"),
        ("root", "jovyan"),
        ("123", "jovyan"),
        ("', :\n", "jovyan"),
        ("x" * 100, "x" * 32),
    ],
)
def test_any_hub_name_becomes_a_name_for_the_account_file(
    tmp_path: Path, owner: str, name: str
) -> None:
    """No character of it can add a line or a field."""
    account = Identities(tmp_path / "uids.json", None).account(1, owner)

    assert account.name == name
    assert [line.count(":") for line in account.passwd().splitlines()] == [6, 6]


@pytest.mark.parametrize(
    "name", ["", "..", ".hidden", "a/b", "/etc", "a\0b", "a" * 201]
)
def test_a_notebook_name_cannot_lead_elsewhere(tmp_path: Path, name: str) -> None:
    """It is one folder below the agent's own."""
    account = Identities(tmp_path / "uids.json", None).account(1, "anna")

    with pytest.raises(DriverError) as refused:
        NotebookFolders(tmp_path / "notebooks").ensure(name, account)

    assert refused.value.explanation.reason is Reason.START_FAILED


def test_a_link_in_the_place_of_a_notebook_folder_is_refused(tmp_path: Path) -> None:
    """It would be followed, with the agent's rights."""
    account = Identities(tmp_path / "uids.json", None).account(1, "anna")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "anna").symlink_to(tmp_path)

    with pytest.raises(DriverError):
        NotebookFolders(tmp_path / "notebooks").ensure("anna", account)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give folders away")
def test_another_owners_folder_is_refused(tmp_path: Path) -> None:
    """Even if a controller asks for it under that name."""
    identities = Identities(tmp_path / "uids.json", UidRange())
    anna, bert = identities.account(1, "anna"), identities.account(2, "bert")
    folders = NotebookFolders(tmp_path / "notebooks")
    made = folders.ensure("shared-name", anna)
    (made / "file").write_text("anna's")

    assert folders.ensure("shared-name", anna) == made
    with pytest.raises(DriverError):
        folders.ensure("shared-name", bert)
    assert made.stat().st_uid == anna.uid
    assert made.stat().st_mode & 0o777 == 0o700
