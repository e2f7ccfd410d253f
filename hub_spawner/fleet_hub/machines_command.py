"""``jupyter-fleet machines`` and ``jupyter-fleet redetect``."""

from __future__ import annotations

import json
import sys
from urllib.parse import quote

from fleet_hub.asking_controller import Controller, ask, who
from fleet_hub.machine_prose import describe_machines


def show_machines(controller: Controller, *, as_json: bool) -> int:
    """Print all machines; return the exit status.

    Raises:
        ConfigurationError: the controller cannot be asked.
    """
    answer = ask(controller, "machines")
    if as_json:
        # ASCII alone: a machine's word must not reach a terminal as it is.
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    else:
        sys.stdout.write(describe_machines(answer["machines"]))
    return 0


def redetect(controller: Controller, machine: str) -> int:
    """Have *machine* look at itself again; return 0 if it was there to be asked.

    Raises:
        ConfigurationError: the controller cannot be asked, or knows no such machine.
    """
    path = f"machines/{quote(machine, safe='')}/redetect"
    body = json.dumps({"by": who()}).encode()
    answer = ask(
        controller, path, body=body, missing=f"there is no machine {machine!r}"
    )
    if answer["asked"]:
        sys.stdout.write(f"{machine} was asked to look at itself again.\n")
        return 0
    sys.stderr.write(
        f"{machine} is offline and could not be asked; it looks at itself again when "
        "it comes back.\n"
    )
    return 1
