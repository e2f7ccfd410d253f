"""``jupyter-fleet catalog status``: what the running controller makes of its catalog."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from fleet_hub.asking_controller import Controller, ask
from fleet_hub.terminal import Style, width, wrapped


_SINGULAR: Final = {
    "profiles": "profile",
    "classes": "class",
    "runtimes": "runtime",
    "quotas": "quota",
}


def show_status(controller: Controller, *, as_json: bool) -> int:
    """Print the catalog's state; return 1 where the file as it is now cannot be used."""
    document = ask(controller, "catalog")
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(_lines(document, Style.of())) + "\n")
    return 0 if document["is_in_use"] else 1


def _lines(document: dict[str, Any], style: Style) -> Iterator[str]:
    holds = ", ".join(
        f"{count} {_SINGULAR[name] if count == 1 else name}"
        for name, count in document["holds"].items()
    )
    where = document["path"] or "the catalog that comes with the program"
    yield style.faint(wrapped(where, width()))
    if document["is_in_use"]:
        told = f"In force since {_moment(document['loaded_at'])}: {holds}."
        yield style.bold(wrapped(told, width(), indent="✓ ", hanging="  "))
    else:
        told = f"The file cannot be used as it is since {_moment(document['faults_since'])}."
        yield style.bold(wrapped(told, width(), indent="✕ ", hanging="  "))
        kept = f"The one of {_moment(document['loaded_at'])} stays in force: {holds}."
        yield wrapped(kept, width(), indent="  ")
        for fault in document["faults"]:
            text = (
                f"{fault['file']}:{fault['line']}: {fault['message']}. "
                f"{fault['remedy']}"
            )
            yield wrapped(text, width(), indent="  ", hanging="    ")
    for reload in document["reloads"]:
        yield ""
        yield style.bold(f"Changed {_moment(reload['at'])}")
        for edit in reload["edits"]:
            yield wrapped(edit["text"], width(), indent="  ", hanging="      ")


def _moment(text: str) -> str:
    return f"{text[:19].replace('T', ' ')} UTC"
