"""From a process that waits in its sandbox to a server that answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from fleet_agent.drivers.base import Condition, DriverError
from fleet_agent.drivers.common.listening import Addresses, answered, at_address, listen
from fleet_agent.drivers.common.reaching import check_of
from fleet_agent.drivers.common.variables import server_prefix
from fleet_agent.drivers.native.confined import Confined, ConfinedEndedError, Launch
from fleet_agent.drivers.native.planning import launch_environment
from fleet_agent.drivers.native.runs import RunFolder
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import WorkloadSpec


Result = TypeVar("Result")


async def serve(
    spec: WorkloadSpec,
    confined: Confined,
    *,
    addresses: Addresses,
    extra: Mapping[str, str],
    ended: Callable[[], Awaitable[Condition]],
) -> str:
    """Launch the server and return its URL once it answers.

    *extra* is what the machine's owner gives every notebook; *ended* returns when the
    workload is gone.

    Raises:
        ConfinedEndedError: it ended before it answered.
        DriverError: it cannot be served at the address that the Hub gave.
    """
    prefix = server_prefix(spec)
    with listen(addresses) as listener:
        port: int = listener.getsockname()[1]
        await confined.heard("imported")
        await confined.launch(
            Launch(
                environment=launch_environment(spec, extra, addresses, port),
                arguments=spec.arguments,
                listener=listener,
                check=check_of(spec.resources),
            )
        )
    # From here only the server holds the socket: if it dies, nobody answers.
    answer = asyncio.ensure_future(answered(addresses, port, prefix))
    end = asyncio.ensure_future(ended())
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


async def by(
    deadline: float,
    work: Awaitable[Result],
    *,
    folder: RunFolder,
    ended: Callable[[], Awaitable[Condition]],
) -> Result:
    """Return the result of *work*, with its failures turned into explanations.

    Raises:
        DriverError: it was not done in time, or the workload ended meanwhile.
    """
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
        condition = await ended()
        explanation = condition.explanation
        raise DriverError(
            explanation.reason if explanation else Reason.SERVER_EXITED,
            f"{error}, exit code {condition.exit_code}; "
            f"the log ends: {_last_line(folder)}",
            detail=explanation.detail if explanation else None,
        ) from error


def _last_line(folder: RunFolder) -> str:
    return folder.read_log_tail().rstrip().rpartition("\n")[2][-300:]
