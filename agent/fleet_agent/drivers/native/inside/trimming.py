"""What does a notebook server import that it never uses?

JupyterHub's single-user server imports the Hub's database layer and request handlers
for two names; they are half of what a start has to import, and a third of its memory.
While the server is imported, stand-ins take their places.  Afterwards they are gone:
whoever asks for one of these modules then, gets the real one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


_NAMES: dict[str, dict[str, type]] = {
    "sqlalchemy": {},
    # Caught around the Hub's own database work, of which there is none here.
    "sqlalchemy.exc": {"SQLAlchemyError": Exception},
    "jupyterhub.orm": {},
    "jupyterhub.roles": {},
    "jupyterhub.handlers": {},
    # Asked for by the log, which is quieter about it: the Hub's own handler.
    "jupyterhub.handlers.pages": {"HealthCheckHandler": object},
}
"""The modules, and the classes that are taken from them by name, with their bases."""

_FORMATS = (
    # Builds a large grammar at import.
    "rfc3987_syntax",
    # Brings a whole library of dates with it.
    "isoduration",
)
"""Checks of formats in JSON Schema that no schema of a notebook server asks for."""


class _StandIn(ModuleType):
    """A module that becomes the real one when something else of it is asked for."""

    def __getattr__(self, name: str) -> Any:  # type: ignore[explicit-override] # the decorator would have to be imported
        if name.startswith("__"):
            raise AttributeError(name)
        _remove(self)
        return getattr(import_module(self.__name__), name)


@contextmanager
def trimmed() -> Iterator[None]:
    """Import in this block what a notebook server needs, without what it does not."""
    for name in _FORMATS:
        # For good: it is looked for whenever a schema is checked.
        sys.modules[name] = None  # type: ignore[assignment]
    stand_ins = [_stand_in(name, classes) for name, classes in _NAMES.items()]
    try:
        yield
    finally:
        for module in stand_ins:
            _remove(module)


def _stand_in(name: str, classes: dict[str, type]) -> _StandIn:
    module = _StandIn(name)
    # A class of its own each: nothing that exists is an instance of it.
    for class_name, base in classes.items():
        setattr(module, class_name, type(class_name, (base,), {}))
    sys.modules[name] = module
    return module


def _remove(module: _StandIn) -> None:
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]
