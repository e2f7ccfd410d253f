"""Was a container given the GPUs that were asked for?  Its own Python is asked.

An engine may start a container and hand out nothing, and a container's files may lack
what the GPU driver needs: both would be a notebook that computes on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from fleet_agent.drivers.common.reaching import (
    UNREACHED,
    UNREACHED_STATUS,
    not_known,
    not_used,
)
from fleet_agent.drivers.docker.containers import Containers, is_running
from fleet_agent.drivers.docker.engine import Client, Engine
from fleet_agent.drivers.docker.errors import (
    EndedEarlyError,
    EngineAwayError,
    EngineError,
)


PYTHON: Final = "python3"
"""As which an image that starts a notebook server has its Python."""


async def insist(
    engine: Engine, containers: Containers, container: str, check: Sequence[str]
) -> None:
    """Run *check* in *container*, which runs; return if it succeeds.

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
    answer = await containers.look(container)
    if answer is None or not is_running(answer):
        raise EndedEarlyError
    raise not_known(f"its Python could not be asked ({status}): {said.strip()}")


def _run(container: str, command: Sequence[str], client: Client) -> tuple[int, str]:
    task = client.exec_create(container, list(command))
    said: bytes = client.exec_start(task["Id"])
    status = client.exec_inspect(task["Id"])["ExitCode"]
    return int(status), said.decode(errors="replace")
