"""How the sessions' workers share the tests with real processes."""

from __future__ import annotations

from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling


LONGEST: Final = (
    "/docker/",
    "/hub/test_copying_files.py",
    "/hub/test_survival.py",
    "/hub/test_other_machines.py",
    "/agent/test_survival.py",
    "/hub/test_local_run.py",
    "/hub/test_native_survival.py",
    "/agent/test_native_survival.py",
    "/hub/test_native_names.py",
    "/hub/test_owner_terms.py",
    "/integration/test_native_driver.py",
    "/integration/test_native_conformance.py",
    "/integration/test_native_limits.py",
    "/integration/test_native_standby.py",
    "/hub/test_absent_users.py",
    "/hub/test_machines_that_go.py",
    "/hub/test_requests.py",
    "/hub/test_demo.py",
    "/integration/test_simulated_mac.py",
    "/agent/test_with_the_real_controller.py",
)
"""What takes longest, in this order: begun late, it would keep all others waiting.

Left to itself the scheduler begins with the modules that have the most tests, and ends
with a few long ones.
"""


class OneEngineAtATime(LoadScopeScheduling):  # type: ignore[misc]
    """A module goes to one worker, and all that start a container engine to the same.

    Engines of one machine write their rules into the same tables of its packet filter,
    and fail where another one does so in that moment.
    """

    def _split_scope(self, nodeid: str) -> str:
        folder, found, _ = nodeid.partition("/docker/")
        module: str = super()._split_scope(nodeid)
        return folder + found if found else module

    def _assign_work_unit(self, node: Any) -> None:
        """Give *node* the longest of what is left."""
        self.workqueue.move_to_end(min(self.workqueue, key=_rank), last=False)
        super()._assign_work_unit(node)


def _rank(scope: str) -> int:
    """Return the place of *scope* among the longest; all others come after them."""
    found = (place for place, part in enumerate(LONGEST) if scope.endswith(part))
    return next(found, len(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneEngineAtATime:
    """Return what hands the tests out."""
    return OneEngineAtATime(config, log)
