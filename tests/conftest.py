"""What all test sessions share: the support modules, and what to do without a tool."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pluggy
import pytest


SUPPORT = Path(__file__).parent / "support"
if str(SUPPORT) not in sys.path:
    sys.path.insert(0, str(SUPPORT))

import last_words  # noqa: E402 - from there


# A busy machine is no bug: no example is judged by the clock. Continuous integration
# repeats the same examples; elsewhere each run looks for new ones.
hypothesis.settings.register_profile(
    "fleet",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
hypothesis.settings.load_profile("fleet")


def _missing(marker: str) -> str | None:
    """Return why tests with *marker* cannot run on this machine."""
    if marker == "sandbox" and shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    if marker == "browser" and shutil.which("chromium") is None:
        return "Chromium is not installed (Debian: apt-get install chromium)"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what the machine cannot run; continuous integration permits no such skip."""
    strict = os.environ.get("FLEET_TEST_STRICT") == "1"
    for item in items:
        for marker in ("sandbox", "browser"):
            if item.get_closest_marker(marker) is None:
                continue
            reason = _missing(marker)
            if reason is not None and not strict:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """Let a skip fail where none but hardware may be missing; let a failure explain itself."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        _explain(item, call, report)
    strict = os.environ.get("FLEET_TEST_STRICT") == "1"
    if not (strict and report.skipped) or item.get_closest_marker("hardware"):
        return
    if not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where no skip is permitted: {report.longrepr}"


def _explain(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> None:
    """Add what the test's browser and its processes said last."""
    # Who was interrupted in the middle of a question cannot ask another one.
    if call.when == "call" and "pytest-timeout" not in str(
        call.excinfo and call.excinfo.value
    ):
        report.sections += last_words.of_pages(getattr(item, "funcargs", {}))
    factory: pytest.TempPathFactory = item.config._tmp_path_factory  # type: ignore[attr-defined]
    report.sections += last_words.of_processes(factory.getbasetemp(), call.start)
