"""Fetching a copy of files before a start: whole or not at all, tried until it is.

A transfer that breaks begins anew: what is on either machine is the truth, and no
half of a copy is kept to be mended.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import structlog
from tornado.httpclient import HTTPClientError
from tornado.websocket import WebSocketClientConnection, WebSocketError

from fleet_agent.copying import places
from fleet_agent.copying.errors import CopyError, NoLineError, NotNowError
from fleet_agent.copying.frames import End, StreamError
from fleet_agent.copying.lines import STALL_SECONDS, Dial
from fleet_agent.copying.patience import Patience
from fleet_agent.copying.writing import Arriving
from fleet_agent.drivers.base import NotebookFolder, ProgressSink
from fleet_agent.drivers.common.threads import to_its_end
from fleet_agent.ledger_entry import Key
from fleet_contracts.amounts import describe_bytes
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress


Note = Callable[[Explanation], Awaitable[None]]

ARRIVED: Final = "arrived"
"""What the receiver says once the copy is whole and durable."""
_RETRY_SECONDS: Final = 2.0
_TELL_SECONDS: Final = 0.5
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

_log = structlog.stdlib.get_logger("fleet_agent.copying")


async def fetch(
    dial: Dial,
    key: Key,
    folder: NotebookFolder,
    *,
    limit_bytes: int,
    progress: ProgressSink,
    note: Note,
) -> None:
    """Return once *folder* holds a whole copy for *key*.  Cancelled, it holds none.

    Raises:
        CopyError: it cannot be had.
    """
    if await to_its_end(partial(places.is_complete, folder, key)):
        return
    patience = Patience(asyncio.get_running_loop().time)
    while True:
        try:
            end = await _once(dial, key, folder, limit_bytes, progress)
        except NoLineError as error:
            # What ends with the controller's absence is nobody's notebook.
            _log.warning("no line for the files", **key._asdict(), fault=str(error))
            patience.renew()
        except NotNowError as error:
            _log.warning("the files do not come", **key._asdict(), fault=str(error))
            if error.had_begun:
                patience.renew()
            explanation = patience.judge()
            if explanation is not None:
                await note(explanation)
        else:
            await note(Explanation(reason=Reason.FILES_COPIED, detail=_came(end)))
            return
        await asyncio.sleep(_RETRY_SECONDS)


async def _once(
    dial: Dial,
    key: Key,
    folder: NotebookFolder,
    limit_bytes: int,
    progress: ProgressSink,
) -> End:
    connection = await _connected(dial, key)
    try:
        path = await to_its_end(partial(places.begin, folder))
        arriving = Arriving(
            path, uid=folder.uid, gid=folder.gid, limit_bytes=limit_bytes
        )
        try:
            end = await _all_of(connection, arriving, progress)
        finally:
            arriving.close()
        await to_its_end(partial(places.commit, folder, key))
        await connection.write_message(ARRIVED)
    except CopyError as error:
        if error.reason is Reason.COPY_SOURCE_AWAY:
            raise NotNowError(str(error)) from error
        raise
    except StreamError as error:
        raise CopyError(
            f"the stream is not faithful: {error}",
            detail="what the other machine sent was no whole copy",
        ) from error
    except OSError as error:
        raise _unwritten(error) from error
    else:
        return end
    finally:
        connection.close()
        await to_its_end(partial(places.give_up, folder))


async def _connected(dial: Dial, key: Key) -> WebSocketClientConnection:
    try:
        return await dial(key, "receive")
    except HTTPClientError as error:
        is_refusal = 400 <= error.code < 500  # noqa: PLR2004 - HTTP's own
        kind = NotNowError if is_refusal else NoLineError
        raise kind(repr(error)) from error
    except (WebSocketError, OSError) as error:
        raise NoLineError(repr(error)) from error


async def _all_of(
    connection: WebSocketClientConnection, arriving: Arriving, progress: ProgressSink
) -> End:
    """Take in the whole stream; never more of it at once than one message."""
    clock = asyncio.get_running_loop().time
    told_at = clock()
    end: End | None = None
    while end is None:
        try:
            async with asyncio.timeout(STALL_SECONDS):
                data = await connection.read_message()
        except TimeoutError:
            raise NotNowError(
                "nothing came for a while", had_begun=arriving.announced is not None
            ) from None
        if data is None:
            raise NotNowError(
                f"the connection ended: {connection.close_reason}",
                had_begun=arriving.announced is not None,
            )
        if isinstance(data, str):
            raise StreamError("a text among the files")
        end = await to_its_end(partial(arriving.feed, data))
        if end is not None or clock() - told_at >= _TELL_SECONDS:
            told_at = clock()
            _tell(arriving, progress)
    return end


def _tell(arriving: Arriving, progress: ProgressSink) -> None:
    announced = arriving.announced
    if announced is None:
        return
    for step, unit, done, total in (
        ("copy_bytes", "bytes", arriving.size, announced.size),
        ("copy_files", "files", arriving.entries, announced.entries),
    ):
        progress(Progress(step=step, done=done, total=total, unit=unit))


def _came(end: End) -> str:
    """Return what has come, in words."""
    told = f"{end.entries} files and folders, {describe_bytes(end.size)}"
    if end.left_out:
        told += (
            f"; {end.left_out} were left out, which are links that lead outside the "
            "folder, sockets, devices or another's"
        )
    return told


def _unwritten(error: OSError) -> CopyError:
    if error.errno in _NO_ROOM:
        return CopyError(str(error), reason=Reason.DISK_FULL)
    if error.errno == errno.EEXIST:
        return CopyError(
            str(error), detail="it has two names that are one on this machine"
        )
    return CopyError(
        str(error), detail=f"something could not be written: {error.strerror}"
    )
