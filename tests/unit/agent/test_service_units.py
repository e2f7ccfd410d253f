"""The units of the service managers: what they say, word for word."""

from __future__ import annotations

import configparser
import plistlib
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from fleet_agent.errors import SettingsError
from fleet_agent.service.managers import manager_for, own_config
from fleet_agent.service.units import Service, launchd_plist, systemd_unit


SERVICE = Service(
    command=("/opt/fleet/bin/python", "-m", "fleet_agent.cli", "run", "--state-dir=/s"),
    search_path="/usr/local/bin:/usr/bin",
    log=Path("/s/agent.log"),
)
HOME = Path("/home/ada")


def read_unit(text: str) -> configparser.ConfigParser:
    """Return *text* as systemd reads it: keys with capitals, percent signs as they are."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    # Its documented way to keep capitals.
    parser.optionxform = str  # type: ignore[method-assign, assignment]
    parser.read_string(text)
    return parser


def test_systemd_ends_the_agent_and_never_its_notebooks() -> None:
    """Each line that decides is there, once."""
    unit = read_unit(systemd_unit(SERVICE))

    assert dict(unit["Service"]) == {
        "Type": "exec",
        "ExecStart": "/opt/fleet/bin/python -m fleet_agent.cli run --state-dir=/s",
        "Environment": '"PATH=/usr/local/bin:/usr/bin"',
        "Restart": "always",
        "RestartSec": "5",
        "RestartPreventExitStatus": "65 75 76 78",
        "KillMode": "process",
        "OOMPolicy": "continue",
        "TimeoutStopSec": "30",
        "Delegate": "cpu memory pids",
        "DelegateSubgroup": "agent",
        "LimitNOFILE": "65536",
        "UMask": "0077",
    }
    assert unit["Install"]["WantedBy"] == "default.target"


def test_a_service_of_the_whole_machine_starts_with_it() -> None:
    """An agent of root does not wait for anybody's session."""
    unit = read_unit(systemd_unit(replace(SERVICE, for_all=True)))

    assert unit["Install"]["WantedBy"] == "multi-user.target"


def test_launchd_ends_the_agent_and_never_its_notebooks() -> None:
    """Each key that decides is there."""
    assert plistlib.loads(launchd_plist(SERVICE)) == {
        "Label": "org.jupyterhub.fleet.agent",
        "ProgramArguments": list(SERVICE.command),
        "EnvironmentVariables": {"PATH": "/usr/local/bin:/usr/bin"},
        "RunAtLoad": True,
        "KeepAlive": True,
        "ThrottleInterval": 30,
        "AbandonProcessGroup": True,
        "ExitTimeOut": 30,
        "ProcessType": "Interactive",
        "SoftResourceLimits": {"NumberOfFiles": 65536},
        "StandardOutPath": "/s/agent.log",
        "StandardErrorPath": "/s/agent.log",
        "Umask": 0o077,
    }


@given(
    words=st.lists(
        st.text(
            alphabet=st.characters(codec="utf-8", exclude_characters="\x00\r\n"),
            min_size=1,
            max_size=20,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_folder_is_one_word_of_the_command(words: list[str]) -> None:
    """Blanks, quotes, dollars and percent signs in a path stay in the path."""
    line = next(
        line
        for line in systemd_unit(replace(SERVICE, command=words)).split("\n")
        if line.startswith("ExecStart=")
    )
    # systemd splits like a shell, and then replaces $$ and %%.
    split = shlex.split(line.removeprefix("ExecStart="), comments=False)
    read = [word.replace("$$", "$").replace("%%", "%") for word in split]
    assert read == words


def test_each_user_has_their_own_place() -> None:
    """Root's unit is the machine's; a user's is in their own folder of settings."""
    root = manager_for("linux", uid=0, home=HOME, config=HOME / ".config")
    user = manager_for("linux", uid=1000, home=HOME, config=HOME / ".config")
    mac = manager_for("darwin", uid=501, home=Path("/Users/ada"), config=HOME)

    assert str(root.unit) == "/etc/systemd/system/jupyterhub-fleet-agent.service"
    assert user.unit == HOME / ".config/systemd/user/jupyterhub-fleet-agent.service"
    assert user.starts[0] == ("systemctl", "--user", "daemon-reload")
    assert "enable-linger" in user.advice
    assert str(mac.unit) == (
        "/Users/ada/Library/LaunchAgents/org.jupyterhub.fleet.agent.plist"
    )
    assert mac.starts[-1][:3] == ("launchctl", "bootstrap", "gui/501")


@pytest.mark.parametrize(("system", "uid"), [("darwin", 0), ("windows", 1000)])
def test_where_there_is_no_manager_the_reason_is_said(system: str, uid: int) -> None:
    """Root on a Mac, and systems that we do not know."""
    with pytest.raises(SettingsError):
        manager_for(system, uid=uid, home=HOME, config=HOME)


def test_a_users_folder_of_settings_may_be_elsewhere() -> None:
    """An absolute XDG_CONFIG_HOME counts; a relative one is none, as its authors say."""
    assert own_config({"XDG_CONFIG_HOME": "/c"}, HOME) == Path("/c")
    assert own_config({"XDG_CONFIG_HOME": "c"}, HOME) == HOME / ".config"
    assert own_config({}, HOME) == HOME / ".config"
