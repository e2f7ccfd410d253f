"""What the controller can say about a machine, and what it can ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from pydantic import ValidationError

from fleet_contracts.capabilities import Usage, WorkerCapabilities
from fleet_contracts.identity import with_identity
from fleet_contracts.protocol import Redetect
from fleet_hub.controller.core import Core
from fleet_hub.controller.records import MachineRecord


log = structlog.get_logger()


def look_again(core: Core, machine: str) -> bool:
    """Ask *machine* to look at itself again; False: it is away.

    What it finds comes as a change of its capabilities.
    """
    return core.links.send(machine, Redetect())


def picture_of(core: Core, record: MachineRecord) -> WorkerCapabilities:
    """Return the machine's own word about its hardware, and ours about who it is.

    A word that is not understood is no word: everything in it is unknown.
    """
    try:
        told = WorkerCapabilities.model_validate(record.capabilities)
    except ValidationError:
        told = WorkerCapabilities()
    usage = core.model.presence[record.name].usage
    if usage is not None:
        told = told.model_copy(update={"usage": usage})
    return with_identity(
        told,
        name=record.name,
        owner=record.owner,
        provider=record.supplier,
        recorded_at=record.enrolled_at,
    )


def observe(core: Core, machine: str, usage: Mapping[str, Any] | None) -> None:
    """Keep how busy *machine* says that it is, until its next word.

    It is shown and nothing else: nothing is written, and no placement follows.
    """
    if usage is None:
        return
    try:
        core.model.presence[machine].usage = Usage.model_validate(usage)
    except ValidationError as error:
        # The heartbeat counts all the same: an observation must not cost a link.
        where = [".".join(map(str, fault["loc"])) for fault in error.errors()[:5]]
        log.warning("usage not understood", machine=machine, fields=where)
