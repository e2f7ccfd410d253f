"""What was found, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final


_MARKS: Final = {True: "ok", False: "NO", None: "??"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    ok: bool | None
    """None: it could not be found out, or is worth knowing and stops nothing."""
    text: str
    remedy: str = ""

    @property
    def stops_work(self) -> bool:
        """Whether nothing can start here because of it."""
        return self.ok is False


def document(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return *findings* as JSON values, for programs."""
    kept = list(findings)
    return {
        "schema": "jupyterhub-fleet/examination/v1",
        "ok": not any(finding.stops_work for finding in kept),
        "findings": [asdict(finding) for finding in kept],
    }


def prose(findings: Iterable[Finding]) -> str:
    """Return *findings* for a person: what is wrong has its remedy below."""
    return "\n".join(_lines(findings)) + "\n"


def _lines(findings: Iterable[Finding]) -> Iterator[str]:
    kept = list(findings)
    for finding in kept:
        yield f"{_MARKS[finding.ok]}  {finding.subject}: {finding.text}"
        if finding.remedy and finding.ok is not True:
            yield f"    {finding.remedy}"
    count = sum(finding.stops_work for finding in kept)
    yield ""
    yield (
        "Nothing stands in the way of work on this computer."
        if count == 0
        else f"{count} of these {'keeps' if count == 1 else 'keep'} this computer from "
        "taking work."
    )
