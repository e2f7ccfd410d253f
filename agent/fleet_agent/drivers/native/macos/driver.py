"""Runs notebooks on this Mac itself: a pinned environment in the sandbox of macOS.

The counterpart of ``native.driver`` where there are no namespaces: the sandbox is a
profile that ``sandbox-exec`` applies, and a workload is a process group.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from fleet_agent.drivers.base import (
    Condition,
    Driver,
    DriverError,
    FenceFinding,
    Handle,
    Job,
    NotebookFolder,
    ProgressSink,
    Standing,
)
from fleet_agent.drivers.common.accounts import Identities
from fleet_agent.drivers.common.folders import NotebookFolders
from fleet_agent.drivers.native import host
from fleet_agent.drivers.native.confined import Confined
from fleet_agent.drivers.native.environments.interpreter import (
    Interpreter,
    describe,
)
from fleet_agent.drivers.native.environments.store import (
    Environment,
    EnvironmentStore,
)
from fleet_agent.drivers.native.macos import planning
from fleet_agent.drivers.native.macos.boot import boot_folder, collect
from fleet_agent.drivers.native.macos.fence import Fence, Subjects
from fleet_agent.drivers.native.macos.groups import Groups
from fleet_agent.drivers.native.macos.planning import Place
from fleet_agent.drivers.native.macos.records import MacRecord
from fleet_agent.drivers.native.macos.seatbelt import profile
from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.drivers.native.settings import NativeSettings, environment_store
from fleet_agent.drivers.native.starting import by, serve
from fleet_agent.processes import is_alive, name_of
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import DriverName


SANDBOX_EXEC = Path("/usr/bin/sandbox-exec")


class MacDriver(Driver):
    """The driver ``native`` of a Mac; see the module's docstring."""

    name: ClassVar[DriverName] = DriverName.NATIVE

    def __init__(
        self, settings: NativeSettings, *, sandbox_exec: Path = SANDBOX_EXEC
    ) -> None:
        """Work below ``settings.state``; nothing is touched yet."""
        self._settings = settings
        self._sandbox_exec = sandbox_exec
        # A profile judges paths after links were followed.
        self._state = Path(os.path.realpath(settings.state))
        self._runs = self._state / "runs"
        self._notebooks = NotebookFolders(self._state / "notebooks")
        self._identities = Identities(self._state / "uids.json", settings.uids)
        self._groups = Groups()
        self._store: EnvironmentStore = environment_store(settings)
        self._fence = Fence(
            state=self._state / "fence",
            boot=self._state / "boot",
            sandbox_exec=sandbox_exec,
        )

    @override
    async def open(self) -> None:
        """Verify every environment, and remove what nobody needs any more."""
        await self._store.verify_all()
        await self._fence.tidy()
        runs = RunFolder.all(self._runs)
        if not runs:
            await asyncio.to_thread(collect, self._state / "boot")
        # A folder that several agents share is not this one's to tidy up.
        if self._settings.environments is None:
            in_use = {run.environment for run in runs}
            await self._store.collect(in_use)

    @property
    @override
    def keeps_limits(self) -> bool:
        # macOS has no groups that could.
        return False

    @override
    def environments(self) -> tuple[str, ...]:
        return self._store.refs()

    @override
    async def interpreters(self) -> dict[str, Path]:
        built = await self._store.built()
        return {ref: tree / "bin" / "python" for ref, tree in built.items()}

    @override
    async def known_fence(self, os_build: str) -> FenceFinding | None:
        return await asyncio.to_thread(self._fence.known, os_build)

    @override
    async def probe_fence(self, os_build: str) -> FenceFinding:
        self.check()
        subjects = Subjects(
            interpreter=_by_real_path(await describe(self._settings.interpreter)),
            torch=await self._torch(),
        )
        return await self._fence.probe(os_build, subjects)

    async def _torch(self) -> Environment | None:
        """Return the environment whose torch looks for the GPU."""
        named = self._settings.fence_python
        if named is not None:
            return _real(
                Environment(
                    identity="named by the owner",
                    tree=named.parent.parent,
                    interpreter=await describe(named),
                )
            )
        interpreter = await describe(self._settings.interpreter)
        for tree in (await self._store.built()).values():
            if any(tree.glob("lib/python*/site-packages/torch/__init__.py")):
                return _real(
                    Environment(
                        identity=tree.parent.name, tree=tree, interpreter=interpreter
                    )
                )
        return None

    @override
    def notebook(self, name: str, owner_id: int, owner: str) -> NotebookFolder:
        return self._notebooks.named(name, self._identities.account(owner_id, owner))

    @override
    def notebooks(self) -> Path:
        return self._notebooks.base

    def check(self) -> None:
        """Say whether this Mac can run anything.

        Raises:
            DriverError: the sandbox tool is missing, or the agent is root.
        """
        if self._settings.uids is not None:
            raise DriverError(
                Reason.SANDBOX_MISSING,
                "the agent of a Mac runs as its owner, and this one runs as root",
                detail="The agent on this Mac runs as root, and no notebook may. Its "
                "owner can fix that: run `fleet-agent install` without sudo.",
            )
        if not os.access(self._sandbox_exec, os.X_OK):
            raise host.sandbox_missing(
                f"{self._sandbox_exec} is not there", tool="sandbox-exec"
            )

    @override
    async def prepare(self, job: Job, progress: ProgressSink) -> None:
        self.check()
        await self._store.prepare(job.spec.runtime.ref, progress)

    @override
    async def start(self, job: Job, progress: ProgressSink) -> AsyncIterator[Handle]:
        deadline = asyncio.get_running_loop().time() + job.spec.start_seconds
        folder = RunFolder.of(self._runs, job.allocation, job.epoch)
        record = MacRecord.begin(folder)
        yield Handle(allocation=job.allocation, data=record.to_json())
        # An agent that died at this very point may have left something.
        await self._undo(record, folder, grace_seconds=0)
        environment = _real(await self._store.prepare(job.spec.runtime.ref, progress))
        progress(Progress(step="start_sandbox"))
        try:
            confined = self._confine(job, folder, environment)
        except OSError as error:
            raise host.cannot_confine(error) from error
        record = replace(record, leader=name_of(confined.process.pid))
        ended = self._end_of(record, folder)
        try:
            yield Handle(allocation=job.allocation, data=record.to_json())
            await by(deadline, confined.heard("contained"), folder=folder, ended=ended)
            progress(Progress(step="start_server"))
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
        yield Handle(allocation=job.allocation, data=record.to_json(), url=url)

    @override
    async def stop(self, handle: Handle, *, grace_seconds: float) -> None:
        record = MacRecord.from_json(handle.data)
        await self._undo(record, self._folder(record), grace_seconds=grace_seconds)

    @override
    async def wait(self, handle: Handle) -> Condition:
        record = MacRecord.from_json(handle.data)
        return await self._groups.wait(record, self._folder(record))

    @override
    async def recover(self, handle: Handle) -> Condition:
        record = MacRecord.from_json(handle.data)
        if not record.is_of_this_boot:
            return Condition(
                standing=Standing.GONE,
                explanation=Explanation(
                    reason=Reason.MACHINE_REBOOTED,
                    detail="The machine was restarted, which ended the notebook. "
                    "The files are kept.",
                ),
            )
        if record.leader is not None and is_alive(record.leader):
            running = handle.url is not None
            return Condition(
                standing=Standing.RUNNING if running else Standing.STARTING
            )
        # The server is gone; whatever it left behind goes as well.
        return await self._groups.wait(record, self._folder(record))

    def _confine(
        self, job: Job, folder: RunFolder, environment: Environment
    ) -> Confined:
        """Start the sandbox of *job*; it waits for its launch message."""
        spec = job.spec
        account = self._identities.account(spec.owner_id, spec.owner)
        place = Place(
            run=folder,
            notebook=self._notebooks.ensure(spec.notebook, account),
            boot=boot_folder(self._state / "boot"),
            account=account,
        )
        folder.make(account, environment.identity)
        rights = planning.rights(place, environment, spec.runtime.accelerator)
        folder.profile.write_text(profile(rights))
        confined = Confined.spawn(
            planning.command(self._sandbox_exec, folder.profile, place, environment),
            run=folder,
            environment=planning.clean_environment(place, environment),
        )
        self._groups.adopt(confined.process)
        return confined

    def _end_of(
        self, record: MacRecord, folder: RunFolder
    ) -> Callable[[], Awaitable[Condition]]:
        return lambda: self._groups.wait(record, folder)

    async def _undo(
        self, record: MacRecord, folder: RunFolder, *, grace_seconds: float
    ) -> None:
        await self._groups.stop(record, grace_seconds=grace_seconds)
        await asyncio.to_thread(folder.remove)

    def _folder(self, record: MacRecord) -> RunFolder:
        if not re.fullmatch(r"[0-9a-f]{24}", record.run):
            raise ValueError("the handle names no run folder")
        return RunFolder(self._runs / record.run)


def _real(environment: Environment) -> Environment:
    """Return *environment* by the paths that a profile judges: without links."""
    return replace(
        environment,
        tree=Path(os.path.realpath(environment.tree)),
        interpreter=_by_real_path(environment.interpreter),
    )


def _by_real_path(interpreter: Interpreter) -> Interpreter:
    """Return *interpreter* by the path that a profile judges."""
    return replace(interpreter, prefix=os.path.realpath(interpreter.prefix))
