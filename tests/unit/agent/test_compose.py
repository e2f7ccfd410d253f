"""An agent is put together from names and values, and says what is wrong with them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    with pytest.raises(
        SettingsError, match="'nativ'; there are: docker, native, simulation"
    ):
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


def test_the_docker_driver_is_made_without_asking_an_engine(tmp_path: Path) -> None:
    """An engine that is down at the agent's start may come up later."""
    settings = DriverSettings(folder=tmp_path, docker_host=f"unix://{tmp_path}/none")
    assert list(make_drivers(["docker"], settings)) == [DriverName.DOCKER]
    assert list(tmp_path.iterdir()) == []


def test_the_native_driver_has_the_owners_environments_too(tmp_path: Path) -> None:
    """Those of the agent and those of the folder; the container's are not known."""
    locks, state = tmp_path / "locks", tmp_path / "state"
    locks.mkdir()
    (locks / "torch.lock").touch()
    settings = DriverSettings(folder=state, locks=str(locks), system="linux")
    drivers = make_drivers(["native", "docker"], settings)

    assert drivers[DriverName.NATIVE].environments() == ("jupyter", "torch")
    assert drivers[DriverName.DOCKER].environments() is None


@pytest.mark.parametrize("folder", ["relative", "/nowhere/at/all"])
def test_a_wrong_folder_of_environments_is_refused(tmp_path: Path, folder: str) -> None:
    """At the agent's start, and not at the first notebook."""
    settings = DriverSettings(folder=tmp_path, locks=folder, system="linux")
    with pytest.raises(SettingsError, match=f"{folder} is none"):
        make_drivers(["native"], settings)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"docker_host": "tcp://10.0.0.9:2375"}, "another machine's"),
        ({"docker_folders": ["relative"]}, "is no folder of this machine"),
        ({"docker_networks": ["lan"]}, "docker_networks: 'lan' does not appear"),
        ({"docker_free_disk": "much"}, "docker_free_disk: 'much' is no amount"),
        ({"docker_folders": ["/nowhere/at/all"]}, "is no folder of this machine"),
    ],
)
def test_wrong_settings_of_the_docker_driver_are_refused(
    tmp_path: Path, wrong: dict[str, Any], sentence: str
) -> None:
    """At the agent's start, and not at the first notebook."""
    with pytest.raises(SettingsError, match=sentence):
        make_drivers(["docker"], DriverSettings(folder=tmp_path, **wrong))
