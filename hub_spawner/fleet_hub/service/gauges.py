"""What is so at the moment of asking: who waits and why, what is held, what there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from fleet_contracts.allocations import State
from fleet_contracts.reasons import Reason
from fleet_hub.controller.core import Core
from fleet_hub.controller.model import Presence
from fleet_hub.controller.records import MachineRecord, Workload


PREFIX: Final = "jupyterhub_fleet"
_STATES: Final = ("ready", "recovering", "draining", "set_aside", "offline")


class Family(NamedTuple):
    """One metric, as it is documented."""

    name: str
    kind: str
    text: str
    labels: tuple[str, ...] = ()


FAMILIES: Final = tuple(
    Family(name, "gauge", text, labels)
    for name, text, labels in (
        ("waiting", "Workloads in the line.", ("class",)),
        (
            "waiting_parked",
            "Those of the line whose start JupyterHub let go of.",
            ("class",),
        ),
        ("waiting_oldest_seconds", "How long the longest wait has lasted.", ("class",)),
        (
            "waiting_reasons",
            "Workloads in the line by what they wait for.",
            ("class", "reason"),
        ),
        ("held", "Workloads that hold something of a machine.", ("class", "state")),
        ("held_devices", "Devices held.", ("class",)),
        ("held_cpu_cores", "Cores held.", ("class",)),
        ("held_memory_bytes", "Memory held.", ("class",)),
        (
            "machines",
            "Machines by state: ready, recovering, draining, set_aside or offline.",
            ("state",),
        ),
        (
            "devices",
            "Devices of the machines that are connected.",
            ("accelerator", "usable"),
        ),
        ("cpu_cores", "Cores of the machines that are connected.", ()),
        ("memory_bytes", "Memory of the machines that are connected.", ()),
    )
)
_BY_NAME: Final = {family.name: family for family in FAMILIES}
RESCUES: Final = Family(
    "sweep_rescues",
    "counter",
    "What a sweep found and no event had brought up; anything but 0 is a fault.",
)


class Gauges(Collector):
    """Reads one controller's state; a look costs one pass over what is known."""

    def __init__(self, core: Core) -> None:
        """Read *core*."""
        self._core = core

    @override
    def collect(self) -> Iterator[Metric]:
        """Yield everything, each class with its zeros."""
        core = self._core
        now, waiting = core.clock.now(), core.model.waiting()
        yield from self._line(waiting, now)
        yield from self._holds()
        yield from self._machines()
        rescues = CounterMetricFamily(f"{PREFIX}_{RESCUES.name}", RESCUES.text)
        rescues.add_metric([], core.engine.rescues)
        yield rescues

    def _classes(self) -> list[str]:
        return [item.name for item in self._core.catalogs.current().classes]

    def _line(self, waiting: list[Workload], now: datetime) -> Iterator[Metric]:
        lengths = Counter(dict.fromkeys(self._classes(), 0))
        parked: Counter[str] = Counter(dict.fromkeys(self._classes(), 0))
        oldest = dict.fromkeys(self._classes(), 0.0)
        reasons: Counter[tuple[str, str]] = Counter()
        for record in waiting:
            name = record.choice.class_name or ""
            lengths[name] += 1
            parked[name] += record.parked
            waited = max(0.0, (now - record.asked_at).total_seconds())
            oldest[name] = max(oldest.get(name, 0.0), waited)
            told = self._core.model.waits.get(record.id)
            # After a restart nobody was told anything yet; what they were told before
            # is in the record.
            why = told.explanation if told else record.explanation
            code = why.reason if why else Reason.NOT_EVALUATED_YET
            reasons[name, code.value] += 1
        yield _gauge("waiting", lengths)
        yield _gauge(
            "waiting_parked",
            parked,
        )
        yield _gauge(
            "waiting_oldest_seconds",
            oldest,
        )
        yield _gauge(
            "waiting_reasons",
            reasons,
        )

    def _holds(self) -> Iterator[Metric]:
        ready = State.READY.value
        holding = Counter({(name, ready): 0 for name in self._classes()})
        amounts = {
            name: Counter(dict.fromkeys(self._classes(), 0))
            for name in ("devices", "cpu_cores", "memory_bytes")
        }
        for record in self._core.model.workloads.values():
            assignment = record.assignment
            if not record.holds or assignment is None:
                continue
            name, held = assignment.class_name, assignment.resources
            holding[name, record.state.value] += 1
            amounts["devices"][name] += max(assignment.devices_asked, len(held.devices))
            amounts["cpu_cores"][name] += held.cpu_milli
            amounts["memory_bytes"][name] += held.memory_bytes
        yield _gauge("held", holding)
        yield _gauge("held_devices", amounts["devices"])
        cores = {name: milli / 1000 for name, milli in amounts["cpu_cores"].items()}
        yield _gauge("held_cpu_cores", cores)
        yield _gauge("held_memory_bytes", amounts["memory_bytes"])

    def _machines(self) -> Iterator[Metric]:
        states = Counter(dict.fromkeys(_STATES, 0))
        devices: Counter[tuple[str, str]] = Counter()
        cores = memory = 0
        now = self._core.clock.now()
        for name, record in self._core.model.machines.items():
            presence = self._core.model.presence[name]
            until = self._core.model.set_aside_until(name, now)
            states[_state(record, presence, is_set_aside=until is not None)] += 1
            if presence.online:
                cores += presence.facts.cores_milli or 0
                memory += presence.facts.memory_bytes or 0
                devices.update(
                    (item.accelerator.value, "yes" if item.usable else "no")
                    for item in presence.facts.devices
                )
        yield _gauge("machines", states)
        yield _gauge(
            "devices",
            devices,
        )
        yield _gauge("cpu_cores", {(): cores / 1000})
        yield _gauge("memory_bytes", {(): memory})


def _state(record: MachineRecord, presence: Presence, *, is_set_aside: bool) -> str:
    if not presence.online:
        return "offline"
    if not presence.inventory_known:
        return "recovering"
    if record.draining_by is not None:
        return "draining"
    return "set_aside" if is_set_aside else "ready"


def _gauge(name: str, values: Mapping[Any, float]) -> Metric:
    family = _BY_NAME[name]
    gauge = GaugeMetricFamily(f"{PREFIX}_{name}", family.text, labels=family.labels)
    for key, value in sorted(values.items()):
        gauge.add_metric([key] if isinstance(key, str) else list(key), value)
    return gauge
