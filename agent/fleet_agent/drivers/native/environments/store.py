"""Where are the environments, and may this one be used?

One folder per environment, named by a hash of everything it consists of.  A build
happens in a folder of its own and is moved into place whole; what is in place is only
used after it has been compared with its manifest.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp

import structlog

from fleet_agent.drivers.base import DriverError, ProgressSink
from fleet_agent.drivers.common.efforts import SharedWork
from fleet_agent.drivers.native.environments import downloads, manifest
from fleet_agent.drivers.native.environments.build import BuildPlan, BuildTools, build
from fleet_agent.drivers.native.environments.interpreter import Interpreter, describe
from fleet_agent.drivers.native.environments.locks import Lock, Locks
from fleet_agent.drivers.native.environments.wheel import CONTRACTS, Wheel, pack
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import Progress


VERIFY = "verify_environment"
NEEDED_BYTES = 1536 * 1024 * 1024
"""Free space that a build asks for: packages, their cache and bytecode, with room."""

_LOOK_AGAIN_SECONDS = 0.2
_LAYOUT = 2
"""Part of an environment's identity: raise it when builds change their result."""
_BUILDING = ".building-"
_BROKEN = ".broken-"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An environment that was verified by this process."""

    identity: str
    tree: Path
    interpreter: Interpreter


class EnvironmentStore:
    """The environments of one agent."""

    def __init__(
        self,
        folder: Path,
        *,
        locks: Locks,
        lab_package: Path,
        tools: BuildTools,
        seen_as: str,
        needed_bytes: int = NEEDED_BYTES,
    ) -> None:
        """Keep environments in *folder*, to be used at the path *seen_as*."""
        self._folder = folder
        self._locks = locks
        self._lab_package = lab_package
        self._tools = tools
        self._seen_as = seen_as
        self._needed_bytes = needed_bytes
        self._verified: set[str] = set()
        self._known: tuple[Wheel, Interpreter] | None = None
        self._work: SharedWork[Environment] = SharedWork()

    async def prepare(self, ref: str, progress: ProgressSink) -> Environment:
        """Return the environment that *ref* names, verified; build it if need be.

        Callers that want the same one share one build, each with its own progress;
        it is given up, leaving nothing, when the last of them is cancelled.

        Raises:
            DriverError: there is no such environment, or it cannot be built.
        """
        lock = self._locks.read(ref)
        wheel, interpreter = await self._constants()
        identity = self.identity(lock, wheel, interpreter)
        environment = Environment(
            identity=identity,
            tree=self._folder / identity / "tree",
            interpreter=interpreter,
        )
        if identity in self._verified:
            return environment

        async def provide(tell: ProgressSink) -> Environment:
            await self._provide(environment, lock, wheel, tell)
            return environment

        return await self._work.join(identity, provide, progress)

    async def _constants(self) -> tuple[Wheel, Interpreter]:
        """Return what is the same for all environments of this process."""
        if self._known is None:
            wheel = await asyncio.to_thread(pack, self._lab_package, CONTRACTS)
            self._known = wheel, await describe(self._tools.interpreter)
        return self._known

    def identity(self, lock: Lock, wheel: Wheel, interpreter: Interpreter) -> str:
        """Return the name of the environment that consists of these."""
        parts = {
            "lock": hashlib.sha256(lock.content).hexdigest(),
            "lab": wheel.sha256,
            "interpreter": asdict(interpreter),
            "seen_as": self._seen_as,
            "layout": _LAYOUT,
        }
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def refs(self) -> tuple[str, ...]:
        """Return the names of the environments that are built already or can be."""
        return self._locks.refs()

    async def built(self) -> dict[str, Path]:
        """Return the trees of the verified environments, by the ref that names them.

        Raises:
            DriverError: this agent's own packages cannot be read.
        """
        wheel, interpreter = await self._constants()
        found = {}
        for ref, lock in self._locks.sound().items():
            identity = self.identity(lock, wheel, interpreter)
            if identity in self._verified:
                found[ref] = self._folder / identity / "tree"
        return found

    async def verify_all(self) -> dict[str, bool]:
        """Remove what killed builds left, and verify every environment there is.

        To be called when the agent starts.  A broken environment is set aside, so that
        the next ``prepare`` builds it again; the answer says which were sound.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        await asyncio.to_thread(self._remove_leftovers)
        sound = {}
        for path in sorted(self._folder.iterdir()):
            if path.is_dir() and not path.name.startswith("."):
                sound[path.name] = await self._verify(path.name, lambda progress: None)
        return sound

    async def collect(self, in_use: set[str]) -> list[str]:
        """Remove the environments that no lock leads to and that are not *in_use*.

        Broken ones that were set aside go as well, and downloads that no build needed
        for long; the identities that are gone are returned.  Not to be called while something is being prepared.
        """
        wheel, interpreter = await self._constants()
        wanted = in_use | {
            self.identity(lock, wheel, interpreter)
            for lock in self._locks.sound().values()
        }
        gone = []
        for path in sorted(self._folder.iterdir()):
            identity = path.name.removeprefix(_BROKEN).partition("-")[0]
            broken = path.name.startswith(_BROKEN)
            if path.name.startswith(_BUILDING) or (
                identity in (in_use if broken else wanted)
            ):
                continue
            self._verified.discard(path.name)
            await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
            gone.append(identity)
        await downloads.tidy(self._tools, prune=bool(gone), now=time.time())
        return gone

    async def _provide(
        self, environment: Environment, lock: Lock, wheel: Wheel, progress: ProgressSink
    ) -> None:
        identity = environment.identity
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if await self._is_sound(identity, progress):
            return
        async with self._alone():
            # Another agent may have built it meanwhile.
            if await self._is_sound(identity, progress):
                return
            self._check_room()
            async with self._building(identity) as site:
                await self._build(site, lock, wheel, progress)
                self._move_into_place(site / "result", self._folder / identity)
        if not await self._verify(identity, progress):
            raise DriverError(
                Reason.ENVIRONMENT_BROKEN,
                f"the environment {identity} is broken right after its build",
                detail="The notebook's environment changed while it was built. "
                "The disk of this machine may be failing.",
            )

    async def _is_sound(self, identity: str, progress: ProgressSink) -> bool:
        there = (self._folder / identity).is_dir()
        return there and await self._verify(identity, progress)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Wait until no other process builds in this folder: two would both be slow."""
        lock = os.open(f"{self._folder}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            yield
        finally:
            os.close(lock)

    async def _build(
        self, site: Path, lock: Lock, wheel: Wheel, progress: ProgressSink
    ) -> None:
        result, wheels = site / "result", site / "wheels"
        try:
            result.mkdir(mode=0o700)
            wheels.mkdir(mode=0o700)
            (wheels / wheel.file_name).write_bytes(wheel.content)
            requirements = site / "requirements.txt"
            requirements.write_bytes(lock.content + b"\n" + wheel.requirement.encode())
            plan = BuildPlan(
                requirements=requirements,
                wheels=wheels,
                tree=result / "tree",
                seen_as=self._seen_as,
            )
            await build(plan, self._tools, progress)
            downloads.note_build(self._tools.cache)
            await asyncio.to_thread(_seal, result)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise _disk_full(str(error)) from error

    async def _verify(self, identity: str, progress: ProgressSink) -> bool:
        place = self._folder / identity
        loop = asyncio.get_running_loop()

        def counted(done: int, total: int) -> None:
            told = Progress(step=VERIFY, done=done, total=total, unit="files")
            loop.call_soon_threadsafe(progress, told)

        difference = await asyncio.to_thread(
            manifest.compare, place / "tree", place / "manifest.json", counted
        )
        if difference is None:
            self._verified.add(identity)
            return True
        self._verified.discard(identity)
        _log.warning(
            "environment broken",
            environment=identity,
            path=difference.path,
            what=difference.what,
        )
        self._set_aside(place)
        return False

    def _set_aside(self, place: Path) -> None:
        """Make room for a new build; a notebook that runs from it keeps its files."""
        for number in range(1, 1000):
            aside = self._folder / f"{_BROKEN}{place.name}-{number}"
            if not aside.exists():
                place.rename(aside)
                return
        raise DriverError(
            Reason.ENVIRONMENT_BROKEN,
            f"{place} broke a thousand times",
            detail="The notebook's environment keeps breaking on this machine.",
        )

    def _check_room(self) -> None:
        free = shutil.disk_usage(self._folder).free
        if free < self._needed_bytes:
            raise _disk_full(f"{free} bytes are free, {self._needed_bytes} are needed")

    @asynccontextmanager
    async def _building(self, identity: str) -> AsyncIterator[Path]:
        """Yield a folder that is gone afterwards, and locked as long as we live."""
        site = Path(mkdtemp(prefix=f"{_BUILDING}{identity}-", dir=self._folder))
        lock = os.open(site / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield site
        finally:
            await asyncio.shield(
                asyncio.to_thread(shutil.rmtree, site, ignore_errors=True)
            )
            os.close(lock)

    def _remove_leftovers(self) -> None:
        for site in self._folder.glob(f"{_BUILDING}*"):
            lock = os.open(site / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                # Locked: another process of this machine builds there right now.
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(site, ignore_errors=True)
            finally:
                os.close(lock)

    @staticmethod
    def _move_into_place(result: Path, place: Path) -> None:
        try:
            result.rename(place)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _seal(result: Path) -> None:
    """Write the manifest of a fresh build, after comparing it with its wheels.

    Raises:
        DriverError: a file is not what its wheel contains.
    """
    entries = manifest.take(result / "tree")
    difference = manifest.check_records(entries, result / "tree")
    if difference is not None:
        raise DriverError(
            Reason.ENVIRONMENT_BROKEN,
            f"{difference.path} {difference.what} right after the installation",
            detail="An installed file is not what its package contains. "
            "The disk of this machine may be failing.",
        )
    manifest.write(result / "manifest.json", entries)


def _disk_full(message: str) -> DriverError:
    return DriverError(
        Reason.DISK_FULL,
        message,
        detail="This machine has too little free disk space to build the notebook's "
        "environment. Nothing half-built was left behind.",
    )
