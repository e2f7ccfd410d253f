"""What of one container lies in the agent's own folder while it runs?"""

from __future__ import annotations

import os
import re
from pathlib import Path

from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.common.trees import remove_tree
from fleet_agent.drivers.docker.planning import accounts_files


class RunFolder:
    """The account files and the private temp of one run."""

    def __init__(self, base: Path, run: str) -> None:
        """Name the folder of *run* below *base*; nothing is made.

        Raises:
            ValueError: *run* is no name of a run.
        """
        if not re.fullmatch(r"[0-9a-f]{24}", run):
            raise ValueError("the handle names no run folder")
        self.path = base / run
        self.passwd = self.path / "passwd"
        self.group = self.path / "group"
        self.temporary = self.path / "tmp"

    def make(self, account: Account) -> None:
        """Make the folder for a container of *account*."""
        self.path.mkdir(mode=0o700, parents=True)
        passwd, group = accounts_files(account)
        for path, text in ((self.passwd, passwd), (self.group, group)):
            path.write_text(text)
            path.chmod(0o644)
        self.temporary.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(self.temporary, account.uid, account.gid)

    def remove(self) -> None:
        """Remove all of it; symbolic links are never followed."""
        remove_tree(self.path)
