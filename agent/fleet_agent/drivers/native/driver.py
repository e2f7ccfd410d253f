"""Runs notebooks on this machine itself: a pinned environment in a sandbox.

The isolation is weak - one kernel, one network - so it is for the machine's owner.
Whatever must be undone is in handles: a notebook outlives its agent, and a new agent
finds it again.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, TypeVar

import structlog
from typing_extensions import override

from fleet_agent.drivers.base import (
    Condition,
    Driver,
    DriverError,
    Handle,
    Job,
    ProgressSink,
    Standing,
)
from fleet_agent.drivers.native import bubblewrap, host, planning
from fleet_agent.drivers.native.accelerators import nvidia_mounts
from fleet_agent.drivers.native.confined import Confined, ConfinedEndedError, Launch
from fleet_agent.drivers.native.ending import Ending
from fleet_agent.drivers.native.environments.build import BuildTools
from fleet_agent.drivers.native.environments.locks import OWN_LOCKS
from fleet_agent.drivers.native.environments.store import (
    Environment,
    EnvironmentStore,
)
from fleet_agent.drivers.native.environments.wheel import installed_lab_package
from fleet_agent.drivers.native.identities import Identities, OutOfUidsError, UidRange
from fleet_agent.drivers.native.inside.landlock import can_scope
from fleet_agent.drivers.native.listening import Addresses, answered, at_address, listen
from fleet_agent.drivers.native.notebooks import NotebookFolders
from fleet_agent.drivers.native.planning import Place, System
from fleet_agent.drivers.native.processes import boot_id, identify
from fleet_agent.drivers.native.records import Record
from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.drivers.native.sandbox import ENVIRONMENT, Account
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import DriverName


Result = TypeVar("Result")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSettings:
    """What a native driver is made from."""

    state: Path
    """A folder that only the agent may enter."""
    interpreter: Path
    """The Python that environments stand on."""
    uv: Path
    uids: UidRange | None
    """The uids that owners get; None: the agent is not root, all run as its user."""
    addresses: Addresses = field(default_factory=Addresses)
    locks: Path = OWN_LOCKS
    lab_package: Path = field(default_factory=installed_lab_package)
    environments: Path | None = None
    """Where environments are; None: in the state folder."""
    cache: Path | None = None
    """Where uv keeps downloads; None: in the state folder."""
    build_environment: Mapping[str, str] = field(default_factory=dict)
    """The process environment of uv: proxies, certificates and mirrors."""
    notebook_environment: Mapping[str, str] = field(default_factory=dict)
    """What the machine's owner gives every notebook, such as a proxy's address."""


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
        self._store = EnvironmentStore(
            settings.environments or settings.state / "environments",
            locks=settings.locks,
            lab_package=settings.lab_package,
            tools=BuildTools(
                uv=settings.uv,
                interpreter=settings.interpreter,
                cache=settings.cache or settings.state / "cache",
                environment=settings.build_environment,
            ),
            seen_as=ENVIRONMENT,
        )

    @override
    async def open(self) -> None:
        """Verify every environment, and remove what nobody needs any more.

        A broken environment is set aside and built again when it is needed.
        """
        for limitation in self.limitations():
            _log.warning("sandbox is limited", limitation=limitation)
        await self._store.verify_all()
        # A folder that several agents share is not this one's to tidy up.
        if self._settings.environments is None:
            in_use = {run.environment for run in RunFolder.all(self._runs)}
            await self._store.collect(in_use)

    def limitations(self) -> tuple[str, ...]:
        """Return what this machine's sandbox cannot keep apart, one sentence each."""
        if can_scope():
            return ()
        return (
            (
                "This kernel cannot close abstract Unix sockets to notebooks "
                "(it needs Landlock 6, Linux 6.12 or newer)."
            ),
        )

    @override
    async def interpreters(self) -> dict[str, Path]:
        built = await self._store.built()
        return {ref: tree / "bin" / "python" for ref, tree in built.items()}

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
        await self._undo(record, folder, grace_seconds=0)
        environment = await self._store.prepare(job.spec.runtime.ref, progress)
        progress(Progress(step="start_sandbox"))
        try:
            confined = self._confine(job, folder, environment)
        except (OSError, OutOfUidsError) as error:
            raise host.cannot_confine(error) from error
        supervisor = identify(confined.process.pid)
        record = replace(
            record, supervisor=supervisor, environment=environment.identity
        )
        try:
            record = await self._by(
                deadline, folder, record, self._contained(confined, folder, record)
            )
            yield Handle(allocation=job.allocation, data=record.to_json())
            progress(Progress(step="start_server"))
            url = await self._by(
                deadline, folder, record, self._serve(job, confined, record, folder)
            )
        finally:
            confined.close()
        yield Handle(allocation=job.allocation, data=record.to_json(), url=url)

    @override
    async def stop(self, handle: Handle, *, grace_seconds: float) -> None:
        record = Record.from_json(handle.data)
        await self._undo(record, self._folder(record), grace_seconds=grace_seconds)

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

    def _confine(
        self, job: Job, folder: RunFolder, environment: Environment
    ) -> Confined:
        """Start the sandbox of *job*; it waits for its launch message."""
        spec = job.spec
        tools = host.find_tools(root=self._settings.uids is not None)
        account = self.account_of(spec.owner_id, spec.owner)
        place = Place(
            run=folder,
            notebook=self._notebooks.ensure(spec.notebook, account),
            account=account,
            devices=nvidia_mounts(spec.resources.devices),
        )
        system = System(mounts=host.system_mounts(), links=host.system_links())
        folder.make(account, environment.identity)
        status = os.open(folder.status, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            plan = planning.sandbox_plan(system, place, environment, status_fd=status)
            confined = Confined.spawn(
                bubblewrap.command(plan, tools),
                status_fd=status,
                run=folder,
                environment=planning.clean_environment(account),
            )
        finally:
            os.close(status)
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

    async def _serve(
        self, job: Job, confined: Confined, record: Record, folder: RunFolder
    ) -> str:
        """Launch the server and return its URL once it answers."""
        addresses, spec = self._settings.addresses, job.spec
        prefix = planning.prefix(spec)
        with listen(addresses) as listener:
            port: int = listener.getsockname()[1]
            await confined.heard("imported")
            await confined.launch(
                Launch(
                    environment=planning.launch_environment(
                        spec, self._settings.notebook_environment, addresses, port
                    ),
                    arguments=spec.arguments,
                    listener=listener,
                )
            )
        # From here only the server holds the socket: if it dies, nobody answers.
        answer = asyncio.ensure_future(answered(addresses, port, prefix))
        end = asyncio.ensure_future(self._ending.wait(record, folder))
        try:
            await asyncio.wait([answer, end], return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise ConfinedEndedError("the server ended before it answered")
            await answer
        finally:
            for task in (answer, end):
                task.cancel()
            await asyncio.gather(answer, end, return_exceptions=True)
        return at_address(f"http://host{prefix}", addresses.advertise, port)

    async def _by(
        self,
        deadline: float,
        folder: RunFolder,
        record: Record,
        work: Awaitable[Result],
    ) -> Result:
        """Return the result of *work*, with its failures turned into explanations."""
        try:
            async with asyncio.timeout_at(deadline):
                return await work
        except TimeoutError as error:
            raise DriverError(
                Reason.START_TIMEOUT,
                f"no answer in time; the log ends: {_last_line(folder)}",
                detail="The notebook server did not answer in time, so it was ended. "
                "Starting it again may help; the files are kept.",
            ) from error
        except ConfinedEndedError as error:
            condition = await self._ending.wait(record.completed(folder), folder)
            explanation = condition.explanation
            raise DriverError(
                explanation.reason if explanation else Reason.SERVER_EXITED,
                f"{error}, exit code {condition.exit_code}; "
                f"the log ends: {_last_line(folder)}",
                detail=explanation.detail if explanation else None,
            ) from error

    async def _undo(
        self, record: Record, folder: RunFolder, *, grace_seconds: float
    ) -> None:
        complete = await asyncio.to_thread(record.completed, folder)
        await self._ending.stop(complete, folder, grace_seconds=grace_seconds)
        await asyncio.to_thread(folder.remove)

    def _complete(self, handle: Handle) -> tuple[Record, RunFolder]:
        record = Record.from_json(handle.data)
        folder = self._folder(record)
        return record.completed(folder), folder

    def _folder(self, record: Record) -> RunFolder:
        if not re.fullmatch(r"[0-9a-f]{24}", record.run):
            raise ValueError("the handle names no run folder")
        return RunFolder(self._runs / record.run)


def _last_line(folder: RunFolder) -> str:
    return folder.read_log_tail().rstrip().rpartition("\n")[2][-300:]
