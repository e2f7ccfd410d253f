"""A real notebook of somebody with an odd name: in paths, URLs, cookies and headers.

Real Hub, proxy, controller, agent, environment, sandbox and kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from urllib.parse import quote

import pytest
from fleet import Fleet
from native_fleet import (
    NATIVE_PATIENCE,
    NEEDS_NATIVE,
    add_native_machine,
    keep_environments,
)
from notebook_client import Kernel, NotebookServer
from odd_names import BEYOND, LONG, PUNCTUATION


pytestmark = [
    *NEEDS_NATIVE,
    pytest.mark.asyncio,
    pytest.mark.timeout(NATIVE_PATIENCE + 120),
]
NUMBERS = count()
LONGEST_SERVER = "a-b-c-d-e-f-g-h-i-j-k-l-m-n-o9"
"""JupyterHub takes thirty letters, digits and single hyphens."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet without a machine."""
    with Fleet(folder=tmp_path_factory.mktemp("fleet"), catalog=None) as started:
        yield started


@pytest.mark.parametrize("name", [f"{PUNCTUATION} {BEYOND}", LONG], ids=["odd", "long"])
async def test_a_notebook_works_whatever_its_owner_is_called(
    running: Fleet, name: str
) -> None:
    """By REST with a token, and in a browser with the Hub's login: a cell runs, the file
    that it wrote is there after stop and start, and the timeline is told.
    """
    user = quote(name, safe="")
    running.api("POST", f"users/{user}").raise_for_status()
    token = running.api("POST", f"users/{user}/tokens").json()["token"]
    machine = add_native_machine(running, f"box{next(NUMBERS)}", owner=name)
    running.wait_for_agent(machine.name)
    path = f"users/{user}/servers/{LONGEST_SERVER}"

    def started() -> NotebookServer:
        body = {"user_options": {"profile": "cpu-small"}}
        answer = running.api("POST", path, json=body)
        assert answer.status_code in {201, 202}, answer.text
        model = running.wait_ready(user, LONGEST_SERVER, patience=NATIVE_PATIENCE)
        return NotebookServer(f"{running.url}{model['url']}", token)

    server = started()
    keep_environments(machine)
    async with Kernel(server) as kernel:
        said = await kernel.run(
            "import os\n"
            "open('kept.txt', 'w').write(os.environ['JUPYTERHUB_USER'])\n"
            "print(os.environ['JUPYTERHUB_USER'] == " + repr(name) + ", os.getcwd())"
        )
    told = await server.ask("fleet/api/timeline")
    assert said == "True /home/jovyan\n"
    assert told["timeline"]["user"] == name
    assert told["timeline"]["server"] == LONGEST_SERVER

    running.stop_server(user, LONGEST_SERVER)
    server = started()
    browser = running.log_in(name)
    page = browser.get(f"{server.url}lab", timeout=60)
    assert page.ok, page.text
    assert page.url.startswith(server.url)
    kept = browser.get(f"{server.url}files/kept.txt", timeout=60)
    assert kept.content.decode() == name
    running.stop_server(user, LONGEST_SERVER)
