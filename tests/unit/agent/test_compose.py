"""An agent is put together from names and values, and says what is wrong with them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from fleet_agent import daemon
from fleet_agent.compose import DriverSettings, make_drivers
from fleet_agent.errors import SettingsError
from fleet_contracts.workloads import DriverName


@pytest.fixture
def own_logs() -> Iterator[None]:
    """Put the process's logging back as it was: an agent takes all of it."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def test_drivers_are_made_by_name(tmp_path: Path) -> None:
    """Those that are named, and no others."""
    settings = DriverSettings(folder=tmp_path, simulation={"prepare_seconds": 1})
    assert list(make_drivers(["simulation"], settings)) == [DriverName.SIMULATION]
    assert list(make_drivers([], settings)) == []


def test_an_unknown_driver_is_named_with_those_that_exist(tmp_path: Path) -> None:
    """A misspelt name does not silently offer less."""
    with pytest.raises(SettingsError, match="'nativ'; there are: native, simulation"):
        make_drivers(["nativ"], DriverSettings(folder=tmp_path))


@pytest.mark.parametrize(
    "simulation",
    [{"prepare_secs": 1}, {"fault": "explodes"}, {"runtimes": {"a": {"x": 1}}}],
)
def test_wrong_settings_of_a_driver_are_refused(
    tmp_path: Path, simulation: dict[str, object]
) -> None:
    """None is ignored."""
    with pytest.raises(SettingsError, match="the simulation's settings are wrong"):
        make_drivers(
            ["simulation"], DriverSettings(folder=tmp_path, simulation=simulation)
        )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--config=/nowhere/agent.json"], "there is no configuration file"),
        (["--simulation"], "no controller is known"),
        (["--simulation", "--controller=nonsense"], "must begin with http"),
        (
            ["--simulation", "--controller=http://hub.example.org/services/fleet/"],
            "must begin with https",
        ),
        (["--simulation", "--controller=http://127.0.0.1:1/"], "fleet-agent enrol"),
    ],
)
@pytest.mark.usefixtures("own_logs")
def test_an_agent_that_cannot_start_says_why_and_how_to_go_on(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    """With the exit status of a wrong configuration."""
    folder = tmp_path / "state"
    status = daemon.main([f"--state-dir={folder}", *arguments])
    assert status == os.EX_CONFIG
    assert sentence in capfd.readouterr().err
