"""Where notebook traffic may be led, and where an agent's word is not enough."""

from __future__ import annotations

import pytest

from fleet_hub.controller.addresses import is_routable


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:5000/user/a/", "https://127.0.0.1:5000/", "http://[::1]:5000/"],
)
def test_the_hubs_own_machine_serves_on_loopback_and_no_other_does(url: str) -> None:
    """Loopback of the Hub's machine is nobody else's."""
    assert is_routable(url, local=True)
    assert not is_routable(url, local=False)


@pytest.mark.parametrize("url", ["http://10.1.2.3:5000/", "https://[fd00::1]:5000/"])
def test_another_machine_serves_on_an_address_of_its_own(url: str) -> None:
    """A private network is fine; the Hub's own machine does not answer there."""
    assert is_routable(url, local=False)
    assert not is_routable(url, local=True)


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
        "http://169.254.169.254:80/",
        "http://[fe80::1]:5000/",
        "http://[::ffff:127.0.0.1]:5000/",
        "http://[::ffff:169.254.169.254]:5000/",
        "http://0.0.0.0:5000/",
        "http://224.0.0.1:5000/",
    ],
)
def test_what_is_no_address_of_a_machine_is_refused(url: str) -> None:
    """Names, missing ports, other protocols, and addresses of nobody."""
    assert not is_routable(url, local=False)


def test_a_mapped_loopback_is_loopback() -> None:
    """The same address in its longer form."""
    assert is_routable("http://[::ffff:127.0.0.1]:5000/", local=True)
