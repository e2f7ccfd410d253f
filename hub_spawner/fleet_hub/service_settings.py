"""The controller's settings on their way from the Hub's configuration to its process.

An admin writes ``c.FleetService.open_seconds = 600`` beside all other settings of the
Hub.  The controller is another process, which is told when it is started.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final, Self

from traitlets.config import Config
from traitlets.config.loader import LazyConfigValue

from fleet_hub.errors import ConfigurationError


SETTINGS_VARIABLE: Final = "JUPYTERHUB_FLEET_SETTINGS"
"""What the Hub's configuration says under ``FleetService``, as JSON."""
SECTION: Final = "FleetService"


class ToldAtStart(str):
    """A variable whose value is made when the Hub starts the service.

    The Hub calls it then.  It also writes all variables into its database beforehand,
    where a text that says nothing will do; of a bare function it would warn each time.
    """

    __slots__ = ("tell",)

    def __new__(cls, tell: Callable[[Any], str]) -> Self:
        """Return an empty text that *tell* is called for."""
        made = super().__new__(cls)
        made.tell = tell
        return made

    tell: Callable[[Any], str]

    def __call__(self, starter: Any) -> str:
        """Return the value."""
        return self.tell(starter)


def settings_in(c: Any) -> dict[str, Any]:
    """Return what the configuration *c* says about the controller so far."""
    section = c.get(SECTION, {})
    return {
        name: value.get_value([]) if isinstance(value, LazyConfigValue) else value
        for name, value in section.items()
    }


def tell_settings(c: Any, check: Callable[[dict[str, Any]], None]) -> ToldAtStart:
    """Return what the Hub calls for the value of the variable, as it starts the service.

    Then the whole file has been read: a setting may stand before or after ``configure``.
    *check* raises where the settings must not be told.
    """

    def tell(_starter: Any) -> str:
        settings = settings_in(c)
        check(settings)
        try:
            return json.dumps(settings, default=os.fspath)
        except TypeError as error:
            raise ConfigurationError(
                f"a setting under c.{SECTION} is no number, text or list: {error}"
            ) from error

    return ToldAtStart(tell)


def settings_told() -> Config:
    """Return, in the controller's process, what the Hub's configuration said."""
    return Config({SECTION: json.loads(os.environ.get(SETTINGS_VARIABLE, "{}"))})
