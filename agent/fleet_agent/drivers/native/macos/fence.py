"""Does this Mac's sandbox keep a CPU notebook from the GPU?

Two witnesses look for the GPU from the very sandbox of a CPU notebook, and from the
same one with the GPU's rights.  What they find is kept for the build of macOS on which
they looked, and for the rules and the witnesses as they were: after an update of either
nobody knows any more.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from fleet_agent.drivers.base import FenceFinding
from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.native.environments.interpreter import Interpreter
from fleet_agent.drivers.native.environments.store import Environment
from fleet_agent.drivers.native.inside import fence as witnesses
from fleet_agent.drivers.native.macos import fence_verdict, planning
from fleet_agent.drivers.native.macos.boot import boot_folder
from fleet_agent.drivers.native.macos.fence_verdict import Heard, Sight, Sights, Witness
from fleet_agent.drivers.native.macos.groups import Groups
from fleet_agent.drivers.native.macos.planning import Place
from fleet_agent.drivers.native.macos.records import MacRecord
from fleet_agent.drivers.native.macos.seatbelt import SeatbeltPlan, profile
from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.processes import name_of
from fleet_contracts.workloads import Accelerator


_SECONDS = {Witness.METAL: 30.0, Witness.TORCH: 120.0}
_OUTPUT_BYTES = 4096
"""No answer is longer; whatever says more says something strange."""

_log = structlog.stdlib.get_logger("fleet_agent.fence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """Which programs look; every path is a real one, without links."""

    interpreter: Interpreter
    """The agent's own: it looks without any package."""
    torch: Environment | None
    """Whose torch looks; None: there is none."""


