"""The agent's folder and the commands that fill it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fleet_agent import __version__, cli
from fleet_agent.errors import AnotherAgentError, SettingsError
from fleet_agent.state_folder import StateFolder, read_token, write_private


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """Return a private file with a token."""
    path = tmp_path / "given-token"
    write_private(path, "t0k3n\n")
    return path


def _enrol(token_file: Path, folder: Path, *more: str) -> int:
    return cli.main(
        [
            "enrol",
            "--controller=https://hub.example.org/services/fleet",
            f"--token-file={token_file}",
            f"--state-dir={folder}",
            *more,
        ]
    )


def test_enrolment_keeps_what_the_agent_needs(token_file: Path, tmp_path: Path) -> None:
    """Token and owner are in the folder, for this user alone."""
    folder = tmp_path / "state" / "agent"
    assert _enrol(token_file, folder, "--owner=olivia") == 0
    state = StateFolder(folder)
    assert read_token(state.token) == "t0k3n"
    told = state.read_enrolment()
    assert told["controller"] == "https://hub.example.org/services/fleet/"
    assert told["owner"] == "olivia"
    for path in (folder, state.token, state.enrolment):
        assert path.stat().st_mode & 0o077 == 0


def test_enrolment_beyond_this_computer_needs_https(
    token_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless somebody vouches for the network, and then the agent remembers it."""
    folder = tmp_path / "agent"
    plain = "--controller=http://hub.example.org/services/fleet"
    assert _enrol(token_file, folder, plain) == os.EX_CONFIG
    assert "https://" in capsys.readouterr().err
    assert not folder.exists()
    assert _enrol(token_file, folder, plain, "--trusted-network") == 0
    assert StateFolder(folder).read_enrolment()["trusted_network"] is True


def test_enrolment_does_not_disturb_a_running_agent(
    token_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder has one user at a time."""
    state = StateFolder(tmp_path / "agent")
    state.make()
    with state.lock():
        assert _enrol(token_file, state.path) == os.EX_TEMPFAIL
    assert "another agent" in capsys.readouterr().err


def test_the_folder_is_locked_by_one(tmp_path: Path) -> None:
    """And free again afterwards."""
    state = StateFolder(tmp_path / "agent")
    state.make()
    with state.lock(), pytest.raises(AnotherAgentError), state.lock():
        pass
    with state.lock():
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_token_of_another_user_is_refused(token_file: Path) -> None:
    """Whoever wrote it could have kept it."""
    os.chown(token_file, 65534, 65534)
    with pytest.raises(SettingsError, match="belongs to another user"):
        read_token(token_file)


def test_a_damaged_enrolment_is_explained(tmp_path: Path) -> None:
    """It is not silently taken for no enrolment."""
    state = StateFolder(tmp_path)
    state.enrolment.write_text("{")
    with pytest.raises(SettingsError, match="enrol this machine again"):
        state.read_enrolment()
    state.enrolment.write_text(json.dumps(["not", "an", "object"]))
    with pytest.raises(SettingsError, match="enrol this machine again"):
        state.read_enrolment()


def test_the_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command is named; a wrong one is an error on the right stream."""
    assert cli.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in ("run", "enrol", "probe"))
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__
    assert cli.main([]) == 2
    assert cli.main(["dance"]) == 2
    assert "there is no command 'dance'" in capsys.readouterr().err
