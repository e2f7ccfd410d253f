"""Runs notebooks on this machine itself: a pinned environment in a sandbox.

The isolation is weak - one kernel, one network - so it is for the machine's owner.
Whatever must be undone is in handles: a notebook outlives its agent, and a new agent
finds it again.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import structlog
from typing_extensions import override

from fleet_agent.drivers.base import (
    Condition,
    Driver,
    Handle,
    Job,
    NotebookFolder,
    ProgressSink,
    Standing,
)
from fleet_agent.drivers.common.accounts import (
    Account,
    Identities,
    OutOfUidsError,
)
from fleet_agent.drivers.common.folders import NotebookFolders
from fleet_agent.drivers.native import host
from fleet_agent.drivers.native.accelerators import nvidia_mounts
from fleet_agent.drivers.native.confined import Confined, ConfinedEndedError
from fleet_agent.drivers.native.confining import Footing, confine
from fleet_agent.drivers.native.ending import Ending
from fleet_agent.drivers.native.environments.store import Environment
from fleet_agent.drivers.native.inside.landlock import can_scope
from fleet_agent.drivers.native.limits import Limits, delegated
from fleet_agent.drivers.native.processes import boot_id, identify
from fleet_agent.drivers.native.records import Record
from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.drivers.native.settings import NativeSettings, environment_store
from fleet_agent.drivers.native.standby import Standby
from fleet_agent.drivers.native.starting import by, serve
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import DriverName


_log = structlog.get_logger(__name__)


class NativeDriver(Driver):
    """The driver ``native``; see the module's docstring."""

    name: ClassVar[DriverName] = DriverName.NATIVE

    def __init__(self, settings: NativeSettings) -> None:
        """Work below ``settings.state``; nothing is touched yet."""
        self._settings = settings
        self._runs = settings.state / "runs"
        self._notebooks = NotebookFolders(settings.state / "notebooks")
        self._identities = Identities(settings.state / "uids.json", settings.uids)
        self._ending = Ending()
        self._groups = delegated(_short(settings.state))
        self._standby = Standby(
            settings.state / "standby",
            self._ending,
            root=settings.uids is not None,
            groups=self._groups,
        )
        self._served: dict[str, Footing] = {}
        """What the servers that this agent started stand on, by run."""
        self._renewals: set[asyncio.Task[None]] = set()
        self._closing = False
        self._store = environment_store(settings)

    @override
    async def open(self) -> None:
        """Verify every environment, and remove what nobody needs any more.

        A broken environment is set aside and built again when it is needed.
        """
        for limitation in self.limitations():
            _log.warning("sandbox is limited", limitation=limitation)
        await self._standby.open()
        if self._groups is not None:
            kept = [
                group.name for run in RunFolder.all(self._runs) for group in run.groups
            ]
            await asyncio.to_thread(self._groups.sweep, set(kept))
        await self._store.verify_all()
        # A folder that several agents share is not this one's to tidy up.
        if self._settings.environments is None:
            in_use = {run.environment for run in RunFolder.all(self._runs)}
            await self._store.collect(in_use)

    def limitations(self) -> tuple[str, ...]:
        """Return what this machine's sandbox cannot keep apart, one sentence each."""
        found = []
        if not can_scope():
            found.append(
                "This kernel cannot close abstract Unix sockets to notebooks "
                "(it needs Landlock 6, Linux 6.12 or newer)."
            )
        if self._groups is None:
            found.append(
                "No control groups were delegated to this agent, so notebooks are not "
                "kept to the cores and the memory of their class (run it as a service: "
                "fleet-agent install)."
            )
        return tuple(found)

    @property
    @override
    def keeps_limits(self) -> bool:
        return self._groups is not None

    @override
    def environments(self) -> tuple[str, ...]:
        return self._store.refs()

    @override
    async def interpreters(self) -> dict[str, Path]:
        built = await self._store.built()
        return {ref: tree / "bin" / "python" for ref, tree in built.items()}

    @override
    def notebook(self, name: str, owner_id: int, owner: str) -> NotebookFolder:
        return self._notebooks.named(name, self.account_of(owner_id, owner))

    @override
    def notebooks(self) -> Path:
        return self._notebooks.base

    def account_of(self, owner_id: int, owner: str) -> Account:
        """Return the account that *owner*'s notebooks run as."""
        return self._identities.account(owner_id, owner)

    def check(self) -> None:
        """Say whether this machine can run anything.

        Raises:
            DriverError: the sandbox tool is missing or too old.
        """
        host.find_tools(root=self._settings.uids is not None)

    async def provide(self, ref: str, progress: ProgressSink) -> Environment:
        """Return the environment that *ref* names, built or verified now.

        Raises:
            DriverError: it cannot be built.
        """
        return await self._store.prepare(ref, progress)

    @override
    async def prepare(self, job: Job, progress: ProgressSink) -> None:
        self.check()
        await self.provide(job.spec.runtime.ref, progress)

    @override
    async def start(self, job: Job, progress: ProgressSink) -> AsyncIterator[Handle]:
        deadline = asyncio.get_running_loop().time() + job.spec.start_seconds
        folder = RunFolder.of(self._runs, job.allocation, job.epoch)
        record = Record.begin(folder)
        yield Handle(allocation=job.allocation, data=record.to_json())
        # An agent that died at this very point may have left something.
        await self._ending.undo(record, folder, grace_seconds=0)
        environment = await self._store.prepare(job.spec.runtime.ref, progress)
        progress(Progress(step="start_sandbox"))
        try:
            footing = self._footing(job, environment)
            confined = self._confine(footing, folder)
        except (OSError, OutOfUidsError) as error:
            raise host.cannot_confine(error) from error
        supervisor = identify(confined.process.pid)
        record = replace(
            record, supervisor=supervisor, environment=environment.identity
        )
        try:
            record = await by(
                deadline,
                self._contained(confined, folder, record),
                folder=folder,
                ended=self._end_of(record, folder),
            )
            yield Handle(allocation=job.allocation, data=record.to_json())
            progress(Progress(step="start_server"))
            ended = self._end_of(record, folder)
            serving = serve(
                job.spec,
                confined,
                addresses=self._settings.addresses,
                extra=self._settings.notebook_environment,
                ended=ended,
            )
            url = await by(deadline, serving, folder=folder, ended=ended)
        finally:
            confined.close()
        self._served[record.run] = footing
        yield Handle(allocation=job.allocation, data=record.to_json(), url=url)

    @override
    async def stop(self, handle: Handle, *, grace_seconds: float) -> None:
        record = Record.from_json(handle.data)
        folder = self._folder(record)
        await self._ending.undo(record, folder, grace_seconds=grace_seconds)
        footing = self._served.pop(record.run, None)
        if footing is not None and self._settings.standby and not self._closing:
            # Its owner may come back; whoever stopped it does not wait for that.
            task = asyncio.create_task(self._standby.renew(footing))
            self._renewals.add(task)
            task.add_done_callback(self._renewals.discard)

    @override
    async def close(self) -> None:
        """Let running workloads run; end only what waits for one."""
        self._closing = True
        await asyncio.gather(*self._renewals)
        await self._standby.close()

    @override
    async def wait(self, handle: Handle) -> Condition:
        record, folder = self._complete(handle)
        return await self._ending.wait(record, folder)

    @override
    async def recover(self, handle: Handle) -> Condition:
        record, folder = self._complete(handle)
        if record.boot != boot_id():
            return Condition(
                standing=Standing.GONE,
                explanation=Explanation(
                    reason=Reason.MACHINE_REBOOTED,
                    detail="The machine was restarted, which ended the notebook. "
                    "The files are kept.",
                ),
            )
        first, supervisor = record.open_first(), record.open_supervisor()
        for process in (first, supervisor):
            if process:
                process.close()
        if first and supervisor:
            running = handle.url is not None
            return Condition(
                standing=Standing.RUNNING if running else Standing.STARTING
            )
        # The server is gone; whatever it left behind in its namespace goes as well.
        return await self._ending.wait(record, folder)

    def _footing(self, job: Job, environment: Environment) -> Footing:
        """Return what the sandbox of *job* stands on."""
        spec = job.spec
        account = self.account_of(spec.owner_id, spec.owner)
        return Footing(
            environment=environment,
            account=account,
            notebook=self._notebooks.ensure(spec.notebook, account),
            devices=nvidia_mounts(spec.resources.devices),
            limits=Limits.of(spec.resources),
        )

    def _confine(self, footing: Footing, folder: RunFolder) -> Confined:
        """Return a process in the sandbox; it waits for its launch message."""
        ready = self._standby.take(footing, folder)
        if ready is not None:
            return ready
        root = self._settings.uids is not None
        confined = confine(footing, folder, root=root, groups=self._groups)
        self._ending.adopt(confined.process)
        return confined

    async def _contained(
        self, confined: Confined, folder: RunFolder, record: Record
    ) -> Record:
        """Return the record with the sandbox's processes, once it stands."""
        await confined.heard("contained")
        pid = folder.read_status().child_pid
        first = identify(pid) if pid is not None else None
        if first is None:
            raise ConfinedEndedError("the sandbox did not say which process is first")
        return replace(record, first=first)

    def _end_of(
        self, record: Record, folder: RunFolder
    ) -> Callable[[], Awaitable[Condition]]:
        async def ended() -> Condition:
            return await self._ending.wait(record.completed(folder), folder)

        return ended

    def _complete(self, handle: Handle) -> tuple[Record, RunFolder]:
        record = Record.from_json(handle.data)
        folder = self._folder(record)
        return record.completed(folder), folder

    def _folder(self, record: Record) -> RunFolder:
        if not re.fullmatch(r"[0-9a-f]{24}", record.run):
            raise ValueError("the handle names no run folder")
        return RunFolder(self._runs / record.run)


def _short(state: Path) -> str:
    """Return what tells the agents of one machine apart."""
    return hashlib.sha256(str(state).encode()).hexdigest()[:8]
