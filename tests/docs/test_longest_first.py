"""The sessions' workers begin with the modules that take longest."""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


ROOT = Path(__file__).parents[2]
INTEGRATION = ROOT / "tests" / "integration"


@pytest.fixture
def sharing() -> ModuleType:
    """Return what decides how the tests with real processes are shared."""
    spec = importlib.util.spec_from_file_location(
        "sharing", INTEGRATION / "conftest.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_called_longest_is_there(sharing: ModuleType) -> None:
    """A module that was renamed is not left to the end without a word."""
    for part in sharing.LONGEST:
        place = INTEGRATION / part.removeprefix("/integration").strip("/")
        assert place.exists(), part


def test_the_longest_of_what_is_left_is_handed_out_first(
    sharing: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others follow in the scheduler's own order."""
    given = []

    def hand_out(self: Any, node: object) -> None:
        given.append(self.workqueue.popitem(last=False)[0])

    monkeypatch.setattr(sharing.LoadScopeScheduling, "_assign_work_unit", hand_out)
    scheduler = sharing.OneEngineAtATime.__new__(sharing.OneEngineAtATime)
    folder = "tests/integration"
    scopes = [
        *(f"{folder}/test_many.py", f"{folder}/hub/test_survival.py"),
        *(f"{folder}/test_few.py", scheduler._split_scope(f"{folder}/docker/a.py::b")),
    ]
    scheduler.workqueue = OrderedDict.fromkeys(scopes, {})
    for _ in scopes:
        scheduler._assign_work_unit(None)
    assert given == [scopes[3], scopes[1], scopes[0], scopes[2]]
