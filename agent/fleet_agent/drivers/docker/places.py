"""Where on this machine are a container's own things?  Made here, in a thread."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from threading import Lock

from fleet_agent.drivers.base import NotebookFolder
from fleet_agent.drivers.common.accounts import Account, Identities, UidRange
from fleet_agent.drivers.common.folders import NotebookFolders
from fleet_agent.drivers.docker.network import Network
from fleet_agent.drivers.docker.planning import Place
from fleet_agent.drivers.docker.runs import RunFolder
from fleet_contracts.workloads import WorkloadSpec


class Places:
    """What the driver keeps on disk, below a folder that only the agent may enter."""

    def __init__(self, state: Path, uids: UidRange | None) -> None:
        """Keep it in *state*; nothing is touched yet."""
        self._state = state
        self._notebooks = NotebookFolders(state / "notebooks")
        self._identities = Identities(state / "uids.json", uids)
        self._one_at_a_time = Lock()
        """Two threads must not choose the same uid for two owners, nor two marks."""

    def mark(self) -> str:
        """Return this agent's own mark, made at the first call and kept."""
        with self._one_at_a_time:
            return self._mark(self._state / "agent")

    def _mark(self, path: Path) -> str:
        with suppress(FileNotFoundError):
            return path.read_text(encoding="ascii").strip()
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("w", encoding="ascii") as file:
            file.write(secrets.token_hex(6))
            file.flush()
            # Durable before first use: containers with another mark are a stranger's.
            os.fsync(file.fileno())
        part.rename(path)
        return path.read_text(encoding="ascii").strip()

    def run(self, run: str) -> RunFolder:
        """Return the folder of *run*; it may not be there.

        Raises:
            ValueError: *run* is no name of a run.
        """
        return RunFolder(self._state / "runs", run)

    @property
    def notebooks(self) -> Path:
        """Where all notebook folders are."""
        return self._notebooks.base

    def notebook(self, name: str, owner_id: int, owner: str) -> NotebookFolder:
        """Return where the notebook *name* of *owner* is; nothing is made.

        Raises:
            DriverError: the name leads elsewhere.
            OutOfUidsError: no uid is left for the owner.
        """
        return self._notebooks.named(name, self._account(owner_id, owner))

    def _account(self, owner_id: int, owner: str) -> Account:
        with self._one_at_a_time:
            return self._identities.account(owner_id, owner)

    def make(self, spec: WorkloadSpec, run: str, network: Network) -> Place:
        """Return the place of *spec*'s container, made now.

        Raises:
            DriverError: the notebook folder cannot be used.
            OutOfUidsError: no uid is left for the owner.
        """
        account = self._account(spec.owner_id, spec.owner)
        folder = self.run(run)
        folder.make(account)
        return Place(
            account=account,
            notebook=self._notebooks.ensure(spec.notebook, account),
            temporary=folder.temporary,
            passwd=folder.passwd,
            group=folder.group,
            network=network.name,
            gateway=network.gateway,
        )
