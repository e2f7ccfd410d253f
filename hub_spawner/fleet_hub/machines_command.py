"""``jupyter-fleet machines`` and ``jupyter-fleet redetect``, on the Hub's machine.

They ask the running controller, with the secret and the address in its data folder.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import quote

from fleet_hub.errors import ConfigurationError
from fleet_hub.machine_prose import describe_machines
from fleet_hub.places import Places, read_secret


_ANSWER_SECONDS: Final = 15.0


def show_machines(places: Places, *, as_json: bool) -> int:
    """Print all machines; return the exit status.

    Raises:
        ConfigurationError: the controller cannot be asked.
    """
    answer = _ask(places, "machines")
    if as_json:
        # ASCII alone: a machine's word must not reach a terminal as it is.
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    else:
        sys.stdout.write(describe_machines(answer["machines"]))
    return 0


def redetect(places: Places, machine: str) -> int:
    """Have *machine* look at itself again; return 0 if it was there to be asked.

    Raises:
        ConfigurationError: the controller cannot be asked, or knows no such machine.
    """
    path = f"machines/{quote(machine, safe='')}/redetect"
    answer = _ask(places, path, body=b"", missing=f"there is no machine {machine!r}")
    if answer["asked"]:
        sys.stdout.write(f"{machine} was asked to look at itself again.\n")
        return 0
    sys.stderr.write(
        f"{machine} is offline and could not be asked; it looks at itself again when "
        "it comes back.\n"
    )
    return 1


def _ask(
    places: Places, path: str, *, body: bytes | None = None, missing: str = ""
) -> dict[str, Any]:
    """Return the controller's answer."""
    if not places.controller_address.is_file():
        raise ConfigurationError(
            f"no controller has run with {places.root}; name its folder with --data-dir"
        )
    url = read_secret(places.controller_address)
    request = urllib.request.Request(  # noqa: S310 - the controller's own word
        f"{url}internal/{path}",
        data=body,
        headers={"Authorization": f"Bearer {read_secret(places.spawner_secret)}"},
    )
    # The secret must not travel through a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_ANSWER_SECONDS) as answer:
            return cast("dict[str, Any]", json.load(answer))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.NOT_FOUND and missing:
            raise ConfigurationError(missing) from error
        raise ConfigurationError(
            f"the controller at {url} answered {error.code}"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"no controller answers at {url}: is the Hub running? ({error})"
        ) from error
