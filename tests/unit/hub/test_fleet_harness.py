"""What the harness of a whole fleet waits for, before a test goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fleet import Fleet
from fleet_parts import Machine


class Told(Fleet):
    """A fleet whose controller answers what a test says, one after the other."""

    about_the_machine: list[dict[str, Any]]
    offers: list[str | None]

    def controller(self, method: str, path: str, **more: Any) -> Any:
        """Answer, and forget the answer."""
        if path == "machines":
            return {"machines": [self.about_the_machine.pop(0)]}
        reason = self.offers.pop(0)
        return {"offers": [{"explanation": reason and {"reason": reason}}]}


def told(*, online: bool, inventory: bool, settled: bool) -> dict[str, Any]:
    """Return what the controller tells of the box."""
    return {
        "name": "box",
        "online": online,
        "inventory_known": inventory,
        "capabilities": {"settled": settled},
    }


def test_an_agent_is_awaited_until_all_of_its_machine_is_known(tmp_path: Path) -> None:
    """Up is not enough, nor is what it runs: its probes have answered, and work is taken."""
    fleet = Told(folder=tmp_path)
    fleet.machines["box"] = Machine(
        name="box", owner="ada", folder=tmp_path, settings={}
    )
    fleet.about_the_machine = [
        told(online=False, inventory=False, settled=True),
        told(online=True, inventory=False, settled=False),
        told(online=True, inventory=True, settled=False),
        told(online=True, inventory=True, settled=True),
    ]
    fleet.offers = ["controller_recovering", None]

    fleet.wait_for_agent("box")

    assert fleet.about_the_machine == []
    assert fleet.offers == []
