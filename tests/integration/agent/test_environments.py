"""What an agent makes of the environments that it finds when it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_process import AgentProcess
from controller_peer import ControllerPeer

from fleet_agent.drivers.native.environments import manifest


pytestmark = [pytest.mark.sandbox, pytest.mark.asyncio, pytest.mark.timeout(300)]


def an_environment(folder: Path) -> Path:
    """Make a small one, sealed as after its build; return a file in it."""
    file = folder / "tree" / "lib" / "module.py"
    file.parent.mkdir(parents=True)
    file.write_text("answer = 42\n")
    manifest.write(folder / "manifest.json", manifest.take(folder / "tree"))
    return file


async def test_every_environment_is_verified_at_every_start_of_the_agent(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Before it says hello: what was changed meanwhile is named in its log."""
    environments = agent.folder / "native" / "environments"
    an_environment(environments / "sound")
    changed = an_environment(environments / "changed")
    added = an_environment(environments / "added").with_name("more.py")
    changed.write_text("answer = 43\n")
    added.write_text("")
    (agent.folder / "native").chmod(0o700)
    agent.settings["drivers"] = ["native"]

    agent.start()
    await peer.greeted(1)

    told = [line for line in agent.told().splitlines() if "environment broken" in line]
    assert len(told) == 2, agent.told()
    assert told[0].endswith('environment=added path=lib/more.py what="was added"')
    assert told[1].endswith('environment=changed path=lib/module.py what="was changed"')
