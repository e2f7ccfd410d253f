"""The engines that tests start leave nothing of theirs on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker_engine import missing_for_docker, private_engine


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        missing_for_docker() is not None, reason=str(missing_for_docker())
    ),
]


def test_an_engine_that_was_killed_leaves_no_bridge_behind() -> None:
    """It cannot undo its networks itself."""
    with private_engine() as engine:
        with engine.client() as client:
            client.create_network("left-behind", driver="bridge")
        bridges = engine.bridges()
        assert bridges
        engine.kill()
    assert [name for name in bridges if Path("/sys/class/net", name).exists()] == []
