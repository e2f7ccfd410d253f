"""What a principal could start now, and what may be asked for at all."""

from __future__ import annotations

from typing import Final

from fleet_contracts.catalog import Profile, ResourceClass
from fleet_contracts.reasons import Explanation, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import Principal, ServerKey
from fleet_hub.admission import Offer, Offers, ValidateAnswer
from fleet_hub.controller.core import Core
from fleet_hub.controller.snapshots import pin_of, snapshot
from fleet_hub.controller.words import STARTS_NOW
from fleet_hub.scheduling.choice import read_choice
from fleet_hub.scheduling.explain import offer
from fleet_hub.scheduling.snapshot import Pin, Snapshot


_FINAL: Final = frozenset({ReasonKind.NEVER, ReasonKind.NOT_ALLOWED})


def offers_for(core: Core, principal: Principal, key: ServerKey | None) -> Offers:
    """Return every profile and class that *principal* may see, in catalog order."""
    fleet, pin = snapshot(core), _pin(core, key)
    catalog = fleet.catalog
    return Offers(
        as_of=core.clock.now(),
        offers=tuple(
            _offer(fleet, principal, profile, chosen, pin)
            for profile in catalog.profiles
            if profile.audience.includes(principal)
            for chosen in catalog.classes_of(profile)
        ),
    )


def _pin(core: Core, key: ServerKey | None) -> Pin | None:
    record = core.model.by_key(key) if key is not None else None
    return pin_of(record.home) if record is not None else None


def _offer(
    fleet: Snapshot,
    principal: Principal,
    profile: Profile,
    chosen: ResourceClass,
    pin: Pin | None,
) -> Offer:
    verdict = offer(fleet, principal, profile.name, chosen.name, pin=pin)
    why = verdict.explanation
    return Offer(
        profile=profile.name,
        class_name=chosen.name,
        title=profile.title,
        description=profile.description,
        class_title=chosen.title,
        accelerator=chosen.accelerator.value,
        cpu_milli=chosen.cpu_milli,
        memory_bytes=chosen.memory_bytes,
        devices=chosen.devices,
        limit_seconds=fleet.catalog.limit_seconds(profile, chosen),
        startable=verdict.startable,
        choosable=verdict.choosable,
        waiting=verdict.ahead,
        headline=sentence(why) if why is not None else STARTS_NOW,
        explanation=why,
    )


def validate(
    core: Core, principal: Principal, options: dict[str, object]
) -> ValidateAnswer:
    """Return the normalised choice, or the one reason why it may not be asked for.

    What can only wait is valid; what no machine may or can ever run is not.
    """
    choice = read_choice(core.catalogs.current(), principal, options)
    if isinstance(choice, Explanation):
        return _refusal(choice)
    verdict = offer(snapshot(core), principal, choice.profile, choice.class_name)
    if verdict.explanation is not None and verdict.explanation.kind in _FINAL:
        return _refusal(verdict.explanation)
    return ValidateAnswer(choice=choice)


def _refusal(fault: Explanation) -> ValidateAnswer:
    return ValidateAnswer(explanation=fault, headline=sentence(fault))
