"""What the processes and the page of a failed test said last, for its report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final


LOGS: Final = 8
LINES: Final = 40
CHARACTERS: Final = 5_000
RECENT_SECONDS: Final = 60.0
PAGE_MS: Final = 5_000
_SECRET: Final = re.compile(
    r"(?i)((?:token|code|_xsrf|secret)[\"']?[=:]\s*[\"']?|(?:token|bearer|fleet) )"
    r"([\w.~+/=-]{8,})"
)


def without_secrets(text: str) -> str:
    """Return *text* without what opens a door."""
    return _SECRET.sub(r"\1[secret]", text)


def recent_logs(folder: Path, since: float) -> list[Path]:
    """Return the logs below *folder* that were written since then, newest last."""
    found = []
    depths = ("*/*.log", "*/*/*.log", "*/*/.jupyter/*.log")
    logs = [log for depth in depths for log in folder.glob(depth)]
    # Not twice: pytest has a link to each test's newest folder.
    for log in {log.resolve() for log in logs}:
        with suppress(OSError):
            written = log.stat()
            if written.st_size and written.st_mtime >= since - RECENT_SECONDS:
                found.append((written.st_mtime, log))
    return [log for _, log in sorted(found)][-LOGS:]


def tail(log: Path) -> str:
    """Return the last lines of *log*."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - CHARACTERS))
        text = file.read().decode(errors="replace")
    return without_secrets("\n".join(text.splitlines()[-LINES:]))


def of_processes(folder: Path, since: float) -> Iterator[tuple[str, str]]:
    """Tell the ends of all logs below *folder* that were written since then."""
    for log in recent_logs(folder, since):
        with suppress(OSError):
            yield f"end of {log.relative_to(folder.resolve())}", tail(log)


def of_page(page: Any) -> str:
    """Tell where a browser's page is, and what a person reads there."""
    told = f"{page.url}\n"
    try:
        told += page.locator("body").inner_text(timeout=PAGE_MS)
    except Exception as error:  # noqa: BLE001 - no report fails because of this
        told += f"(it cannot be read: {error})"
    return without_secrets(told[:CHARACTERS])


def of_pages(fixtures: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Tell of each browser's page among the *fixtures* of a test."""
    for name, value in fixtures.items():
        if hasattr(value, "locator") and hasattr(value, "url"):
            yield f"what {name!r} shows", of_page(value)
