"""Write the parts of the reference that come from the code.

Run as ``python docs/generate.py``; with ``--check`` it changes nothing and fails when
a page is stale, so that a table can never disagree with the code.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import yaml
from generated_agent import agent_page
from generated_service import command_line_page, metrics_page
from generated_settings import settings_page

from fleet_contracts.allocations import HOLDING, PHASE, TRANSITIONS
from fleet_contracts.capabilities import WorkerCapabilities
from fleet_contracts.causes import CAUSES
from fleet_contracts.reasons import FACTS, Explanation, Reason
from fleet_contracts.sentences import remedy, sentence
from fleet_contracts.support import INDEPENDENT, SupportLevel
from fleet_contracts.workloads import DriverName


DOCS = Path(__file__).parent
REFERENCE = DOCS / "reference"

EXAMPLES = {
    Reason.PROFILE_UNKNOWN: "gpu-huge",
    Reason.CLASS_UNKNOWN: "gpu-huge",
    Reason.OPTION_UNKNOWN: "image",
    Reason.RUNTIME_NONE_MATCHES: "the class gpu-huge",
    Reason.ISOLATION_TOO_WEAK: "native",
    Reason.QUOTA_IN_USE: "bio",
    Reason.DRIVER_UNAVAILABLE: "native",
    Reason.RUNTIME_MISSING: "native",
    Reason.CAPABILITY_MISSING: "torch.cuda",
    Reason.LABEL_MISMATCH: "room=b12",
}
"""What a sentence is about, where it says little without."""


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
        "The sentences are examples: real ones name the machine, the numbers and the holder.",
        "Codes are stable: they are metric labels, translation keys and the `reason` of REST answers.",
        "Among the reasons of a workload itself the lowest tier is the headline; among machines the highest is.",
        "",
        "| Code | Kind | Tier | Sentence | What helps |",
        "|---|---|---|---|---|",
    ]
    for reason in Reason:
        text = sentence(
            Explanation(reason=reason, subject=EXAMPLES.get(reason))
        ).replace("|", "\\|")
        advice = remedy(reason).replace("|", "\\|")
        fact = FACTS[reason]
        lines.append(f"| `{reason}` | {fact.kind} | {fact.tier} | {text} | {advice} |")
    lines += [
        "",
        "## Why a promised time cannot be kept",
        "",
        "The `subject` of `promise_broken` is one of these, or the code of what a machine takes nothing for; its holder, if there is one, is who came before.",
        "",
        "| Cause | Sentence |",
        "|---|---|",
    ]
    for cause in CAUSES:
        text = sentence(Explanation(reason=Reason.PROMISE_BROKEN, subject=cause))
        lines.append(f"| `{cause}` | {text} |")
    return "\n".join([*lines, ""])


LEVELS = {
    SupportLevel.TESTED: "continuous integration runs it",
    SupportLevel.HARDWARE_VALIDATED: "its hardware test was run on the real thing, and the run is recorded",
    SupportLevel.IMPLEMENTED: "an executable path exists, and it has not run on this hardware; it is scheduled",
    SupportLevel.DETECTION_ONLY: "seen and shown; nothing is placed on it",
    SupportLevel.UNSUPPORTED: "nothing is placed on it",
}


def support_page() -> str:
    """Return the page on what is supported, with the remarks of the evidence."""
    evidence = yaml.safe_load((DOCS / "support-evidence.yaml").read_text())
    drivers = list(DriverName)
    lines = [
        "# What is supported",
        "",
        "Generated from `fleet_contracts.support`, the only table that placement consults, and `docs/support-evidence.yaml`.",
        "",
        "| Level | Meaning |",
        "|---|---|",
        *(f"| {level} | {meaning} |" for level, meaning in LEVELS.items()),
        "",
        "One workload on one machine:",
        "",
        f"| Accelerator | {' | '.join(drivers)} |",
        f"|---{'|---' * len(drivers)}|",
        *(
            f"| {accelerator} | {' | '.join(row[driver] for driver in drivers)} |"
            for accelerator, row in INDEPENDENT.items()
        ),
        "",
        "One workload over several processes or machines is unsupported everywhere.",
        "",
        "## Remarks",
        "",
        *(
            f"- {accelerator}, {driver}: {cell['remark']}"
            for accelerator, row in evidence.items()
            for driver, cell in row.items()
            if "remark" in cell
        ),
        "",
    ]
    return "\n".join(lines)


def capabilities_schema() -> str:
    """Return the JSON Schema of the picture that a machine reports."""
    schema = WorkerCapabilities.model_json_schema(by_alias=True, mode="serialization")
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


PAGES = {
    "states.md": states_page,
    "reasons.md": reasons_page,
    "support.md": support_page,
    "capabilities.schema.json": capabilities_schema,
    "command-line.md": command_line_page,
    "agent.md": agent_page,
    "metrics.md": metrics_page,
    "settings.md": settings_page,
}


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
