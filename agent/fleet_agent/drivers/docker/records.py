"""What does a handle remember of a container, and how is it found without one?"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Self

from fleet_agent.drivers.base import Job


AGENT = "org.jupyter.fleet.agent"
RUN = "org.jupyter.fleet.run"
ALLOCATION = "org.jupyter.fleet.allocation"
EPOCH = "org.jupyter.fleet.epoch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that must survive the agent: goes into a handle as JSON.

    An agent that died before it could write down a container finds it by its labels.
    """

    agent: str
    """This agent's own mark on everything that it makes in the engine."""
    run: str
    """The allocation in this epoch."""
    boot: str
    container: str | None = None

    @classmethod
    def begin(cls, job: Job, *, agent: str, boot: str) -> Self:
        """Return the record of a job of which nothing exists yet."""
        return cls(agent=agent, run=run_of(job), boot=boot)

    def to_json(self) -> dict[str, Any]:
        """Return the form that a handle carries."""
        return {
            "agent": self.agent,
            "run": self.run,
            "boot": self.boot,
            "container": self.container,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the record that *data* holds."""
        return cls(
            agent=data["agent"],
            run=data["run"],
            boot=data["boot"],
            container=data["container"],
        )

    def filters(self) -> dict[str, Any]:
        """Return what finds the containers of this run, and no other's."""
        return {"label": [f"{AGENT}={self.agent}", f"{RUN}={self.run}"]}


def run_of(job: Job) -> str:
    """Return the name of *job*'s run, whatever characters its allocation has."""
    text = f"{job.epoch} {job.allocation}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def labels(job: Job, agent: str) -> dict[str, str]:
    """Return what is written on everything that is made for *job*."""
    return {
        AGENT: agent,
        RUN: run_of(job),
        ALLOCATION: job.allocation,
        EPOCH: str(job.epoch),
    }
