"""How a command on the Hub's machine asks the running controller.

The address and the secret are in the data folder, readable by its owner alone.
"""

from __future__ import annotations

import json
import os
import pwd
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any, Final, cast

from fleet_hub.errors import ConfigurationError
from fleet_hub.places import Places, read_secret


_ANSWER_SECONDS: Final = 60.0
_MOST_BYTES: Final = 1 << 30


def ask(
    places: Places, path: str, *, body: bytes | None = None, missing: str = ""
) -> dict[str, Any]:
    """Return the controller's answer to a request for *path*, which is internal.

    Raises:
        ConfigurationError: it cannot be asked, knows no such thing (*missing* says
            which), or refuses.
    """
    return cast("dict[str, Any]", json.loads(ask_raw(places, path, body, missing)))


def ask_raw(
    places: Places, path: str, body: bytes | None = None, missing: str = ""
) -> bytes:
    """Return the controller's answer as it came; see ``ask``."""
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
            return cast("bytes", answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        said = _message(error)
        if error.code == HTTPStatus.NOT_FOUND and (missing or said):
            raise ConfigurationError(missing or said) from error
        raise ConfigurationError(
            f"the controller at {url} answered {error.code}: {said or 'nothing else'}"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"no controller answers at {url}: is the Hub running? ({error})"
        ) from error


def who() -> str:
    """Return who sits at this terminal, as the system knows them."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _message(error: urllib.error.HTTPError) -> str:
    """Return what the controller said beside the code, if it said anything."""
    with error:
        try:
            content = json.load(error)
        except ValueError:
            return ""
    message = content.get("message") if isinstance(content, dict) else None
    return message if isinstance(message, str) else ""
