"""Where are a notebook's files, and whose are they?

They outlive every allocation; nothing in this driver ever removes them.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from fleet_agent.drivers.base import DriverError, NotebookFolder
from fleet_agent.drivers.common.accounts import Account
from fleet_contracts.reasons import Reason


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class NotebookFolders:
    """The notebook folders of one machine, below a folder only the agent may enter."""

    def __init__(self, base: Path) -> None:
        """Keep them in *base*."""
        self._base = base

    @property
    def base(self) -> Path:
        """Where they are."""
        return self._base

    def named(self, name: str, account: Account) -> NotebookFolder:
        """Return where the folder *name* of *account* is; nothing is made.

        Raises:
            DriverError: the name leads elsewhere.
        """
        if not _NAME.fullmatch(name):
            raise _refusal(f"{name!r} is no name for a notebook folder")
        return NotebookFolder(
            base=self._base, name=name, uid=account.uid, gid=account.gid
        )

    def ensure(self, name: str, account: Account) -> Path:
        """Return the folder *name* of *account*, made if it is not there.

        Raises:
            DriverError: the name leads elsewhere, or the folder is somebody else's.
        """
        path = self.named(name, account).path
        self._base.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            found = path.lstat()
            # Left by a stop between the two steps below: root's, and still empty.
            fresh = found.st_uid == os.geteuid() and not any(path.iterdir())
            if not stat.S_ISDIR(found.st_mode) or not (
                found.st_uid == account.uid or fresh
            ):
                raise _refusal(f"{path} does not belong to uid {account.uid}") from None
        if path.lstat().st_uid != account.uid:
            os.chown(path, account.uid, account.gid, follow_symlinks=False)
        return path


def _refusal(message: str) -> DriverError:
    return DriverError(
        Reason.START_FAILED,
        message,
        detail="The folder for this notebook's files on this machine cannot be used. "
        "Tell the person who runs this machine.",
    )
