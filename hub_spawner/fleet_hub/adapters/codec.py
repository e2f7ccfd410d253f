"""How records become JSON rows, and rows records again."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import TypeAdapter

from fleet_contracts.timeline import TimelineEvent
from fleet_hub.controller.audit_entry import AuditEntry
from fleet_hub.controller.records import (
    EnrolmentCode,
    Issued,
    MachineRecord,
    Secrets,
    Workload,
)


Record = TypeVar("Record")


class Codec(Generic[Record]):
    """Both ways for one kind of record; a row of another shape is a ValueError."""

    def __init__(self, kind: type[Record]) -> None:
        """Translate records of *kind*."""
        self._adapter: TypeAdapter[Record] = TypeAdapter(kind)

    def encode(self, record: Record) -> str:
        """Return *record* as a row's text."""
        return self._adapter.dump_json(record, by_alias=True).decode()

    def decode(self, text: str) -> Record:
        """Return the record that *text* holds.

        Raises:
            ValueError: it holds none.
        """
        return self._adapter.validate_json(text)


WORKLOADS = Codec(Workload)
MACHINES = Codec(MachineRecord)
ISSUED = Codec(Issued)
SECRETS = Codec(Secrets)
EVENTS = Codec(TimelineEvent)
CODES = Codec(EnrolmentCode)
AUDIT = Codec(AuditEntry)
