"""``configure(c)``: what JupyterHub is told, and what is refused with a remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config

from fleet_hub.config import configure
from fleet_hub.errors import ConfigurationError
from fleet_hub.places import (
    CONTROLLER_PORT_VARIABLE,
    DATA_DIR_VARIABLE,
    OPEN_METRICS_VARIABLE,
    TRUSTED_NETWORKS_VARIABLE,
    USERS_MAY_ENROL_VARIABLE,
    Places,
    read_secret,
    secret_of,
)
from fleet_hub.service_settings import SETTINGS_VARIABLE


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (DATA_DIR_VARIABLE, CONTROLLER_PORT_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def configured(tmp_path: Path, **more: Any) -> Any:
    """Return a configuration after the call."""
    c = Config()
    configure(c, data_dir=tmp_path / "data", **more)
    return c


def test_hub_restarts_interrupt_nobody(tmp_path: Path) -> None:
    """JupyterHub's own defaults would stop servers, block starts and wait."""
    hub = configured(tmp_path).JupyterHub
    assert hub.cleanup_servers is False
    assert hub.concurrent_spawn_limit == 0
    assert hub.init_spawners_timeout == 1
    assert hub.allow_named_servers is True


def test_the_controller_may_start_servers_and_check_routes_and_no_more(
    tmp_path: Path,
) -> None:
    """A confused deputy needs little."""
    c = configured(tmp_path)
    (role,) = c.JupyterHub.load_roles
    assert role["services"] == ["fleet"]
    assert sorted(role["scopes"]) == ["proxy", "start:servers"]
    assert c.JupyterHub.extra_user_scopes == {"access:services!service=fleet"}


def test_what_was_configured_before_stays(tmp_path: Path) -> None:
    """Other services, roles, scopes and templates are added to, not replaced."""
    c = Config()
    c.JupyterHub.services = [{"name": "culler"}]
    c.JupyterHub.load_roles = [{"name": "culler"}]
    c.JupyterHub.extra_user_scopes = {"shares"}
    c.JupyterHub.template_paths = ["/brand"]
    configure(c, data_dir=tmp_path / "data")
    hub = c.JupyterHub
    assert [service["name"] for service in hub.services] == ["culler", "fleet"]
    assert [role["name"] for role in hub.load_roles] == ["culler", "fleet-controller"]
    assert hub.extra_user_scopes == {"shares", "access:services!service=fleet"}
    assert hub.template_paths[-1] == "/brand"


def test_the_managed_controller_and_the_spawner_meet(tmp_path: Path) -> None:
    """They agree on the port and on the secret, which only a private file holds."""
    c = configured(tmp_path, controller_port=1234)
    (service,) = c.JupyterHub.services
    assert service["url"] == c.FleetSpawner.controller_url == "http://127.0.0.1:1234"
    assert service["environment"][DATA_DIR_VARIABLE] == str(tmp_path / "data")
    secret = read_secret(tmp_path / "data" / "controller" / "spawner.secret")
    assert c.FleetSpawner.spawner_secret == secret
    assert secret not in str(service)


