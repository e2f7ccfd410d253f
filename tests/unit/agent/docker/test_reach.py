"""What containers may reach, from the owner's word to the rules' text."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network

import pytest

from fleet_agent.drivers.docker import packet_filter
from fleet_agent.drivers.docker.facts import EngineFacts
from fleet_agent.drivers.docker.firewall import Firewall
from fleet_agent.drivers.docker.network import Network
from fleet_agent.drivers.docker.reach import (
    Endpoint,
    Openings,
    Reach,
    hub_in,
    proxies_in,
    read_reach,
    resolvers,
    rules,
)


def test_nothing_private_is_allowed_by_default() -> None:
    """The owner's silence opens nothing."""
    assert read_reach([]) == Reach(everything=False, networks=())


def test_an_owner_names_addresses_and_networks_of_both_kinds() -> None:
    """A network may be named by any address in it."""
    reach = read_reach(["10.0.0.5", "192.168.7.9/24", "fd12::/64"])

    assert [str(network) for network in reach.networks] == [
        "10.0.0.5/32",
        "192.168.7.0/24",
        "fd12::/64",
    ]
    assert read_reach(["all"]).everything


@pytest.mark.parametrize("word", ["fileserver", "10.0.0.0/40", "everything"])
def test_a_word_that_names_no_network_is_refused(word: str) -> None:
    """It must not be taken for nothing, or for all."""
    with pytest.raises(ValueError, match="does not appear to be"):
        read_reach([word])


def test_the_hub_is_what_a_notebook_is_told_of() -> None:
    """With the port of its scheme where none is written; nothing else of it counts."""
    told = {
        "JUPYTERHUB_API_URL": "http://10.0.0.1:8081/hub/api",
        "JUPYTERHUB_FLEET_URL": "https://hub.example.org/services/fleet/",
        "JUPYTERHUB_ACTIVITY_URL": "http://[fd00::1]:8081/hub/api/users/u/activity",
        "http_proxy": "http://10.9.9.9:3128",
        "OTHER_URL": "http://10.8.8.8:80/",
    }

    assert hub_in(told) == {
        Endpoint("10.0.0.1", 8081),
        Endpoint("hub.example.org", 443),
        Endpoint("fd00::1", 8081),
    }


def test_a_proxy_that_the_owner_gives_is_allowed() -> None:
    """Whoever names it wants it used; it may be written without a scheme."""
    given = {
        "HTTPS_PROXY": "http://10.0.0.9:3128",
        "all_proxy": "proxy.example.org:1080",
        "NO_PROXY": "10.0.0.0/8",
        "http_proxy": "http://10.0.0.9:none",
    }

    assert proxies_in(given) == {
        Endpoint("10.0.0.9", 3128),
        Endpoint("proxy.example.org", 1080),
    }


def test_resolvers_on_the_machines_loopback_are_the_engines_business() -> None:
    """The others are asked by the containers themselves."""
    text = (
        "# nameserver 10.0.0.3\nnameserver 127.0.0.53\nnameserver 10.0.0.2\n"
        "nameserver fe80::1%eth0\nnameserver none\nnameserver\nsearch example.org\n"
    )

    assert resolvers([text, "nameserver 10.0.0.2"]) == {"10.0.0.2", "fe80::1"}


@pytest.mark.parametrize(
    "address",
    [
        *("10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.0.1"),
        *("127.0.0.1", "0.0.0.0", "224.0.0.251", "255.255.255.255"),
        *("::1", "::", "::ffff:10.0.0.1", "fd00:ec2::254", "fe80::1", "ff02::fb"),
    ],
)
def test_every_kind_of_private_address_is_refused(address: str) -> None:
    """Metadata services of clouds are among them, in both families."""
    assert _is_refused(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "172.32.0.1", "192.169.0.1", "100.128.0.1", "2606:4700::1"]
)
def test_the_outside_is_not(address: str) -> None:
    """Next to the private networks as well."""
    assert not _is_refused(address)


def _is_refused(address: str) -> bool:
    text = rules("t", "br-1", Openings())
    networks = [
        ip_network(word)
        for found in re.findall(r"daddr \{ (.*?) \}", text)
        for word in found.split(", ")
    ]
    return any(ip_address(address) in network for network in networks)


def test_what_is_opened_comes_before_what_is_refused() -> None:
    """For this machine's own services as for others, in one transaction."""
    text = rules(
        "t",
        "br-1",
        Openings(
            endpoints=frozenset({Endpoint("10.0.0.1", 8081), Endpoint("fd00::1", 80)}),
            resolvers=frozenset({"10.0.0.2"}),
            networks=read_reach(["192.168.7.0/24"]).networks,
        ),
    )

    assert "tcp ct original ip daddr 10.0.0.1 ct original proto-dst 8081 accept" in text
    assert "tcp ct original ip6 daddr fd00::1 ct original proto-dst 80 accept" in text
    assert "ip daddr 10.0.0.2 udp dport 53 accept" in text
    assert "ip daddr 192.168.7.0/24 accept" in text
    assert text.startswith("add table inet t\ndelete table inet t\ntable inet t {")
    for chain in re.split(r"chain (?=forward|input)", text)[1:]:
        assert chain.index("jump opened") < chain.index("reject")


@pytest.mark.parametrize(
    ("facts", "missing", "sign"),
    [
        (EngineFacts(desktop=True), None, "Docker Desktop's virtual machine"),
        (EngineFacts(rootless=True), None, "engine does not run as root"),
        (EngineFacts(), "nft is not installed", "nft is not installed"),
    ],
)
def test_where_nothing_can_be_kept_from_containers_none_starts(
    monkeypatch: pytest.MonkeyPatch, facts: EngineFacts, missing: str | None, sign: str
) -> None:
    """The sentence names the cause and the owner's way out, which ends the matter."""
    monkeypatch.setattr(packet_filter, "what_is_missing", lambda: missing)

    problem = Firewall(Reach(), {}).problem(facts)

    assert problem is not None
    assert sign in problem
    assert "docker_networks" in problem
    assert Firewall(Reach(everything=True), {}).problem(facts) is None


@pytest.mark.asyncio
async def test_rules_for_a_bridge_that_the_agent_does_not_see_count_as_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They would hold somewhere else: the agent is in a container, the engine is not."""
    monkeypatch.setattr(packet_filter, "put", lambda rules: None)
    network = Network(name="fleet-a", gateway="10.0.0.1", bridge="br-nowhere")

    with pytest.raises(packet_filter.PacketFilterError, match="no interface"):
        await Firewall(Reach(), {}).ensure("a", network, [])


def test_where_everything_is_there_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine of the usual kind."""
    monkeypatch.setattr(packet_filter, "what_is_missing", lambda: None)

    assert Firewall(Reach(), {}).problem(EngineFacts()) is None
