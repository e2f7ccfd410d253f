"""The next controller on a killed one's store, and the machines as they were left."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import controller_crashes
from controller_crashes import CORES
from fake_agent import FakeAgent, some_capabilities
from fleet_controller import Fleet

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Catalog
from fleet_contracts.protocol import (
    AgentEvent,
    Heartbeat,
    InventoryItem,
    Launch,
    decode_to_agent,
)
from fleet_contracts.workloads import DriverName
from fleet_hub.adapters.sqlite_store import SqliteStore
from fleet_hub.controller import enrolling, stopping


@dataclass
class Seen:
    """What the world outside had seen when the controller was killed."""

    enrolled: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    agents: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> Seen:
        """Read it; nothing was seen of a controller that was killed at once."""
        seen = cls()
        told = folder / "told"
        for line in told.read_text().splitlines() if told.exists() else ():
            item = json.loads(line)
            seen.enrolled += [item["enrolled"]] if "enrolled" in item else []
            seen.asked += [item["asked"]] if "asked" in item else []
            if "machine" in item:
                seen.agents[item["machine"]] = item
        return seen


class Aftermath:
    """The next controller on the same store, and the machines as they were left."""

    def __init__(
        self,
        folder: Path,
        *,
        catalog: Catalog | None = None,
        driver: DriverName = DriverName.NATIVE,
    ) -> None:
        """Open the store; no machine, which has this *driver*, is heard yet."""
        self.seen = Seen.of(folder)
        self._driver = driver
        store = SqliteStore.open(folder / "controller.sqlite")
        self.fleet = Fleet(store, process=2, catalog=catalog)
        for name in CORES:
            if name not in self.seen.enrolled:
                known = name in self.fleet.core.model.machines
                if not known:
                    enrolling.enrol(
                        self.fleet.core, name=name, owner="alice", local=True
                    )
            self.fleet.agents[name] = self._agent(name)

    def _agent(self, name: str) -> FakeAgent:
        agent = FakeAgent(self.fleet.core, self.fleet.registry, name)
        agent.capabilities = some_capabilities(CORES[name], self._driver)
        left = self.seen.agents.get(name)
        if left is None:
            return agent
        agent.ended = set(left["ended"])
        agent.highest_epoch = left["highest_epoch"]
        for text in left["launched"]:
            launch = decode_to_agent(text)
            assert isinstance(launch, Launch)
            agent.launched[launch.allocation] = launch
        for item in map(InventoryItem.model_validate, left["ledger"]):
            agent.ledger[item.allocation] = item
        for allocation, launch in agent.launched.items():
            # It was heard, so it is in a real agent's ledger, whatever was told of it.
            if allocation not in agent.ledger and allocation not in agent.ended:
                agent.ledger[allocation] = InventoryItem(
                    allocation=allocation,
                    epoch=launch.epoch,
                    event=AgentEvent.ACCEPTED,
                    seq=1,
                )
        return agent

    def running(self, name: str) -> dict[str, Launch]:
        """Return what really runs on a machine."""
        agent = self.fleet.agents[name]
        return {
            allocation: launch
            for allocation, launch in agent.launched.items()
            if allocation not in agent.ended
        }

    def check(self) -> None:
        """Nothing runs beyond a machine, is held twice, or is unknown."""
        for name, cores in CORES.items():
            launches = self.running(name).values()
            used = sum(launch.spec.resources.cpu_milli for launch in launches)
            assert used <= cores * 1000, name
            owners = [launch.spec.notebook for launch in launches]
            assert len(owners) == len(set(owners))
            for launch in launches:
                assert launch.allocation in self.fleet.core.model.issued
            planner = self.fleet.core.engine.planner(self.fleet.clock.now())
            if self.fleet.agents[name].session is not None:
                assert planner.fleet.entries[name].free[0] >= 0
        held = [
            record.assignment.allocation
            for record in self.fleet.core.model.workloads.values()
            if record.assignment is not None
        ]
        assert len(held) == len(set(held))

    def connect(self) -> None:
        """Let every machine be heard, and everybody be attended."""
        for name, agent in self.fleet.agents.items():
            agent.connect(cores=CORES[name])
            agent.say(Heartbeat(sent_at=self.fleet.clock.now()))
        for workload in self.fleet.core.model.workloads:
            self.fleet.core.attended[workload] = 1
        self.fleet.cycle()

    def finish(self) -> None:
        """Let everybody have their turn and end, one after the other."""
        core = self.fleet.core
        for _ in range(3 * len(controller_crashes.SERVERS)):
            self.check()
            for name, agent in self.fleet.agents.items():
                for allocation in self.running(name):
                    item = agent.ledger.get(allocation)
                    if item is None or item.event is not AgentEvent.SERVING:
                        agent.serve(allocation)
            self.fleet.clock.advance(1)
            ready = [
                record
                for record in core.model.workloads.values()
                if record.state is State.READY
            ]
            for record in ready[:1]:
                assert record.assignment is not None
                stopping.stop(core, record)
                agent = self.fleet.agents[record.assignment.machine]
                agent.report(record.assignment.allocation, AgentEvent.ENDED)
            self.fleet.cycle()
