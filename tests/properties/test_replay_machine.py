"""Whatever has happened: an export of the controller answers as the controller does."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from controller_machine import ControllerMachine
from hypothesis import settings
from hypothesis.stateful import rule
from typing_extensions import override

from fleet_hub.controller import exporting
from fleet_hub.controller.ticking import tick
from fleet_hub.explaining.answers import answer, line
from fleet_hub.explaining.document import Question
from fleet_hub.explaining.state import dump, load
from fleet_hub.explaining.view import View, view_of


pytestmark = pytest.mark.timeout(7200)

STEPS = int(os.environ.get("FLEET_PROPERTY_STEPS", "5000"))
WHAT_IFS = [
    {"profile": "jupyter", "class": name, "user": user, "server": server}
    for name in ("small", "whole")
    for user in ("alice", "bob")
    for server in (None, "", "s1")
]


class ReplayMachine(ControllerMachine):
    """The same lives, and now and then somebody asks here and there."""

    @override
    def jump(self, seconds: int) -> None:
        """A clock that goes back moves no promise until the next event: no rule here."""

    @rule()
    def replay(self) -> None:
        """Everything that can be asked has one answer: order, numbers and times."""
        core = self.fleet.core
        tick(core)
        core.want_cycle()
        self.fleet.cycle()
        live = exporting.view_of(core)
        exported = json.dumps(dump(exporting.state_of(core, timelines=True)))
        replayed = view_of(load(exported))
        asked: list[dict[str, Any]] = [{"workload": name} for name in self.everybody()]
        for one in (*asked, *WHAT_IFS):
            question = Question.model_validate(one)
            assert told(replayed, question) == told(live, question)
        assert line(replayed).waiting == line(live).waiting

    def everybody(self) -> list[str]:
        """Return all workloads that the controller knows."""
        return sorted(self.fleet.core.model.workloads)


def told(view: View, question: Question) -> dict[str, Any]:
    """Return what *view* answers, the moment aside."""
    return answer(view, question).model_dump(exclude={"as_of"})


class TestReplay(ReplayMachine.TestCase):  # type: ignore[misc, name-defined]
    """Lives of fifty steps each."""

    settings = settings(
        max_examples=max(1, STEPS // 150), stateful_step_count=50, deadline=None
    )
