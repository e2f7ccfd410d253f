"""How does a lock become a folder of installed packages?

uv does the work: it downloads, checks every hash and installs.  What it says is turned
into progress, and into one of our reasons when it fails.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fleet_agent.drivers.base import DriverError, ProgressSink
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import Progress


DOWNLOAD = "download_packages"
INSTALL = "install_packages"
COMPILE = "compile_packages"

_LOOK_EVERY_SECONDS = 0.3
_RESOLVED = re.compile(r"Resolved (\d+) packages?")
_PREPARED = re.compile(r"Prepared \d+ packages?")
_MISMATCH = re.compile(r"Hash mismatch for `([A-Za-z0-9._-]+)(?:==[^`]*)?`")
_DISK_FULL = re.compile(r"No space left on device|os error 28|Disk quota exceeded")
_UNREACHABLE = re.compile(
    r"error sending request|dns error|tcp connect error|Connection refused"
    r"|operation timed out|Failed to fetch|Could not connect|network is unreachable",
    re.IGNORECASE,
)
_TESTS = {"test", "tests"}
_DIE_WITH_PARENT = (
    # A build must not go on when the agent was killed: its successor removes the
    # folder and may build it again.
    "import ctypes, os, sys\n"
    "if sys.platform == 'linux':\n"
    "    ctypes.CDLL(None).prctl(1, 9)\n"
    "if os.getppid() == int(sys.argv[1]):\n"
    "    os.execv(sys.argv[2], sys.argv[2:])\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTools:
    """What a build uses of the machine."""

    uv: Path
    interpreter: Path
    cache: Path
    environment: Mapping[str, str]
    """The process environment of uv: proxies, certificates and mirrors only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """What to build, and where it will be seen from."""

    requirements: Path
    wheels: Path
    """A folder with the wheels that no index has."""
    tree: Path
    seen_as: str
    """The path that the tree has where it is used: bytecode carries it."""


async def build(plan: BuildPlan, tools: BuildTools, progress: ProgressSink) -> None:
    """Make the environment at ``plan.tree``; a failure leaves it half made.

    Raises:
        DriverError: it cannot be built.
    """
    uv = [
        os.fspath(tools.uv),
        "--cache-dir",
        os.fspath(tools.cache),
        "--color",
        "never",
    ]
    python = os.fspath(plan.tree / "bin" / "python")
    venv = ["venv", "--relocatable", "--no-project", "--quiet", "--python"]
    await run(
        [*uv, *venv, os.fspath(tools.interpreter), os.fspath(plan.tree)],
        tools.environment,
    )
    sync = ["pip", "sync", "--require-hashes", "--only-binary", ":all:"]
    sync += ["--link-mode", "copy", "--find-links", os.fspath(plan.wheels)]
    sync += ["--python", python, os.fspath(plan.requirements)]
    await _install([*uv, *sync], plan, tools, progress)
    await _compile(plan, tools, progress)


async def _install(
    command: Sequence[str], plan: BuildPlan, tools: BuildTools, progress: ProgressSink
) -> None:
    watch = _Watch(
        packages=site_packages(plan.tree),
        unpacked=tools.cache / "archive-v0",
        progress=progress,
    )
    watching = asyncio.create_task(watch.look_again_and_again())
    try:
        await run(command, tools.environment, watch.hear)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    watch.installing = True
    watch.look()


async def _compile(plan: BuildPlan, tools: BuildTools, progress: ProgressSink) -> None:
    """Compile all modules: a read-only environment would compile them at each start.

    Not left to uv, because the bytecode is to name the files where they will be seen,
    and needs no comparison with the time of a source that never changes.
    """
    packages = site_packages(plan.tree)
    total = sum(1 for path in packages.rglob("*.py") if not _TESTS & {*path.parts[:-1]})
    done = 0

    def hear(line: str) -> None:
        nonlocal done
        if line.startswith("Compiling "):
            done = min(done + 1, total)
            if done % 50 == 0:
                progress(Progress(step=COMPILE, done=done, total=total, unit="modules"))

    command = [os.fspath(plan.tree / "bin" / "python"), "-I", "-u", "-m", "compileall"]
    command += ["-j", "0", "--invalidation-mode", "unchecked-hash"]
    # Packages' own tests are a quarter of all modules, and nobody imports them.
    command += ["-x", "/tests?/.*"]
    command += ["-s", os.fspath(plan.tree), "-p", plan.seen_as, os.fspath(packages)]
    # Templates and deliberate errors in test data do not compile: no failure.
    await run(command, tools.environment, hear, accepted=frozenset({0, 1}))
    # Its workers write over one another's lines, so that not each one was heard.
    progress(Progress(step=COMPILE, done=total, total=total, unit="modules"))


