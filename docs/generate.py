"""Write the parts of the reference that come from the code.

Run as ``python docs/generate.py``; with ``--check`` it changes nothing and fails when
a page is stale, so that a table can never disagree with the code.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fleet_contracts.allocations import HOLDING, PHASE, TRANSITIONS
from fleet_contracts.reasons import FACTS, Explanation, Reason
from fleet_contracts.sentences import remedy, sentence


REFERENCE = Path(__file__).parent / "reference"


def states_page() -> str:
    """Return the page on the life of a workload."""
    edges: dict[tuple[str, str], list[str]] = {}
    for state, row in TRANSITIONS.items():
        for event, target in row.items():
            if target is not None and target is not state:
                edges.setdefault((state.value, target.value), []).append(event.value)
    lines = [
        "# States of a workload",
        "",
        "Generated from `fleet_contracts.allocations`.",
        "",
        "| State | Phase that people see | Holds resources |",
        "|---|---|---|",
        *(
            f"| `{state}` | {PHASE[state]} | {'yes' if state in HOLDING else 'no'} |"
            for state in TRANSITIONS
        ),
        "",
        "| From | To | On |",
        "|---|---|---|",
        *(
            f"| `{source}` | `{target}` | {', '.join(f'`{name}`' for name in names)} |"
            for (source, target), names in edges.items()
        ),
        "",
        "An event that a row does not name either changes nothing, because messages may be repeated, or is refused as impossible.",
        "",
    ]
    return "\n".join(lines)


def reasons_page() -> str:
    """Return the page on reason codes."""
    lines = [
        "# Reason codes",
        "",
        "Generated from `fleet_contracts.reasons` and `fleet_contracts.sentences`.",
        "",
        "Codes are stable: they are metric labels, translation keys and the `reason` of REST answers.",
        "Among the reasons of a workload itself the lowest tier is the headline; among machines the highest is.",
        "",
        "| Code | Kind | Tier | Sentence | What helps |",
        "|---|---|---|---|---|",
    ]
    for reason in Reason:
        text = sentence(Explanation(reason=reason)).replace("|", "\\|")
        advice = remedy(reason).replace("|", "\\|")
        fact = FACTS[reason]
        lines.append(f"| `{reason}` | {fact.kind} | {fact.tier} | {text} | {advice} |")
    return "\n".join([*lines, ""])


PAGES = {"states.md": states_page, "reasons.md": reasons_page}


def main(argv: list[str] | None = None) -> int:
    """Write or check the generated pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail on a stale page")
    options = parser.parse_args(argv)
    stale = []
    for name, page in PAGES.items():
        path, text = REFERENCE / name, page()
        if path.is_file() and path.read_text() == text:
            continue
        stale.append(name)
        if not options.check:
            path.write_text(text)
    if stale and options.check:
        sys.stderr.write(f"stale, run python docs/generate.py: {', '.join(stale)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
