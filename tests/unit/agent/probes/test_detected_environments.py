"""What torch can do in each environment is asked when it may have changed, and no more."""

from __future__ import annotations

import json

import pytest
from probe_answers import PACKAGES, PYTORCH, TORCH_SAYS
from probe_machines import FIELDS_ROW, a_pretend_machine, settings_for

from fleet_agent.probes.detect import detect
from fleet_agent.probes.settings import Environment
from fleet_agent.probes.tools import ToolResult
from fleet_contracts.capabilities import ProbeStatus
from fleet_contracts.placement_facts import placement_facts


pytestmark = pytest.mark.asyncio


async def test_torch_is_asked_again_only_when_something_changed() -> None:
    """Importing torch takes seconds; a new GPU driver is worth them."""
    machine = a_pretend_machine(
        nvidia_smi=FIELDS_ROW, package_readings=PACKAGES, torch_probe=TORCH_SAYS
    )
    settings = settings_for(machine, environments=(PYTORCH,))
    await detect(settings)
    await detect(settings)
    assert machine.times("torch-probe") == 1

    machine.replies["nvidia-smi"] = FIELDS_ROW.replace("550.54.15", "570.86.10")
    await detect(settings)
    assert machine.times("torch-probe") == 2


async def test_a_torch_that_crashed_is_asked_again() -> None:
    """A crash may pass, so it is not remembered."""
    machine = a_pretend_machine(
        package_readings=PACKAGES,
        torch_probe=ToolResult(tool="torch-probe", exit_code=-11),
    )
    settings = settings_for(machine, environments=(PYTORCH,))
    await detect(settings)
    picture = await detect(settings)

    assert machine.times("torch-probe") == 2
    assert picture.torch[0].status is ProbeStatus.CRASH


async def test_an_environment_without_torch_is_not_started() -> None:
    """Its metadata tells; no process is needed, and both capabilities are false."""
    machine = a_pretend_machine(
        package_readings=json.dumps({"found": True, "metadata": []})
    )
    picture = await detect(settings_for(machine, environments=(PYTORCH,)))

    assert machine.times("torch-probe") == 0
    assert placement_facts(picture).has("torch.cuda", "pytorch") is False


async def test_an_environment_that_cannot_be_read_is_unknown() -> None:
    """Before it is built, nothing is known of what it can do."""
    machine = a_pretend_machine(package_readings=json.dumps({"found": False}))
    picture = await detect(settings_for(machine, environments=(PYTORCH,)))

    assert picture.torch == ()
    assert placement_facts(picture).has("torch.cuda", "pytorch") is None


async def test_environments_are_looked_for_each_time() -> None:
    """One that was built since the last look is in the next picture."""
    built: list[Environment] = []
    machine = a_pretend_machine(package_readings=PACKAGES, torch_probe=TORCH_SAYS)

    async def find() -> tuple[Environment, ...]:
        return tuple(built)

    settings = settings_for(machine, find_environments=find)
    before = placement_facts(await detect(settings))
    built.append(PYTORCH)
    after = placement_facts(await detect(settings))

    assert before.has("torch.cuda", "pytorch") is None
    assert after.has("torch.cuda", "pytorch") is True


async def test_environments_that_cannot_be_found_cost_nothing_else() -> None:
    """A broken lock file is no reason not to know the machine."""

    async def find() -> tuple[Environment, ...]:
        raise OSError("the lock file is gone")

    machine = a_pretend_machine(nvidia_smi=FIELDS_ROW)
    picture = await detect(settings_for(machine, find_environments=find))

    assert picture.settled
    assert len(picture.accelerators) == 1
