"""What can go wrong on the Hub's side, and whose move it is.

::

    HubSideError
    ├── ConfigurationError          the admin's: a file, a setting, a missing program
    └── ControllerError             the wire to the controller
        ├── ControllerUnreachableError    it does not answer; try again
        └── ControllerRefusedError        it answered no; trying again is useless

A start that ends with a sentence for the user is ``refusals.SpawnRefused``: it needs
JupyterHub, which takes longer to import than a short command to run.
"""

from __future__ import annotations


class HubSideError(Exception):
    """The base of this package's errors."""


class ConfigurationError(HubSideError):
    """Something that the admin must change; the message says what and how."""


class ControllerError(HubSideError):
    """The wire to the controller failed."""


class ControllerUnreachableError(ControllerError):
    """The controller did not answer, or broke off; it may answer a moment later."""


class ControllerRefusedError(ControllerError):
    """The controller answered that it will not; repeating the request changes nothing."""
