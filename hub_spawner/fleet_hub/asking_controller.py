"""How a command asks the running controller.

On the Hub's machine the address and the secret are in the data folder, readable by its
owner alone.  From anywhere else it asks the public API, as the person whose token it
shows.
"""

from __future__ import annotations

import json
import os
import pwd
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, cast

from typing_extensions import override

from fleet_hub.errors import ConfigurationError
from fleet_hub.places import Places, read_secret


_ANSWER_SECONDS: Final = 60.0
_MOST_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A controller that is asked through the Hub's proxy, as a person of the Hub."""

    url: str
    """The service's address, with a slash at its end."""
    token: str = field(repr=False)


Controller = Places | Remote
"""By its data folder, or from anywhere."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token goes where it was sent, and nowhere else."""

    @override
    def redirect_request(self, *_: Any) -> None:
        return


def ask(
    controller: Controller,
    path: str,
    *,
    body: bytes | None = None,
    missing: str = "",
) -> dict[str, Any]:
    """Return the controller's answer to a request for *path*.

    Raises:
        ConfigurationError: it cannot be asked, knows no such thing (*missing* says
            which), or refuses.
    """
    return cast("dict[str, Any]", json.loads(ask_raw(controller, path, body, missing)))


def ask_raw(
    controller: Controller, path: str, body: bytes | None = None, missing: str = ""
) -> bytes:
    """Return the controller's answer as it came; see ``ask``."""
    url, headers, opener = _way(controller)
    request = urllib.request.Request(  # noqa: S310 - http alone, see ``_way``
        f"{url}{path}", data=body, headers=headers
    )
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


def _way(
    controller: Controller,
) -> tuple[str, dict[str, str], urllib.request.OpenerDirector]:
    """Return where to ask, what to show there, and what to ask with.

    Raises:
        ConfigurationError: nothing has run in the data folder.
    """
    if isinstance(controller, Remote):
        headers = {"Authorization": f"token {controller.token}"}
        opener = urllib.request.build_opener(_NoRedirects)
        return f"{controller.url}api/", headers, opener
    if not controller.controller_address.is_file():
        raise ConfigurationError(
            f"no controller has run with {controller.root}; name its folder with "
            "--data-dir"
        )
    secret = read_secret(controller.spawner_secret)
    # The secret must not travel through a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    url = f"{read_secret(controller.controller_address)}internal/"
    return url, {"Authorization": f"Bearer {secret}"}, opener


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
