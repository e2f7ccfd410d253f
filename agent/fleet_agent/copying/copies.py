"""What an allocation does with the copy that it is to begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from fleet_agent.copying import places
from fleet_agent.copying.errors import CopyError
from fleet_agent.copying.lines import Dial
from fleet_agent.copying.receiving import Note, fetch
from fleet_agent.drivers.base import Driver, NotebookFolder, ProgressSink
from fleet_agent.drivers.common.threads import to_its_end
from fleet_agent.ledger_entry import Entry, Key
from fleet_contracts.workloads import DriverName, WorkloadSpec


_Deed = Callable[[NotebookFolder], None]


class Copies:
    """The copies of one machine."""

    def __init__(self, dial: Dial) -> None:
        """Fetch them through *dial*."""
        self._dial = dial

    async def fetch(
        self,
        key: Key,
        spec: WorkloadSpec,
        driver: Driver,
        progress: ProgressSink,
        note: Note,
    ) -> None:
        """Return once the folder of *spec* holds what it is to begin with.

        Raises:
            DriverError: it cannot be had.
        """
        order = spec.copy_order
        if order is None:
            return
        folder = _folder(spec, driver)
        if folder is None:
            raise CopyError(
                "this driver keeps no files", detail="no files can be kept there"
            )
        await fetch(
            self._dial,
            key,
            folder,
            limit_bytes=order.limit_bytes,
            progress=progress,
            note=note,
        )

    async def hand_over(self, spec: WorkloadSpec, driver: Driver) -> None:
        """From here on the copy is the user's folder, and stays."""
        await self._do(places.hand_over, spec, driver)

    async def discard(self, spec: WorkloadSpec, driver: Driver) -> None:
        """Remove a copy that no server has used; a folder in use stays."""
        await self._do(places.discard, spec, driver)

    async def tidy(
        self, drivers: Mapping[DriverName, Driver], entries: Iterable[Entry]
    ) -> None:
        """Remove what agents left behind that were killed."""
        held: dict[DriverName, set[str]] = {}
        for entry in entries:
            if entry.holds and entry.spec is not None:
                names = held.setdefault(entry.spec.runtime.driver, set())
                names.add(entry.spec.notebook)
        for name, driver in drivers.items():
            base = driver.notebooks()
            if base is not None:
                await to_its_end(partial(places.tidy, base, held.get(name, set())))

    async def _do(self, deed: _Deed, spec: WorkloadSpec, driver: Driver) -> None:
        folder = _folder(spec, driver) if spec.copy_order is not None else None
        if folder is not None:
            await to_its_end(partial(deed, folder))


def _folder(spec: WorkloadSpec, driver: Driver) -> NotebookFolder | None:
    return driver.notebook(spec.notebook, spec.owner_id, spec.owner)
