"""A machine that serves everybody, on a real service: alice holds it, bob waits."""

from __future__ import annotations

from attended_start import AttendedStart
from fake_agent import some_capabilities
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import CATALOG, Service
from scripted_agent import ScriptedAgent

from fleet_contracts.workloads import DriverName
from fleet_hub.admission import OutcomeKind


# What a machine pretends to run may be anybody's.
SHARED: str = CATALOG.replace(
    "driver_refs: {native: secret-ref}", "ref: pretended"
).replace("cpu: 4", "cpu: 3")
"""A catalog that any simulated machine can serve."""


async def a_shared_box(service: Service, catalog: str = SHARED) -> ScriptedAgent:
    """Return the agent of carol's machine, which is lent to everybody."""
    await service.offers_from(catalog, "3000")
    agent = ScriptedAgent(service, await service.enrol("box", "carol"))
    agent.more = some_capabilities(driver=DriverName.SIMULATION)
    await agent.connect()
    for deed in ("audience", "lending"):
        await service.json(
            f"internal/machines/box/{deed}", method="POST", body={"choice": "guest"}
        )
    return agent


async def alice_holds(service: Service) -> str:
    """Let alice's server have the machine; return its workload."""
    start = await AttendedStart(service, an_ask(class_name="whole")).open()
    assert (await start.ended()).kind is OutcomeKind.READY
    return str((await service.status("1-1"))["workload"])


async def waits(service: Service, name: str = "bob", user_id: int = 2) -> str:
    """Let somebody wait for the machine; return their workload."""
    principal = a_principal(name, user_id)
    ask = an_ask(1, class_name="whole", principal=principal)
    await (await AttendedStart(service, ask).open()).until("waiting")
    return str((await service.status(f"{user_id}-1"))["workload"])
