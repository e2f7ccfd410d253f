"""Writes the phrases of all reasons as TypeScript: ``src/timeline/phrases.ts``.

The English stands once, in ``fleet_contracts.phrases``.  Here it becomes literals that
translators' tools find.  A test compares the file with what this would write.
"""
# ruff: noqa: INP001 - a script beside the front end, not a package

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from fleet_contracts.phrases import PHRASES, REMEDIES
from fleet_contracts.reasons import Reason


TARGET = Path(__file__).parent.parent / "src" / "timeline" / "phrases.ts"

_HEADER = """\
// Written by scripts/generate_phrases.py from fleet_contracts; do not edit.

import type { Reason } from './contract.js';
import type { ITranslator } from './translator.js';

type Phrase = (t: ITranslator) => string;
"""
_PLACEHOLDER = re.compile(r"\{[a-z]+\}")


def generate() -> str:
    """Return the whole module."""
    return "\n".join(
        [
            _HEADER,
            "/** Why: no capital letter, no full stop; a part in brackets may be left out. */",
            *_table("PHRASES", PHRASES),
            "/** What would change it, and who can do that. */",
            *_table("REMEDIES", REMEDIES),
        ]
    )


def _table(name: str, phrases: Mapping[Reason, str]) -> list[str]:
    rows = [f"  {reason.value}: t => {_phrase(phrases[reason])}" for reason in Reason]
    return [
        f"export const {name}: Readonly<Record<Reason, Phrase>> = {{",
        ",\n".join(rows),
        "};",
        "",
    ]


def _phrase(template: str) -> str:
    """Return the call that translates *template* and leaves its placeholders in it."""
    names = list(dict.fromkeys(_PLACEHOLDER.findall(template)))
    text = _PLACEHOLDER.sub(lambda match: f"%{names.index(match[0]) + 1}", template)
    return f"t.__({', '.join(_literal(part) for part in [text, *names])})"


def _literal(text: str) -> str:
    if "'" in text:
        return json.dumps(text, ensure_ascii=False)
    return f"'{text}'"


if __name__ == "__main__":
    TARGET.write_text(generate(), encoding="utf-8")
    sys.stdout.write(f"{TARGET.name} written\n")