class _Watch:
    """Follows an installation by what uv says and by what appears on disk.

    uv reports a phase only when it is over; folders appear one by one meanwhile.
    """

    def __init__(
        self, *, packages: Path, unpacked: Path, progress: ProgressSink
    ) -> None:
        self._packages = packages
        self._unpacked = unpacked
        self._progress = progress
        self._unpacked_before = self._count_unpacked()
        self._total: int | None = None
        self._told: Progress | None = None
        self.installing = False

    def hear(self, line: str) -> None:
        if resolved := _RESOLVED.match(line):
            self._total = int(resolved.group(1))
        elif _PREPARED.match(line):
            self.installing = True
        self.look()

    def look(self) -> None:
        """Tell how far it is, if that is news."""
        installed = self._count_installed()
        self.installing = self.installing or installed > 0
        done = installed
        if not self.installing:
            done = self._count_unpacked() - self._unpacked_before
        if self._total is not None:
            done = min(done, self._total)
        now = Progress(
            step=INSTALL if self.installing else DOWNLOAD,
            done=max(done, 0),
            total=self._total,
            unit="packages",
        )
        if now != self._told:
            self._told = now
            self._progress(now)

    async def look_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
            self.look()

    def _count_installed(self) -> int:
        return sum(name.endswith(".dist-info") for name in _names(self._packages))

    def _count_unpacked(self) -> int:
        return len(_names(self._unpacked))


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []


def site_packages(tree: Path) -> Path:
    """Return where the packages of the environment at *tree* are.

    Raises:
        DriverError: the tree is no environment.
    """
    found = next(iter(sorted(tree.glob("lib/python3.*/site-packages"))), None)
    if found is None:
        raise DriverError(Reason.PREPARE_FAILED, f"{tree} is no environment")
    return found


async def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    hear: Callable[[str], None] = lambda line: None,
    accepted: frozenset[int] = frozenset({0}),
) -> None:
    """Run *command* to its end, handing over each line that it says.

    Raises:
        DriverError: it failed.
    """
    guard = [sys.executable, "-I", "-c", _DIE_WITH_PARENT, str(os.getpid())]
    process = await asyncio.create_subprocess_exec(
        *(guard if sys.platform == "linux" else []),
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
        start_new_session=True,
        umask=0o022,
    )
    said: list[str] = []
    try:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        async for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip()
            said = [*said[-40:], line]
            hear(line)
        code = await process.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())
        raise
    if code not in accepted:
        raise failure("\n".join(said))


def failure(output: str) -> DriverError:
    """Return what *output* of a failed build means."""
    if mismatch := _MISMATCH.search(output):
        return DriverError(
            Reason.ENVIRONMENT_HASH_MISMATCH,
            f"a package differs from the lock: {output}",
            detail=f"The package {mismatch.group(1)} that this machine received is "
            "not the one that the lock names, so nothing was installed.",
        )
    if _DISK_FULL.search(output):
        return DriverError(
            Reason.DISK_FULL,
            f"no space left while building: {output}",
            detail="The disk of this machine is full, so the notebook's environment "
            "could not be built. Nothing half-built was left behind.",
        )
    if _UNREACHABLE.search(output):
        return DriverError(
            Reason.PREPARE_FAILED,
            f"the package index cannot be reached: {output}",
            detail="This machine cannot reach the package index, so the notebook's "
            "environment could not be built. Check its network and try again.",
        )
    return DriverError(
        Reason.PREPARE_FAILED,
        f"the environment could not be built: {output}",
        detail="The notebook's environment could not be built on this machine. "
        "The agent's log has what the installer said.",
    )