def test_everything_below_the_data_folder_is_private(tmp_path: Path) -> None:
    """Databases and secrets are read by their owner alone."""
    configured(tmp_path)
    for path in [tmp_path / "data", *(tmp_path / "data").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_second_call_keeps_the_secret(tmp_path: Path) -> None:
    """A Hub restart must not lock the running controller out."""
    first = configured(tmp_path).FleetSpawner.spawner_secret
    assert configured(tmp_path).FleetSpawner.spawner_secret == first


def test_the_environment_outranks_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts a Hub from the same file elsewhere needs no second file."""
    monkeypatch.setenv(DATA_DIR_VARIABLE, str(tmp_path / "other"))
    monkeypatch.setenv(CONTROLLER_PORT_VARIABLE, "4321")
    c = configured(tmp_path, controller_port=1234)
    assert c.FleetSpawner.controller_url.endswith(":4321")
    assert (tmp_path / "other" / "hub").is_dir()
    assert not (tmp_path / "data").exists()


def test_an_external_controller_is_not_started(tmp_path: Path) -> None:
    """Something else starts it; the Hub only knows its address and its token."""
    token = tmp_path / "token"
    token.write_text("t" * 32)
    token.chmod(0o600)
    c = configured(
        tmp_path, external_controller="http://10.0.0.5:8098", service_token_file=token
    )
    (service,) = c.JupyterHub.services
    assert "command" not in service
    assert service["api_token"] == "t" * 32
    assert c.FleetSpawner.controller_url == "http://10.0.0.5:8098"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"catalog": "/no/such/catalog.yaml"}, "no catalog file"),
        ({"controller_port": 70000}, "no port"),
        ({"external_controller": "http://10.0.0.5:8098"}, "service_token_file="),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_do(
    tmp_path: Path, arguments: dict[str, Any], says: str
) -> None:
    """An admin reads one sentence, not a traceback of the Hub's insides."""
    with pytest.raises(ConfigurationError, match=says):
        configured(tmp_path, **arguments)


def test_a_port_that_is_no_number_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the variable."""
    monkeypatch.setenv(CONTROLLER_PORT_VARIABLE, "eighty")
    with pytest.raises(ConfigurationError, match=CONTROLLER_PORT_VARIABLE):
        configured(tmp_path)


def test_a_data_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """A file in its place is the common mistake."""
    (tmp_path / "data").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be made private"):
        configured(tmp_path)


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """It is said which file, and how to mend it."""
    places = Places(root=tmp_path)
    places.make()
    secret_of(places.spawner_secret)
    places.spawner_secret.chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        read_secret(places.spawner_secret)


def test_an_empty_secret_is_refused(tmp_path: Path) -> None:
    """Half-written, it would let anybody in who says nothing."""
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    with pytest.raises(ConfigurationError, match="is empty"):
        secret_of(path)


def test_a_folder_that_was_open_is_closed(tmp_path: Path) -> None:
    """An earlier, careless mkdir does not leave the secrets readable."""
    (tmp_path / "data").mkdir(mode=0o755)
    Places(root=tmp_path / "data").make()
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_enrolment_settings_reach_the_managed_controller(tmp_path: Path) -> None:
    """Networks that are trusted, and whether everybody may enrol."""
    c = Config()
    c.JupyterHub.subdomain_host = "https://hub.example.org"
    networks = ["10.20.0.0/16", "fd00::/8"]
    configure(
        c, data_dir=tmp_path / "data", trusted_networks=networks, users_may_enrol=True
    )
    environment = c.JupyterHub.services[0]["environment"]
    assert environment[TRUSTED_NETWORKS_VARIABLE] == "10.20.0.0/16,fd00::/8"
    assert environment[USERS_MAY_ENROL_VARIABLE] == "1"
    plain = configured(tmp_path).JupyterHub.services[0]["environment"]
    assert TRUSTED_NETWORKS_VARIABLE not in plain
    assert USERS_MAY_ENROL_VARIABLE not in plain


def test_machines_of_users_ask_for_an_origin_of_their_own(tmp_path: Path) -> None:
    """Or for the admin's word that their owners are trusted as much as the Hub."""
    with pytest.raises(ConfigurationError, match="subdomain_host"):
        configured(tmp_path, users_may_enrol=True)
    c = configured(tmp_path, users_may_enrol=True, machines_share_the_hubs_origin=True)
    assert c.JupyterHub.services[0]["environment"][USERS_MAY_ENROL_VARIABLE] == "1"


@pytest.mark.parametrize("network", ["10.0.0.1/8", "everywhere", ""])
def test_a_network_that_is_none_is_refused(tmp_path: Path, network: str) -> None:
    """With an example of how to write it."""
    with pytest.raises(ConfigurationError, match=r"10\.20\.0\.0/16"):
        configured(tmp_path, trusted_networks=[network])


def test_the_controllers_settings_stand_beside_the_hubs(tmp_path: Path) -> None:
    """Before the call or after it: they are told when the Hub starts the controller."""
    c = Config()
    c.FleetService.open_seconds = 60
    c.FleetService.names_visible = True
    configure(c, data_dir=tmp_path / "data")
    c.FleetService.names_visible = False
    c.FleetService.hub_addresses.append("hub.example.org")
    c.FleetService.catalog = tmp_path / "catalog.yaml"
    tell = c.JupyterHub.services[0]["environment"][SETTINGS_VARIABLE]

    # The Hub keeps a copy of the variables, and warns of each that is no text.
    assert json.loads(json.dumps(c.JupyterHub.services[0]))["environment"]
    assert json.loads(tell(None)) == {
        "open_seconds": 60,
        "names_visible": False,
        "hub_addresses": ["hub.example.org"],
        "catalog": str(tmp_path / "catalog.yaml"),
    }
    c.FleetService.open_seconds = {60}
    with pytest.raises(ConfigurationError, match=r"c\.FleetService"):
        tell(None)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("users_may_enrol", True, "subdomain_host"),
        ("data_dir", "/elsewhere", "data_dir="),
        ("url", "http://127.0.0.1:1", "controller_port="),
    ],
)
def test_no_setting_gets_around_what_configure_checks(
    tmp_path: Path, name: str, value: object, says: str
) -> None:
    """The same is refused, with the same remedy, wherever it is written."""
    c = configured(tmp_path)
    c.FleetService[name] = value
    with pytest.raises(ConfigurationError, match=says):
        c.JupyterHub.services[0]["environment"][SETTINGS_VARIABLE](None)


