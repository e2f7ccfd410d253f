"""Where notebook traffic may be led, and where an agent's word is not enough."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network

import pytest
from fleet_builders import NOON, a_machine_record
from fleet_controller import Fleet, ScriptedNetwork

from fleet_contracts.reasons import Reason
from fleet_hub.controller.addresses import fault_of, route_of
from fleet_hub.controller.ports import Change
from fleet_hub.controller.records import ApprovedAddress, MachineRecord
from fleet_hub.controller.settings import Settings


TRUSTED = Settings(
    trusted_networks=(ip_network("0.0.0.0/0"), ip_network("::/0")),
)
LOCAL = a_machine_record()


def a_fleet(settings: Settings = TRUSTED, **network: object) -> Fleet:
    """Return a fleet that trusts every network."""
    return Fleet(settings=settings, network=ScriptedNetwork(**network))  # type: ignore[arg-type]


def elsewhere(address: str = "10.1.2.3", claimed: str = "") -> MachineRecord:
    """Return a machine with an approved address."""
    approved = ApprovedAddress(
        claimed=claimed or address, address=address, approved_at=NOON
    )
    return a_machine_record(local=False, address=approved)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:5000/user/a/", "https://127.0.0.1:5000/", "http://[::1]:5000/"],
)
def test_the_hubs_own_machine_serves_on_loopback_and_no_other_does(url: str) -> None:
    """Loopback of the Hub's machine is nobody else's."""
    fleet = a_fleet()
    assert route_of(fleet.core, LOCAL, url) == url
    for address in ("127.0.0.1", "::1"):
        assert route_of(fleet.core, elsewhere(address), url) is None


@pytest.mark.parametrize("address", ["10.1.2.3", "fd00::1"])
def test_another_machine_serves_on_the_address_that_was_tried(address: str) -> None:
    """On no other one, and the Hub's own machine does not answer there."""
    fleet = a_fleet()
    host = f"[{address}]" if ":" in address else address
    url = f"http://{host}:5000/user/a/"
    assert route_of(fleet.core, elsewhere(address), url) == url
    assert route_of(fleet.core, elsewhere("10.9.9.9"), url) is None
    assert route_of(fleet.core, a_machine_record(local=False), url) is None
    assert route_of(fleet.core, LOCAL, url) is None


def test_a_name_is_routed_to_the_address_that_was_tried() -> None:
    """What the name means later plays no part."""
    record = elsewhere("10.1.2.3", claimed="gpu.Lab")
    route = route_of(a_fleet().core, record, "http://gpu.lab:5000/user/a/")
    assert route == "http://10.1.2.3:5000/user/a/"


def test_a_server_keeps_its_address_when_its_machine_moves() -> None:
    """It was led there before; a forbidden address is refused all the same."""
    fleet, moved = a_fleet(), elsewhere("10.9.9.9")
    url = "http://10.1.2.3:5000/user/a/"
    assert route_of(fleet.core, moved, url, known=url) == url
    fleet.network.hubs.add("10.1.2.3")
    assert route_of(fleet.core, moved, url, known=url) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "http://",
        "http://box:5000/",
        "http://localhost:5000/",
        "ftp://10.1.2.3:5000/",
        "http://10.1.2.3/",
        "http://10.1.2.3:0/",
        "http://10.1.2.3:99999/",
        "http://user@10.1.2.3:5000/",
    ],
)
def test_what_is_no_route_is_refused(url: str) -> None:
    """Other names, missing ports, other protocols."""
    assert route_of(a_fleet().core, elsewhere(), url) is None


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "fe80::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "240.0.0.1",
        "box",
        "",
    ],
)
def test_an_address_of_nobody_is_refused(address: str) -> None:
    """Loopback, the neighbours on the link, and what is no address at all."""
    fault = fault_of(a_fleet().core, elsewhere(), address)
    assert fault is not None
    assert fault.reason is Reason.ADDRESS_REFUSED


def test_the_hubs_address_and_another_machines_are_refused() -> None:
    """Whatever the network; an address whose machine lost its token is free again."""
    fleet = a_fleet(hubs={"10.0.0.1"})
    assert fault_of(fleet.core, elsewhere(), "10.0.0.1") is not None
    other = replace(elsewhere("10.0.0.2"), name="other")
    fleet.core.model.apply(Change(machines={"other": other}))
    assert fault_of(fleet.core, elsewhere(), "10.0.0.2") is not None
    assert fault_of(fleet.core, other, "10.0.0.2") is None
    fleet.core.model.apply(Change(machines={"other": replace(other, token_hash="")}))
    assert fault_of(fleet.core, elsewhere(), "10.0.0.2") is None


def test_a_network_that_nobody_declared_trusted_is_refused() -> None:
    """With its own code, since it is the admin's move and not the owner's."""
    fault = fault_of(a_fleet(Settings()).core, elsewhere(), "10.1.2.3")
    assert fault is not None
    assert fault.reason is Reason.NETWORK_NOT_TRUSTED


def test_a_mapped_loopback_is_loopback() -> None:
    """The same address in its longer form."""
    url = "http://[::ffff:127.0.0.1]:5000/"
    assert route_of(a_fleet().core, LOCAL, url) is not None
