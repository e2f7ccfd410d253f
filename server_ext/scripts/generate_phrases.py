"""Writes the words of timelines as TypeScript: ``src/timeline/phrases.ts``.

The English stands once, in ``fleet_contracts.phrases`` and ``timeline_phrases``.  Here
it becomes literals that translators' tools find.  A test compares the file with what this would write.
"""
# ruff: noqa: INP001 - a script beside the front end, not a package

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from fleet_contracts import timeline_phrases as timeline
from fleet_contracts.causes import CAUSES
from fleet_contracts.phrases import PHRASES, REMEDIES
from fleet_contracts.reasons import Reason
from fleet_contracts.voices import OF_ANOTHER


TARGET = Path(__file__).parent.parent / "src" / "timeline" / "phrases.ts"

_HEADER = """\
// Written by scripts/generate_phrases.py from fleet_contracts; do not edit.

import type { Phase, Reason, State } from './contract.js';

/** A text in English, which is translated when it is said. */
export type Phrase = string;

/** Marks a text for the tools of translators; built, nothing is left of it. */
const t = { __: (text: string): Phrase => text };
"""


def generate() -> str:
    """Return the whole module."""
    return "\n".join(
        [
            _HEADER,
            "/** Why: no capital letter, no full stop; a part in brackets may be left out. */",
            *_table("PHRASES", "Reason", _by_reason(PHRASES)),
            "/** What would change it, and who can do that. */",
            *_table("REMEDIES", "Reason", _by_reason(REMEDIES)),
            "/** Why a promised time cannot be kept, where no reason of a machine says it. */",
            *_table("CAUSES", "string", CAUSES),
            "/** The labels of the five rows. */",
            *_table("PHASE_LABELS", "Phase", timeline.PHASES),
            "/** What a glyph says to whoever cannot see it. */",
            *_table("STATUSES", "string", timeline.STATUSES),
            "/** One plain sentence for each state. */",
            *_table("HEADLINES", "State", timeline.HEADLINES),
            "/** The names of the states, inside a sentence. */",
            *_table("STATES", "State", timeline.STATES),
            "/** What happened. */",
            *_table("EVENTS", "string", timeline.EVENTS),
            "/** What an agent's step is called. */",
            *_table("WORK", "string", timeline.WORK),
            "/** What belongs to none of the tables above. */",
            *_texts(),
            "/** What is said instead to whoever looks at somebody else's server. */",
            *_others(),
        ]
    )


def _by_reason(phrases: Mapping[Reason, str]) -> dict[Reason, str]:
    return {reason: phrases[reason] for reason in Reason}


def _table(name: str, key: str, phrases: Mapping[str, str]) -> list[str]:
    return [
        f"export const {name}: Readonly<Record<{key}, Phrase>> = {{",
        _rows(phrases),
        "};",
        "",
    ]


def _texts() -> list[str]:
    return [
        "export const TEXTS = {",
        _rows(_used(timeline.TEXTS)),
        "} satisfies Readonly<Record<string, Phrase>>;",
        "",
    ]


def _used(texts: Mapping[str, str]) -> dict[str, str]:
    """Return those that the front end says: what only pages say is left to them."""
    sources = sorted((TARGET.parent.parent).rglob("*.ts"))
    code = "".join(path.read_text() for path in sources if path != TARGET)
    return {
        name: text
        for name, text in texts.items()
        if re.search(rf"\bTEXTS\.{name}\b", code)
    }


def _others() -> list[str]:
    rows = ",\n".join(
        f"  {_literal(text)}: {_phrase(other)}" for text, other in OF_ANOTHER.items()
    )
    return [
        "export const OF_ANOTHER: Readonly<Record<string, Phrase>> = {",
        rows,
        "};",
        "",
    ]


def _rows(phrases: Mapping[str, str]) -> str:
    return ",\n".join(f"  {key}: {_phrase(phrase)}" for key, phrase in phrases.items())


def _phrase(template: str) -> str:
    """Return the call that marks *template*, the same text as on the Hub's pages."""
    return f"t.__({_literal(template)})"


def _literal(text: str) -> str:
    if "'" in text:
        return json.dumps(text, ensure_ascii=False)
    return f"'{text}'"


if __name__ == "__main__":
    TARGET.write_text(generate(), encoding="utf-8")
    sys.stdout.write(f"{TARGET.name} written\n")
