"""What this machine has taken on: the agent's own truth, whatever the controller says.

Each change is one transaction that is on the disk when the method returns.  A change
of state and the report that tells of it are the same transaction, so the controller
can never be told something that a crash then undoes, nor miss something that is true.
Environments and arguments of workloads may hold secrets and are never written.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from fleet_agent.drivers.base import Handle
from fleet_agent.ledger_entry import REMARKS, Entry, Key, StopIntent, without_secrets
from fleet_agent.ledger_file import broken, open_ledger_file, transaction
from fleet_agent.ledger_rows import (
    COLUMNS,
    entry_of,
    explanation_text,
    handle_text,
    stop_text,
)
from fleet_contracts.protocol import AgentEvent, Report
from fleet_contracts.reasons import Explanation
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import WorkloadSpec


_OF_KEY = "WHERE allocation = ? AND epoch = ?"
_FORGOTTEN_KEPT_SECONDS = 90 * 24 * 3600
"""How long a repeated launch of something forgotten is still recognised."""


class Ledger:
    """The durable record of allocations on this machine; one process at a time."""

    def __init__(self, path: Path) -> None:
        """Open the ledger at *path*, or make one; see ``open_ledger_file``."""
        self._path = path
        self._connection = open_ledger_file(path)
        try:
            self.entries()
            self.unacknowledged()
        except (ValueError, KeyError, TypeError) as error:
            self._connection.close()
            # The text of a validation error may quote what was stored.
            raise broken(path, f"a {type(error).__name__} in a row") from None

    def close(self) -> None:
        """Release the file; nothing is lost by not calling this."""
        self._connection.close()

    @property
    def ledger_id(self) -> str:
        """The identity that was made with the file."""
        return self._meta("ledger_id")

    @property
    def highest_epoch(self) -> int:
        """The highest epoch that was ever accepted or stopped here."""
        return int(self._meta("highest_epoch"))

    # ------------------------------------------------------------------- reading

    def entries(self) -> tuple[Entry, ...]:
        """Return every allocation that is not forgotten, in a stable order."""
        rows = self._connection.execute(
            f"SELECT {COLUMNS} FROM allocations ORDER BY epoch, allocation"  # noqa: S608 - constants only
        )
        return tuple(entry_of(row) for row in rows)

    def holds_metal(self) -> bool:
        """Return whether anything here holds the Mac's GPU."""
        return any(
            entry.holds and entry.spec is not None and entry.spec.resources.metal
            for entry in self.entries()
        )

    def entry(self, key: Key) -> Entry | None:
        """Return the allocation with this epoch, or None."""
        row = self._connection.execute(
            f"SELECT {COLUMNS} FROM allocations {_OF_KEY}",  # noqa: S608 - constants only
            key,
        ).fetchone()
        return None if row is None else entry_of(row)

    def newest_epoch(self, allocation: str) -> int | None:
        """Return the newest epoch known of *allocation*, forgotten ones included."""
        (epoch,) = self._connection.execute(
            "SELECT max(epoch) FROM (SELECT epoch FROM allocations WHERE allocation = ?"
            " UNION ALL SELECT epoch FROM forgotten WHERE allocation = ?)",
            (allocation, allocation),
        ).fetchone()
        return None if epoch is None else int(epoch)

    def unacknowledged(self, key: Key | None = None) -> tuple[Report, ...]:
        """Return the reports that the controller has not confirmed, oldest first."""
        where, values = ("", ()) if key is None else (_OF_KEY, key)
        rows = self._connection.execute(
            f"SELECT report FROM outbox {where} ORDER BY epoch, allocation, seq",  # noqa: S608 - constants only
            values,
        )
        return tuple(Report.model_validate_json(text) for (text,) in rows)

    def count_unacknowledged(self, key: Key) -> int:
        """Return how many reports of one allocation are not confirmed."""
        (count,) = self._connection.execute(
            f"SELECT count(*) FROM outbox {_OF_KEY}",  # noqa: S608 - constants only
            key,
        ).fetchone()
        return int(count)

    # ------------------------------------------------------------------- writing

    def open(
        self,
        key: Key,
        event: AgentEvent,
        *,
        at: datetime,
        spec: WorkloadSpec | None = None,
        explanation: Explanation | None = None,
    ) -> Report:
        """Enter a new allocation with its first report: accepted, rejected or ended.

        The caller has made sure that nothing forbids it (``acceptance.py``); both
        happen without a pause between them.
        """
        kept = None if spec is None else without_secrets(spec).model_dump_json()
        with self._transaction():
            self._connection.execute(
                f"INSERT INTO allocations ({COLUMNS})"  # noqa: S608 - constants only
                " VALUES (?, ?, ?, 0, ?, NULL, NULL, NULL, NULL, NULL)",
                (*key, event, kept),
            )
            if event is not AgentEvent.REJECTED:
                self._raise_highest_epoch(key.epoch)
            return self._append(key, event, at=at, explanation=explanation)

    def report(
        self,
        key: Key,
        event: AgentEvent,
        *,
        at: datetime,
        url: str | None = None,
        progress: Progress | None = None,
        explanation: Explanation | None = None,
        ends_at: float | None = None,
    ) -> Report:
        """Record what happened to an allocation, and the report that tells of it."""
        with self._transaction():
            if ends_at is not None:
                self._set(key, "ends_at", ends_at)
            return self._append(
                key,
                event,
                at=at,
                url=url,
                progress=progress,
                explanation=explanation,
            )

    def keep_handle(self, key: Key, handle: Handle | None) -> None:
        """Make durable how to undo what exists now; None: nothing exists any more."""
        with self._transaction():
            self._set(key, "handle", handle_text(handle))

    def ask_stop(self, key: Key, intent: StopIntent, *, at: datetime) -> Report | None:
        """Record the decision to end an allocation; None when it was ending already.

        A repeated decision can only make the end faster; the first explanation stays.
        """
        with self._transaction():
            entry = self.entry(key)
            if entry is None or not entry.holds:
                return None
            if entry.stop is not None:
                intent = StopIntent(
                    now=entry.stop.now or intent.now,
                    explanation=entry.stop.explanation,
                )
            self._set(key, "stop", stop_text(intent))
            if entry.stop is not None:
                return None
            return self._append(
                key, AgentEvent.STOPPING, at=at, explanation=intent.explanation
            )

    def acknowledge(self, key: Key, seq: int, *, at: datetime) -> None:
        """Drop the reports up to *seq*; a refused allocation is then forgotten too."""
        with self._transaction():
            self._connection.execute(
                f"DELETE FROM outbox {_OF_KEY} AND seq <= ?",  # noqa: S608 - constants only
                (*key, seq),
            )
            entry = self.entry(key)
            if (
                entry is not None
                and entry.event is AgentEvent.REJECTED
                and seq >= entry.seq
            ):
                self._forget(key, at)

    def forget(self, key: Key, *, at: datetime) -> bool:
        """Drop an allocation that is over; False when it is not, or is unknown."""
        with self._transaction():
            entry = self.entry(key)
            if entry is None or entry.holds:
                return False
            self._forget(key, at)
            return True

    # ------------------------------------------------------------------- helpers

    def _transaction(self) -> AbstractContextManager[None]:
        return transaction(self._connection, self._path)

    def _meta(self, name: str) -> str:
        (value,) = self._connection.execute(
            "SELECT value FROM meta WHERE name = ?", (name,)
        ).fetchone()
        return str(value)

    def _set(self, key: Key, column: str, value: object) -> None:
        changed = self._connection.execute(
            f"UPDATE allocations SET {column} = ? {_OF_KEY}",  # noqa: S608 - constants only
            (value, *key),
        )
        if changed.rowcount != 1:
            raise KeyError(key)

    def _forget(self, key: Key, at: datetime) -> None:
        """Keep of an allocation only that it was there, so it cannot come again."""
        for table in ("outbox", "allocations"):
            self._connection.execute(f"DELETE FROM {table} {_OF_KEY}", key)  # noqa: S608 - constants only
        self._connection.execute(
            "DELETE FROM forgotten WHERE forgotten_at < ?",
            (at.timestamp() - _FORGOTTEN_KEPT_SECONDS,),
        )
        self._connection.execute(
            "INSERT INTO forgotten VALUES (?, ?, ?) ON CONFLICT (allocation) DO UPDATE"
            " SET epoch = max(epoch, excluded.epoch),"
            " forgotten_at = excluded.forgotten_at",
            (*key, at.timestamp()),
        )

    def _raise_highest_epoch(self, epoch: int) -> None:
        self._connection.execute(
            "UPDATE meta SET value = max(CAST(value AS INTEGER), ?)"
            " WHERE name = 'highest_epoch'",
            (epoch,),
        )

    def _append(
        self,
        key: Key,
        event: AgentEvent,
        *,
        at: datetime,
        url: str | None = None,
        progress: Progress | None = None,
        explanation: Explanation | None = None,
    ) -> Report:
        (last,) = self._connection.execute(
            f"SELECT seq FROM allocations {_OF_KEY}",  # noqa: S608 - constants only
            key,
        ).fetchone()
        report = Report(
            allocation=key.allocation,
            epoch=key.epoch,
            seq=last + 1,
            at=at,
            event=event,
            url=url,
            progress=progress,
            explanation=explanation,
        )
        self._set(key, "seq", report.seq)
        if event not in REMARKS:
            self._set(key, "event", event)
            self._set(key, "url", url)
            self._set(key, "explanation", explanation_text(explanation))
        self._connection.execute(
            "INSERT INTO outbox VALUES (?, ?, ?, ?)",
            (*key, report.seq, report.model_dump_json(exclude_none=True)),
        )
        return report
