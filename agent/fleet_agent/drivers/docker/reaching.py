"""Was a container given the GPUs that were asked for?  Its own Python is asked.

An engine may start a container and hand out nothing, and a container's files may lack
what the GPU driver needs: both would be a notebook that computes on the CPU.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from fleet_agent.drivers.common.reaching import (
    UNREACHED,
    UNREACHED_STATUS,
    not_known,
    not_used,
)
from fleet_agent.drivers.docker.containers import Containers
from fleet_agent.drivers.docker.engine import Client, Engine
from fleet_agent.drivers.docker.errors import (
    EndedEarlyError,
    EngineAwayError,
    EngineError,
)
from fleet_agent.drivers.docker.records import Record


PYTHON: Final = "python3"
"""As which an image that starts a notebook server has its Python."""
_ENDING_SECONDS: Final = 5.0
"""How long an engine may still call a container running whose processes it has ended."""
_OF_ITS_OWN: Final = range(1, 126)
"""With which a check ends that began, and that nothing killed."""


async def insist(
    engine: Engine,
    containers: Containers,
    record: Record,
    container: str,
    check: Sequence[str],
) -> None:
    """Run *check* in *container* of *record*, which runs; return if it succeeds.

    Raises:
        DriverError: it does not, or nobody can tell.
        EndedEarlyError: the container ended meanwhile.
        EngineAwayError: the engine does not answer.
    """
    status: int | None = None
    try:
        status, said = await engine.ask(partial(_run, container, (PYTHON, *check)))
    except EngineAwayError:
        raise
    except EngineError as error:
        said = str(error)
    if status == 0:
        return
    if status == UNREACHED_STATUS and UNREACHED in said:
        raise not_used(said.strip())
    if status not in _OF_ITS_OWN and await _ends(containers, record, container):
        raise EndedEarlyError
    raise not_known(f"its Python could not be asked ({status}): {said.strip()}")


async def _ends(containers: Containers, record: Record, container: str) -> bool:
    """Return whether the container ends; its check ends first where it does."""
    try:
        async with asyncio.timeout(_ENDING_SECONDS):
            await containers.until_gone(record, container)
    except TimeoutError:
        return False
    return True


def _run(container: str, command: Sequence[str], client: Client) -> tuple[int, str]:
    task = client.exec_create(container, list(command))
    said: bytes = client.exec_start(task["Id"])
    status = client.exec_inspect(task["Id"])["ExitCode"]
    return int(status), said.decode(errors="replace")
