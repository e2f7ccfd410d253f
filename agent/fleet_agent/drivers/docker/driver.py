"""Runs notebooks in containers of this machine's own Docker engine.

The isolation is a container's: no capability, no new privileges, an unprivileged user
of the owner's own, a read-only root, a network apart.  Whatever must be undone is in
handles and in the containers' labels: a notebook outlives its agent, and a new agent
finds it again.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import structlog
from typing_extensions import override

from fleet_agent.drivers.base import (
    Condition,
    Driver,
    DriverError,
    Handle,
    Job,
    NotebookFolder,
    ProgressSink,
    Standing,
)
from fleet_agent.drivers.common.accounts import OutOfUidsError
from fleet_agent.drivers.common.listening import answered, at_address
from fleet_agent.drivers.common.reaching import check_of
from fleet_agent.drivers.common.threads import to_its_end
from fleet_agent.drivers.common.variables import server_prefix
from fleet_agent.drivers.docker import explain, planning
from fleet_agent.drivers.docker.containers import Containers, is_running
from fleet_agent.drivers.docker.engine import Client, Engine
from fleet_agent.drivers.docker.errors import (
    EndedEarlyError,
    EngineAwayError,
    EngineError,
    InTheWayError,
)
from fleet_agent.drivers.docker.facts import EngineFacts
from fleet_agent.drivers.docker.fetched import FetchedImages
from fleet_agent.drivers.docker.firewall import Firewall
from fleet_agent.drivers.docker.network import Networks
from fleet_agent.drivers.docker.packet_filter import PacketFilterError
from fleet_agent.drivers.docker.places import Places
from fleet_agent.drivers.docker.planning import Image, Offer, Place
from fleet_agent.drivers.docker.pulling import Images
from fleet_agent.drivers.docker.reaching import insist
from fleet_agent.drivers.docker.records import Record
from fleet_agent.drivers.docker.settings import DockerSettings
from fleet_agent.drivers.docker.tidying import Tidying
from fleet_agent.drivers.docker.upkeep import Upkeep
from fleet_agent.drivers.docker.watch import Watch
from fleet_agent.processes import boot_id
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import DriverName


Result = TypeVar("Result")

_NAMES = 4
"""How many names are tried for a container before the engine counts as at fault."""

_log = structlog.get_logger(__name__)


class DockerDriver(Driver):
    """The driver ``docker``; see the module's docstring."""

    name: ClassVar[DriverName] = DriverName.DOCKER

    def __init__(self, settings: DockerSettings) -> None:
        """Work below ``settings.state``; nothing is touched or asked yet."""
        self._settings = settings
        self._places = Places(settings.state, settings.uids)
        self._engine = Engine(settings.host)
        self._watch = Watch(self._engine)
        self._containers = Containers(self._engine, self._watch)
        self._firewall = Firewall(settings.reach, settings.notebook_environment)
        self._runs: set[str] = set()
        """The runs that somebody asked this process about, and will end."""
        fetched = FetchedImages(settings.state / "images.json")
        tidying = Tidying(
            self._engine, fetched, settings.keeping, is_known=self._runs.__contains__
        )
        self._images = Images(
            self._engine,
            fetched,
            stall_seconds=settings.stall_seconds,
            make_room=lambda: tidying.make_room(now=time.time()),
        )
        self._upkeep = Upkeep(
            containers=self._containers,
            networks=Networks(self._engine),
            firewall=self._firewall,
            tidying=tidying,
        )

    @override
    async def open(self) -> None:
        """Say in the log which engine there is; none is no reason to give up.

        What runs there already is looked after from now on.
        """
        await self._upkeep.open(await asyncio.to_thread(self._places.mark))
        try:
            facts = await self._engine.facts()
        except EngineError as error:
            _log.warning("the container engine does not answer", error=str(error))
            return
        problem = self._problem(facts)
        if problem:
            _log.warning("the container engine cannot be used", problem=problem)
        else:
            _log.info("container engine", version=facts.version)

    @override
    def notebook(self, name: str, owner_id: int, owner: str) -> NotebookFolder:
        return self._places.notebook(name, owner_id, owner)

    @override
    def notebooks(self) -> Path:
        return self._places.notebooks

    @override
    async def prepare(self, job: Job, progress: ProgressSink) -> None:
        await self._usable(Reason.PREPARE_FAILED)
        await self._images.ensure(job.spec.runtime.ref, progress)

    @override
    async def start(self, job: Job, progress: ProgressSink) -> AsyncIterator[Handle]:
        deadline = asyncio.get_running_loop().time() + job.spec.start_seconds
        agent = await asyncio.to_thread(self._places.mark)
        record = Record.begin(job, agent=agent, boot=boot_id())
        self._runs.add(record.run)
        with self._upkeep.starting():
            yield Handle(allocation=job.allocation, data=record.to_json())
            making = self._make(job, record, progress)
            record = replace(record, container=await self._by(deadline, record, making))
            yield Handle(allocation=job.allocation, data=record.to_json())
            progress(Progress(step="start_server"))
            url = await self._by(deadline, record, self._serve(job, record))
            yield Handle(allocation=job.allocation, data=record.to_json(), url=url)

    @override
    async def stop(self, handle: Handle, *, grace_seconds: float) -> None:
        record = Record.from_json(handle.data)
        await self._undo(record, grace_seconds=grace_seconds)
        self._runs.discard(record.run)

    @override
    async def wait(self, handle: Handle) -> Condition:
        record = Record.from_json(handle.data)
        self._runs.add(record.run)
        return await self._containers.ended(record)

    @override
    async def recover(self, handle: Handle) -> Condition:
        record = Record.from_json(handle.data)
        self._runs.add(record.run)
        if record.boot != boot_id():
            return Condition(
                standing=Standing.GONE,
                explanation=Explanation(
                    reason=Reason.MACHINE_REBOOTED,
                    detail="The machine was restarted, which ended the notebook. "
                    "The files are kept.",
                ),
            )
        for container in await self._containers.find(record):
            answer = await self._containers.look(container)
            if answer is not None and is_running(answer):
                running = handle.url is not None
                return Condition(
                    standing=Standing.RUNNING if running else Standing.STARTING
                )
        return await self._containers.ended(record, meanwhile=True)

    @override
    async def close(self) -> None:
        """Let running notebooks run, kept in as they are."""
        await self._upkeep.close()
        self._watch.close()
        self._engine.close()

    # -------------------------------------------------------------------- helpers

    async def _usable(self, otherwise: Reason) -> EngineFacts:
        """Return the engine's facts, if notebooks can run there.

        Raises:
            DriverError: it does not answer, or is of the wrong kind.
        """
        try:
            facts = await self._engine.facts()
        except EngineError as error:
            raise explain.engine_away(otherwise, str(error)) from error
        problem = self._problem(facts)
        if problem:
            raise explain.cannot_run_here(problem)
        return facts

    def _problem(self, facts: EngineFacts) -> str | None:
        return facts.problem() or self._firewall.problem(facts)

    async def _make(self, job: Job, record: Record, progress: ProgressSink) -> str:
        """Make the container of *job* and return its id; it does not run yet."""
        facts = await self._usable(Reason.START_FAILED)
        # An agent that died at this very point may have left something.
        await self._undo(record, grace_seconds=0)
        image = await self._images.ensure(job.spec.runtime.ref, progress)
        progress(Progress(step="start_container"))
        network = await self._upkeep.network(record.agent, job.spec.environment)
        place = await to_its_end(
            partial(self._places.make, job.spec, record.run, network)
        )
        offer = Offer(
            agent=record.agent,
            engine=facts,
            addresses=self._settings.addresses,
            environment=self._settings.notebook_environment,
            folders=self._settings.folders,
            trimming=self._settings.trimming,
            processes=self._settings.processes,
        )
        return await self._create(job, record, image, place, offer)

    async def _create(
        self, job: Job, record: Record, image: Image, place: Place, offer: Offer
    ) -> str:
        config = planning.container_config(job, image, place, offer)
        name = f"fleet-{record.run}"
        for attempt in range(_NAMES):
            # The name is for people only: if a stranger has it, another one will do.
            own = name if attempt == 0 else f"{name}-{secrets.token_hex(3)}"
            try:
                return await self._engine.ask(partial(_create, config, own))
            except InTheWayError as error:
                _log.warning("a container's name is in use", error=str(error))
        raise explain.start_failure("every name for the container is in use")

    async def _serve(self, job: Job, record: Record) -> str:
        """Start the container of *record* and return its server's URL once it answers."""
        addresses, prefix = self._settings.addresses, server_prefix(job.spec)
        container = str(record.container)
        await self._engine.ask(lambda client: client.start(container))
        check = check_of(job.spec.resources)
        if check:
            await insist(self._engine, self._containers, record, container, check)
        answer = await self._containers.look(container)
        port = planning.published_port(answer or {})
        if port is None:
            raise EndedEarlyError
        answer_task = asyncio.ensure_future(answered(addresses, port, prefix))
        end_task = asyncio.ensure_future(self._containers.until_gone(record, container))
        try:
            await asyncio.wait(
                [answer_task, end_task], return_when=asyncio.FIRST_COMPLETED
            )
            if not answer_task.done():
                raise EndedEarlyError
            await answer_task
        finally:
            for task in (answer_task, end_task):
                task.cancel()
            await asyncio.gather(answer_task, end_task, return_exceptions=True)
        return at_address(f"http://host{prefix}", addresses.advertise, port)

    async def _by(
        self, deadline: float, record: Record, work: Awaitable[Result]
    ) -> Result:
        """Return the result of *work*, with its failures turned into explanations."""
        try:
            async with asyncio.timeout_at(deadline):
                return await work
        except TimeoutError as error:
            raise DriverError(
                Reason.START_TIMEOUT,
                f"no answer in time; the log ends: {await self._log_tail(record)}",
                detail="The notebook server did not answer in time, so it was ended. "
                "Starting it again may help; the files are kept.",
            ) from error
        except EndedEarlyError as error:
            condition = await self._containers.ended(record)
            log = await self._log_tail(record)
            raise explain.early_end(condition, log) from error
        except EngineAwayError as error:
            raise explain.engine_away(Reason.START_FAILED, str(error)) from error
        except PacketFilterError as error:
            raise explain.not_kept_in(str(error)) from error
        except (EngineError, OSError, OutOfUidsError) as error:
            raise explain.start_failure(str(error)) from error

    async def _log_tail(self, record: Record) -> str:
        if record.container is None:
            return ""
        answer = await self._containers.look(record.container)
        return await self._containers.log_tail(record.container, answer)

    async def _undo(self, record: Record, *, grace_seconds: float) -> None:
        await self._containers.stop(record, grace_seconds=grace_seconds)
        await asyncio.to_thread(self._places.run(record.run).remove)


def _create(config: dict[str, Any], name: str, client: Client) -> str:
    return str(client.create_container_from_config(config, name)["Id"])
