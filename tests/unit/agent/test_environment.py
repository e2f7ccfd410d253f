"""Addresses are rewritten for the machine's own network, and nothing else is."""

from __future__ import annotations

import pytest
from agent_support import a_spec

from fleet_agent.addresses import link_url, service_url
from fleet_agent.environment import for_this_machine, with_service_url
from fleet_agent.errors import SettingsError


HUB = "http://10.0.0.9:8081/hub/api"
FLEET = "https://hub.example.org/services/fleet/"


def test_the_fleet_service_is_where_this_agent_reaches_it() -> None:
    """Whatever address the controller believed in."""
    here = "http://127.0.0.1:8098/services/fleet/"
    before = a_spec().environment
    after = for_this_machine(before, fleet_url=here, hub_api_url=None)
    assert after.pop("JUPYTERHUB_FLEET_URL") == here
    assert after == {
        name: value for name, value in before.items() if name != "JUPYTERHUB_FLEET_URL"
    }


def test_the_hubs_api_keeps_its_path() -> None:
    """Only scheme, host and port are this network's."""
    after = for_this_machine(
        a_spec().environment,
        fleet_url=FLEET,
        hub_api_url="https://hub.lan:8443/hub/api",
    )
    assert after["JUPYTERHUB_API_URL"] == "https://hub.lan:8443/hub/api"
    assert (
        after["JUPYTERHUB_ACTIVITY_URL"]
        == "https://hub.lan:8443/hub/api/users/olivia/activity"
    )


@pytest.mark.parametrize(
    ("told", "fleet", "reached"),
    [
        # The Hub's own loopback means nothing on another machine.
        ("http://127.0.0.1:8081", FLEET, "https://hub.example.org"),
        ("http://localhost:8081", FLEET, "https://hub.example.org"),
        ("http://[::1]:8081", "http://10.0.0.9:8000/x/", "http://10.0.0.9:8000"),
        # On its own machine it does.
        ("http://127.0.0.1:8081", "http://127.0.0.1:8098/x/", "http://127.0.0.1:8081"),
        # An address that an admin gave the Hub is meant for everybody.
        ("http://10.0.0.9:8081", FLEET, "http://10.0.0.9:8081"),
    ],
)
def test_a_hub_on_another_machine_is_found_where_its_fleet_service_is(
    told: str, fleet: str, reached: str
) -> None:
    """A notebook asks the Hub through its proxy, as its agent does."""
    names = ("JUPYTERHUB_API_URL", "JUPYTERHUB_ACTIVITY_URL")
    before = dict.fromkeys(names, f"{told}/hub/api")
    after = for_this_machine(before, fleet_url=fleet, hub_api_url=None)
    for name in names:
        assert after[name] == f"{reached}/hub/api"


def test_what_is_not_there_is_not_added() -> None:
    """A workload without the Hub's addresses does not get any."""
    after = for_this_machine({}, fleet_url=FLEET, hub_api_url=HUB)
    assert after == {"JUPYTERHUB_FLEET_URL": FLEET}


def test_the_service_url_is_replaced() -> None:
    """The agent chooses the port."""
    url = "http://127.0.0.1:5555/user/olivia/"
    after = with_service_url({"JUPYTERHUB_SERVICE_URL": "x", "A": "b"}, url)
    assert after == {"JUPYTERHUB_SERVICE_URL": url, "A": "b"}


@pytest.mark.parametrize(
    ("text", "url"),
    [
        (
            "http://127.0.0.1:8000/services/fleet",
            "http://127.0.0.1:8000/services/fleet/",
        ),
        ("https://hub.example.org/services/fleet/", FLEET),
        (" http://localhost:1/x?y=z#w ", "http://localhost:1/x/"),
        ("http://[::1]:80/services/fleet", "http://[::1]:80/services/fleet/"),
    ],
)
def test_an_address_is_written_in_one_way(text: str, url: str) -> None:
    """However people write it."""
    assert service_url(text) == url


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must begin with"),
        ("hub.example.org", "must begin with"),
        ("ftp://hub.example.org/", "must begin with"),
        ("https://", "must begin with"),
        ("https://me:secret@hub.example.org/", "password"),
        ("http://hub.example.org/services/fleet/", "https://"),
        ("http://127.0.0.1.example.org/", "https://"),
        ("http://192.168.1.5/", "https://"),
    ],
)
def test_an_address_that_is_wrong_or_unprotected_is_refused(
    text: str, sentence: str
) -> None:
    """A token never crosses a network in the clear by accident."""
    with pytest.raises(SettingsError, match=sentence) as caught:
        service_url(text)
    assert "me:secret" not in str(caught.value)


def test_somebody_may_vouch_for_a_network() -> None:
    """It is their word, and only theirs, that nobody listens."""
    url = service_url("http://192.168.1.5/services/fleet", trusted_network=True)
    assert url == "http://192.168.1.5/services/fleet/"


@pytest.mark.parametrize(
    ("service", "link"),
    [
        (FLEET, "wss://hub.example.org/services/fleet/agent"),
        ("http://127.0.0.1:1/x/", "ws://127.0.0.1:1/x/agent"),
    ],
)
def test_the_link_is_below_the_service(service: str, link: str) -> None:
    """As protected as the service itself."""
    assert link_url(service) == link
