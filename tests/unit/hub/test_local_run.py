"""What ``jupyter-fleet run`` tells a person, and which ports it takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from patience import free_port

from fleet_hub import local_services
from fleet_hub.errors import ConfigurationError
from fleet_hub.local_run import _own_command
from fleet_hub.local_services import choose_ports


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


def test_a_part_that_starts_slowly_finds_its_port_still_free() -> None:
    """No outgoing connection of anybody's is given it meanwhile."""
    told = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not told.exists():
        pytest.skip("this system does not tell where outgoing connections begin")
    outgoing = int(told.read_text().split()[0])
    ports = choose_ports(free_port())
    inner = {ports.hub, ports.proxy, ports.controller}
    assert len(inner) == 3
    assert all(port < max(outgoing, 32_000) for port in inner)


def test_a_machine_without_a_free_port_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Instead of starting what cannot listen; taken ports are not chosen."""
    monkeypatch.setattr(local_services, "is_free", lambda port: port in {1, 20_000})
    with pytest.raises(ConfigurationError, match="no ports are free"):
        choose_ports(1)
    free = {1, 20_005, 25_000, 31_999}
    monkeypatch.setattr(local_services, "is_free", free.__contains__)
    ports = choose_ports(1)
    assert {ports.public, ports.hub, ports.proxy, ports.controller} == free
