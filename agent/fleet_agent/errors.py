"""What can stop the agent itself, as one tree.

A workload that goes wrong is no error of the agent: it is a report with an
explanation (see ``drivers/base.py``).

::

    AgentError
    ├── SettingsError        a setting, the state folder or the token file is wrong
    ├── EnrolmentError       the controller did not take this computer in
    ├── AnotherAgentError    a second agent on the same state folder
    ├── LedgerError
    │   ├── LedgerBrokenError   it cannot be read; somebody has to look at it
    │   └── LedgerWriteError    it cannot be written now, such as on a full disk
    └── DismissedError       the controller sent this agent away for good
"""

from __future__ import annotations

import os


class AgentError(Exception):
    """Something that ends the agent; the text is for whoever runs it."""

    exit_code = 1


class SettingsError(AgentError):
    """A setting, the state folder or the token file is wrong."""

    exit_code = os.EX_CONFIG


class EnrolmentError(AgentError):
    """The controller was not reached, or did not take this computer in."""

    exit_code = os.EX_NOPERM


class AnotherAgentError(AgentError):
    """Another agent works on the same state folder."""

    exit_code = os.EX_TEMPFAIL


class LedgerError(AgentError):
    """The ledger cannot be used."""

    exit_code = os.EX_DATAERR


class LedgerBrokenError(LedgerError):
    """The ledger exists and cannot be read; it is never replaced by an empty one."""


class LedgerWriteError(LedgerError):
    """The ledger cannot be written now; nothing of the change is in it."""

    exit_code = os.EX_IOERR


class DismissedError(AgentError):
    """The controller said goodbye and does not want this agent back."""

    exit_code = os.EX_PROTOCOL
