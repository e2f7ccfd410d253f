"""Where the controller listens, and which words of its settings it takes."""

from __future__ import annotations

import asyncio
import socket

import pytest
from patience import PATIENCE, free_port
from tornado.netutil import bind_sockets

from fleet_hub.errors import ConfigurationError
from fleet_hub.service.listening import listen
from fleet_hub.service.written import networks_of


pytestmark = pytest.mark.asyncio


def close(sockets: list[socket.socket]) -> None:
    """Give the place back."""
    for each in sockets:
        each.close()


async def test_nothing_listens_beyond_this_machine_by_itself() -> None:
    """Secrets would travel the network: somebody has to say that they may."""
    url = f"http://0.0.0.0:{free_port()}"
    with pytest.raises(ConfigurationError, match="reached from other machines"):
        await listen(url, beyond_loopback=False)
    close(await listen(url, beyond_loopback=True))


# Tornado does not close what it could not bind.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
async def test_a_controller_that_is_about_to_go_is_waited_for() -> None:
    """Its place is taken as soon as it is given back."""
    port = free_port()
    before = bind_sockets(port, address="127.0.0.1")
    taking = asyncio.create_task(
        listen(f"http://127.0.0.1:{port}", beyond_loopback=False)
    )
    await asyncio.sleep(0)
    assert not taking.done()
    close(before)
    close(await asyncio.wait_for(taking, PATIENCE))


async def test_a_network_that_is_none_is_refused_with_what_to_write() -> None:
    """The text that is wrong is in the message."""
    with pytest.raises(ConfigurationError, match=r"10\.20.*Write it like 10\.20\.0\.0"):
        networks_of(["10.20"])
