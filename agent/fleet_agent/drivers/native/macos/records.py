"""What does a handle remember of a workload on a Mac?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.processes import ProcessName, boot_id


@dataclass(frozen=True, slots=True, kw_only=True)
class MacRecord:
    """All that must survive the agent: goes into a handle as JSON."""

    run: str
    boot: str
    """The boot that it belongs to: a restart of the Mac ends everything."""
    leader: ProcessName | None = None
    """The server, which leads the process group of all that it starts."""

    @classmethod
    def begin(cls, run: RunFolder) -> Self:
        """Return the record of a workload of which nothing runs yet."""
        return cls(run=run.name, boot=boot_id())

    @property
    def is_of_this_boot(self) -> bool:
        """Whether anything of it can still run."""
        return self.boot == boot_id()

    def to_json(self) -> dict[str, Any]:
        """Return the form that a handle carries."""
        leader = None if self.leader is None else self.leader.as_data()
        return {"run": self.run, "boot": self.boot, "leader": leader}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the record that *data* holds."""
        leader = data["leader"]
        return cls(
            run=data["run"],
            boot=data["boot"],
            leader=None if leader is None else ProcessName.from_data(leader),
        )
