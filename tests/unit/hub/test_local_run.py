"""What ``jupyter-fleet run`` tells a person."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fleet_hub.local_run import _own_command


def test_the_command_is_named_as_it_can_be_typed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By its name where the shell finds it, else by its path from here."""
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    command = tools / "jupyter-fleet"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tools / "python"))
    monkeypatch.chdir(tmp_path)

    monkeypatch.setenv("PATH", "/nowhere")
    assert _own_command() == ".venv/bin/jupyter-fleet"
    monkeypatch.setenv("PATH", str(tools))
    assert _own_command() == "jupyter-fleet"
    monkeypatch.chdir("/")
    monkeypatch.setenv("PATH", "/nowhere")
    assert Path("/", _own_command()) == command