def test_a_hub_that_says_nothing_leaves_the_controller_its_defaults(
    tmp_path: Path,
) -> None:
    """What ``configure`` was given stays in force."""
    c = configured(tmp_path)
    assert c.JupyterHub.services[0]["environment"][SETTINGS_VARIABLE](None) == "{}"


def test_an_external_controller_keeps_its_own_settings(tmp_path: Path) -> None:
    """What would be ignored is refused."""
    c = Config()
    c.FleetService.open_seconds = 60
    with pytest.raises(ConfigurationError, match=r"set c\.FleetService\.open_seconds "):
        configure(
            c,
            data_dir=tmp_path / "data",
            external_controller="http://10.0.0.5:8098",
            service_token_file=tmp_path / "token",
        )
    with pytest.raises(ConfigurationError, match=r"FleetService\.trusted_networks"):
        configured(
            tmp_path,
            external_controller="http://10.0.0.5:8098",
            service_token_file=tmp_path / "token",
            trusted_networks=["10.0.0.0/8"],
        )


@pytest.mark.parametrize(("authenticated", "told"), [(None, None), (False, "1")])
def test_metrics_are_as_open_as_the_hubs_own(
    tmp_path: Path, authenticated: bool | None, told: str | None
) -> None:
    """One setting decides about both; by default both are guarded."""
    c = Config()
    if authenticated is not None:
        c.JupyterHub.authenticate_prometheus = authenticated
    configure(c, data_dir=tmp_path / "data")
    environment = c.JupyterHub.services[0]["environment"]
    assert environment.get(OPEN_METRICS_VARIABLE) == told


def test_a_catalog_may_be_a_folder(tmp_path: Path) -> None:
    """The controller reads it as one."""
    folder = tmp_path / "catalog.d"
    folder.mkdir()
    c = configured(tmp_path, catalog=folder)
    environment = c.JupyterHub.services[0]["environment"]
    assert environment["JUPYTERHUB_FLEET_CATALOG"] == str(folder)
    with pytest.raises(ConfigurationError, match="no catalog"):
        configured(tmp_path, catalog=tmp_path / "nowhere")
