"""Can machines of this signature ever run this request, and what would it take?

The answer is kept with its reasons and numbers, never as a bare yes or no: the tenth
machine of a signature explains itself as well as the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from fleet_contracts.catalog import Relation, TrustPolicy
from fleet_contracts.devices import reserves_metal
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.device_filters import devices_of_kind, suits
from fleet_hub.scheduling.filters import Candidate, refusal_of
from fleet_hub.scheduling.nearness import is_hopeless, nearest
from fleet_hub.scheduling.signatures import Signature, type_of
from fleet_hub.scheduling.vectors import Need


DRIVER_ORDER: Final = (
    DriverName.NATIVE,
    DriverName.DOCKER,
    DriverName.KUBERNETES,
    DriverName.SIMULATION,
)
"""Which driver is taken where several fit: the least overhead first."""
_CHANGEABLE: Final = attrgetter(
    "cpu_milli",
    "memory_bytes",
    "disk_bytes",
    "devices",
    "device_memory_bytes",
    "compute_capability",
    "device_models",
)
"""What of a class somebody could ask for otherwise; see ``relaxations``."""
MOST_IMAGINED: Final = 20_000
"""So many outlooks of changed requests are remembered: a few megabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a signature answers to a request of one relation."""

    needs: tuple[Need, ...]
    """One for each driver that could run it, the preferred driver first."""
    misses: tuple[Explanation, ...]
    """Why the other drivers cannot."""
    unhealthy: Explanation | None
    """Devices that would be needed do not work at the moment."""

    @property
    def placeable(self) -> bool:
        """Whether anything can be placed there now, room aside."""
        return bool(self.needs) and self.unhealthy is None

    @property
    def hopeless(self) -> bool:
        """Whether waiting can clear none of it."""
        return not self.needs and all(map(is_hopeless, self.misses))

    @property
    def nearest_miss(self) -> Explanation:
        """The miss that came closest; asked only where nothing is needed."""
        return nearest(self.misses) or Explanation(reason=Reason.DATA_NOT_LOCAL)


@dataclass(slots=True)
class Outlooks:
    """Every outlook that was ever asked for, under one trust policy."""

    trust: TrustPolicy
    known: dict[tuple[str, int, Relation, DriverName | None], Outlook] = field(
        default_factory=dict
    )
    alike: dict[object, Outlook] = field(default_factory=dict)
    requests: dict[int, Request] = field(default_factory=dict)
    """Keeps the requests alive whose identity is a key."""
    imagined: dict[object, tuple[Outlook, Request]] = field(default_factory=dict)
    """Those of requests for which there is no class, and whose selections are a key."""

    def of(
        self,
        signature: Signature,
        request: Request,
        relation: Relation,
        driver: DriverName | None = None,
    ) -> Outlook:
        """Return the outlook, through any driver or through *driver* only."""
        key = (signature.key, id(request), relation, driver)
        found = self.known.get(key)
        if found is None:
            self.requests[id(request)] = request
            drivers = DRIVER_ORDER if driver is None else (driver,)
            looked = look(signature, request, relation, drivers, self.trust)
            # Relations that make no difference share one object.
            alike = (signature.key, id(request), driver, looked)
            found = self.alike.setdefault(alike, looked)
            self.known[key] = found
        return found

    def of_imagined(
        self,
        signature: Signature,
        request: Request,
        relation: Relation,
        driver: DriverName | None = None,
    ) -> Outlook:
        """Return the outlook of a request with a class of no catalog.

        It differs from one that is asked for in what can be changed, and comes again
        with each question, as another object.  There is no end of them, so that they
        are forgotten when they are many.
        """
        origin, changed = id(request.selections), _CHANGEABLE(request.chosen)
        key = (signature.key, origin, changed, relation, driver)
        found = self.imagined.get(key)
        if found is None:
            drivers = DRIVER_ORDER if driver is None else (driver,)
            outlook = look(signature, request, relation, drivers, self.trust)
            if len(self.imagined) >= MOST_IMAGINED:
                self.imagined.clear()
            found = self.imagined[key] = outlook, request
        return found[0]


def look(
    signature: Signature,
    request: Request,
    relation: Relation,
    drivers: tuple[DriverName, ...],
    trust: TrustPolicy,
) -> Outlook:
    """Work out an outlook; ``Outlooks`` keeps those that are asked for again."""
    needs: list[Need] = []
    misses: list[Explanation] = []
    for driver in drivers:
        candidate = Candidate(
            request=request,
            driver=driver,
            facts=signature.facts,
            labels=signature.labels,
            sharing=signature.sharing,
            relation=relation,
            trust=trust,
        )
        miss = refusal_of(candidate)
        if miss is None:
            needs.append(_need(signature, request, driver))
        else:
            misses.append(miss)
    return Outlook(
        needs=tuple(needs),
        misses=tuple(misses),
        unhealthy=_unhealthy(signature, request),
    )


def _unhealthy(signature: Signature, request: Request) -> Explanation | None:
    """Return that too few of the suitable devices work, or are its own; None: enough."""
    chosen = request.chosen
    suitable = [
        device
        for device in devices_of_kind(signature.facts, chosen.accelerator)
        if suits(device, chosen)
    ]
    healthy = sum(device.usable for device in suitable)
    if healthy >= chosen.devices:
        return None
    others = sorted({device.counts_to for device in suitable if device.counts_to})
    if others:
        return Explanation(reason=Reason.SAME_DEVICE, subject=", ".join(others))
    return Explanation(
        reason=Reason.UNHEALTHY,
        requested=chosen.devices,
        capacity=healthy,
        unit="devices",
    )


def _need(signature: Signature, request: Request, driver: DriverName) -> Need:
    chosen = request.chosen
    metal = reserves_metal(
        os=signature.facts.os,
        driver=driver,
        accelerator=chosen.accelerator,
        fenced=signature.facts.metal_fenced,
    )
    suitable = {
        type_of(device)
        for device in devices_of_kind(signature.facts, chosen.accelerator)
        if device.usable and device.uuid is not None and suits(device, chosen)
    }
    by_uuid = chosen.accelerator in {Accelerator.CUDA, Accelerator.ROCM}
    types = sorted(suitable) if by_uuid else []
    return Need(
        driver=driver,
        fixed=(
            chosen.cpu_milli,
            chosen.memory_bytes,
            chosen.disk_bytes,
            int(metal),
        ),
        devices=chosen.devices if by_uuid else 0,
        types=tuple(signature.position(kind) for kind in types),
        sizes=tuple(kind.memory_bytes for kind in types),
    )
