"""The whole state of a fleet as one document, from which decisions can be replayed.

It holds whatever a decision depends on, and no ref, token or environment: every ref is
replaced by a stand-in.  Stand-ins sort as the refs do and the drivers' keys stay, so
that selection and placement come out the same.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.metadata import version
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Catalog, Runtime
from fleet_contracts.placement_facts import PlacementFacts
from fleet_contracts.reasons import Explanation
from fleet_contracts.time_limits import NO_LIMITS, TimeLimits
from fleet_contracts.timeline import TimelineEvent
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.likely import Outset
from fleet_hub.scheduling.snapshot import MachineState, Pin, Snapshot
from fleet_hub.scheduling.ways_out import Copying


SCHEMA: Final = "jupyterhub-fleet/state/v1"
_Value = TypeVar("_Value")


class StateError(Exception):
    """A file that holds no state of a fleet; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One workload, as an explanation tells of it."""

    workload: str
    generation: int
    principal: Principal
    server: str
    profile: str
    profile_version: str | None = None
    class_name: str | None
    state: State
    parked: bool = False
    asked_at: datetime
    headline: str
    """What every page shows first."""
    explanation: Explanation | None = None
    machine: str | None = None
    driver: str | None = None
    runtime: str | None = None
    """Its name; the ref stays with the operator."""
    placed_at: datetime | None = None
    ends_at: datetime | None = None
    time_limits: TimeLimits = NO_LIMITS
    """Those that it runs under, or would if it started now."""
    outset: Outset | None = None
    """What it was first promised while it waits."""
    pin: Pin | None = None
    """Where it has to run, beside its files."""
    files: Pin | None = None
    """Where its files are, even if it begins elsewhere meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNote:
    """What is known of a machine beside what placement reads."""

    name: str
    provider: str
    agent_version: str | None
    enrolled_at: datetime
    since: datetime
    """When it came, or went."""
    foreign: int = 0
    """How many allocations it reports that nobody here issued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetState:
    """Everything, at one moment."""

    schema: str = SCHEMA
    version: str = field(default_factory=lambda: version("jupyterhub-fleet"))
    as_of: datetime
    snapshot: Snapshot
    """What every decision is a function of."""
    workloads: tuple[Subject, ...] = ()
    machines: tuple[MachineNote, ...] = ()
    copying: Copying = field(default_factory=Copying)
    history: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """How the latest waits of each class went."""
    runs: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """How long the latest runs of each class took, in seconds."""
    timelines: Mapping[str, tuple[TimelineEvent, ...]] = field(default_factory=dict)
    """Of the workloads that wait or hold something."""

    def subject(self, workload: str) -> Subject | None:
        """Return the workload of this name, or None."""
        return next((one for one in self.workloads if one.workload == workload), None)

    def files(self, user: str, server: str) -> Pin | None:
        """Return where the files of this user's server are; None: it has none."""
        return latest_files(
            one
            for one in self.workloads
            if (one.principal.name, one.server) == (user, server)
        )

    def principal(self, name: str) -> Principal | None:
        """Return the Hub user called *name* as they last asked; None: never."""
        known = [one for one in self.workloads if one.principal.name == name]
        latest = max(known, key=lambda one: one.asked_at, default=None)
        return None if latest is None else latest.principal


def latest_files(servers: Iterable[Subject]) -> Pin | None:
    """Return where the files of the last of *servers* of one name are."""
    latest = max(servers, key=lambda one: one.asked_at, default=None)
    return None if latest is None else latest.files


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What every state begins with, whatever else its version has."""

    schema: str


_STATE: Final = TypeAdapter(FleetState)
_HEAD: Final = TypeAdapter(_Head)


def dump(state: FleetState) -> dict[str, Any]:
    """Return *state* as JSON's types, without any ref."""
    document: dict[str, Any] = _STATE.dump_python(
        redacted(state), mode="json", by_alias=True
    )
    return document


def load(text: str | bytes) -> FleetState:
    """Return the state that ``dump`` wrote.

    Raises:
        StateError: it is none, or of another version.
    """
    written = text.encode() if isinstance(text, str) else text.removeprefix(BOM_UTF8)
    other = _schema(written)
    if other not in {None, SCHEMA}:
        raise StateError(
            f"this is no exported state of this version: it is {other!r}, and only "
            f"{SCHEMA!r} is read"
        )
    try:
        return _STATE.validate_json(written)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise StateError(
            f"this is no exported state: {where}: {first['msg']}"
        ) from None


def _schema(written: bytes) -> str | None:
    """Return which schema the state says that it has; None: it says nothing."""
    try:
        return _HEAD.validate_json(written).schema
    except ValidationError:
        return None


def redacted(state: FleetState) -> FleetState:
    """Return *state* with a stand-in for every ref, and for environments named by one.

    Redacting again changes nothing.
    """
    snapshot = state.snapshot
    facts = [machine.facts for machine in snapshot.machines]
    names = sorted({*_refs(snapshot.catalog), *_environments(facts)})
    width = len(str(len(names)))
    known = {name: f"redacted-{place:0{width}}" for place, name in enumerate(names, 1)}
    catalog = snapshot.catalog
    return replace(
        state,
        snapshot=replace(
            snapshot,
            catalog=catalog.model_copy(
                update={
                    "runtimes": tuple(_hidden(item, known) for item in catalog.runtimes)
                }
            ),
            machines=tuple(_stripped(machine, known) for machine in snapshot.machines),
        ),
    )


def _refs(catalog: Catalog) -> Iterator[str]:
    for runtime in catalog.runtimes:
        yield from runtime.driver_refs.values()
        yield from filter(None, (runtime.ref, runtime.container_ref))


def _environments(facts: list[PlacementFacts]) -> Iterator[str]:
    for one in facts:
        yield from one.environments
        yield from one.frameworks


def _hidden(runtime: Runtime, known: Mapping[str, str]) -> Runtime:
    return runtime.model_copy(
        update={
            "ref": known.get(runtime.ref or ""),
            "container_ref": known.get(runtime.container_ref or ""),
            "driver_refs": {
                driver: known[ref] for driver, ref in runtime.driver_refs.items()
            },
        }
    )


def _stripped(machine: MachineState, known: Mapping[str, str]) -> MachineState:
    facts = machine.facts
    if not facts.environments and not facts.frameworks:
        return machine
    return replace(
        machine,
        facts=facts.model_copy(
            update={
                "environments": _renamed(facts.environments, known),
                "frameworks": _renamed(facts.frameworks, known),
            }
        ),
    )


def _renamed(
    table: Mapping[str, _Value], known: Mapping[str, str]
) -> dict[str, _Value]:
    return {known[name]: value for name, value in table.items()}