@dataclass(slots=True, kw_only=True)
class Fence:
    """The fence of one Mac; *state* is its own folder."""

    state: Path
    boot: Path
    sandbox_exec: Path
    seconds: dict[Witness, float] = field(default_factory=lambda: dict(_SECONDS))
    _groups: Groups = field(default_factory=Groups)

    async def tidy(self) -> None:
        """End and remove what a killed agent's probe left."""
        for folder in RunFolder.all(self.state / "runs"):
            await self._undo(MacRecord.begin(folder), folder)

    def known(self, os_build: str) -> FenceFinding | None:
        """Return what was found on *os_build* with these rules; None: nothing."""
        try:
            kept = json.loads(self._path.read_text("utf-8"))
            if kept["os_build"] != os_build or kept["rules"] != rules():
                return None
            if type(kept["holds"]) is not bool:
                return None
            at = datetime.fromisoformat(kept["at"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        reason = "ok" if kept["holds"] else "gpu_reached"
        return FenceFinding(
            os_build=os_build, holds=kept["holds"], reason=reason, at=at
        )

    async def probe(self, os_build: str, subjects: Subjects) -> FenceFinding:
        """Let the witnesses look, and keep what is certain."""
        # Whatever was known is in doubt from here on, should the agent be killed.
        self._path.unlink(missing_ok=True)
        holds, reason = await self._find_out(subjects)
        finding = FenceFinding(
            os_build=os_build, holds=holds, reason=reason, at=datetime.now(UTC)
        )
        _log.info("fence probed", build=os_build, holds=holds, reason=reason)
        if holds is not None:
            self._keep(finding)
        return finding

    async def _find_out(self, subjects: Subjects) -> tuple[bool | None, str]:
        own, torch = _bare(subjects.interpreter), subjects.torch
        if torch is None:
            return None, "torch_missing"
        seen = Sights(open={}, fenced={})
        for witness, environment in ((Witness.METAL, own), (Witness.TORCH, torch)):
            for accelerator, into in (
                (Accelerator.MPS, seen.open),
                (Accelerator.CPU, seen.fenced),
            ):
                into[witness] = await self._look(witness, environment, accelerator)
                if into[witness] is Sight.DOUBT:
                    # The rest could not make up for it.
                    return fence_verdict.judge(seen)
        return fence_verdict.judge(seen)

    async def _look(
        self, witness: Witness, environment: Environment, accelerator: Accelerator
    ) -> Sight:
        word = secrets.token_hex(16)
        folder = RunFolder(self.state / "runs" / secrets.token_hex(12))
        record = MacRecord.begin(folder)
        try:
            command, variables = self._confined(
                witness, environment, accelerator, folder=folder, word=word
            )
            heard, record = await self._run(
                command, variables, record, self.seconds[witness]
            )
        except OSError as error:
            _log.warning("fence cannot be probed", witness=witness, error=str(error))
            return Sight.DOUBT
        finally:
            await asyncio.shield(self._undo(record, folder))
        fenced = accelerator is not Accelerator.MPS
        seen = fence_verdict.sight(witness, heard, word, fenced=fenced)
        _log.info("fence looked at", witness=witness, fenced=fenced, sight=seen)
        return seen

    def _confined(
        self,
        witness: Witness,
        environment: Environment,
        accelerator: Accelerator,
        *,
        folder: RunFolder,
        word: str,
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return command and variables of a witness where a notebook would run."""
        account = Account(uid=os.geteuid(), gid=os.getegid(), name="fence")
        folder.make(account, environment.identity)
        notebook = folder.path / "notebook"
        # A fresh one: nothing that a user has installed takes part.
        notebook.mkdir(mode=0o700)
        place = Place(
            run=folder,
            notebook=notebook,
            boot=boot_folder(self.boot),
            account=account,
        )
        rights = planning.rights(place, environment, accelerator)
        folder.profile.write_text(profile(rights))
        python = (
            # Without any package: what is installed cannot answer for the system.
            (environment.interpreter.executable, "-I", "-S")
            if witness is Witness.METAL
            else (str(environment.tree / "bin/python"), "-I")
        )
        command = planning.witness(
            self.sandbox_exec,
            folder.profile,
            place,
            python=python,
            call=f"{witness.value}({word!r})",
        )
        return command, planning.clean_environment(place, environment)

    async def _run(
        self,
        command: Sequence[str],
        variables: dict[str, str],
        record: MacRecord,
        seconds: float,
    ) -> tuple[Heard, MacRecord]:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=variables,
            cwd="/",
            start_new_session=True,
        )
        record = MacRecord(
            run=record.run, boot=record.boot, leader=name_of(process.pid)
        )
        output, code = b"", None
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    assert process.stdout is not None  # noqa: S101 - a pipe, see above
                    while len(output) <= _OUTPUT_BYTES:
                        part = await process.stdout.read(_OUTPUT_BYTES)
                        if not part:
                            code = await process.wait()
                            break
                        output += part
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            # What the witness started must not outlive it, holding the pipe or not.
            await self._groups.stop(record, grace_seconds=0)
            await process.wait()
        return Heard(exit_code=code, output=output), record

    async def _undo(self, record: MacRecord, folder: RunFolder) -> None:
        await self._groups.stop(record, grace_seconds=0)
        await asyncio.to_thread(folder.remove)

    @property
    def _path(self) -> Path:
        return self.state / "found.json"

    def _keep(self, finding: FenceFinding) -> None:
        kept: dict[str, Any] = {
            "os_build": finding.os_build,
            "rules": rules(),
            "holds": finding.holds,
            "at": finding.at.isoformat(),
        }
        part = self._path.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            part.chmod(0o600)
            json.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)


def rules() -> str:
    """Return what changes when the profile's rules or the witnesses do."""
    texts = [
        profile(SeatbeltPlan(read=("/read",), write=("/write",), metal=metal))
        for metal in (False, True)
    ]
    source = Path(witnesses.__file__).read_text("utf-8")
    return hashlib.sha256("\0".join([*texts, source]).encode()).hexdigest()


def _bare(interpreter: Interpreter) -> Environment:
    """Return an interpreter as an environment without any package."""
    return Environment(
        identity="bare", tree=Path(interpreter.prefix), interpreter=interpreter
    )
