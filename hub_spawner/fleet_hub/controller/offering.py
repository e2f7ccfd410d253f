"""What a principal could start now, and what may be asked for at all."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fleet_contracts.catalog import Deadlines, Profile, ResourceClass
from fleet_contracts.reasons import Explanation, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import Principal, ServerKey
from fleet_hub.admission import Offer, Offers, ValidateAnswer
from fleet_hub.controller import copying
from fleet_hub.controller.core import Core
from fleet_hub.controller.records import Home
from fleet_hub.controller.states import pin_of
from fleet_hub.controller.words import STARTS_NOW
from fleet_hub.explaining.ways import way_out
from fleet_hub.scheduling.choice import read_choice
from fleet_hub.scheduling.explain import what_if
from fleet_hub.scheduling.likely_ends import Runs, with_likely_ends
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Pin
from fleet_hub.scheduling.ways_out import Copying, WaysOut, ways_out


_FINAL: Final = frozenset({ReasonKind.NEVER, ReasonKind.NOT_ALLOWED})


def offers_for(core: Core, principal: Principal, key: ServerKey | None) -> Offers:
    """Return every profile and class that *principal* may see, in catalog order."""
    now, home = core.clock.now(), _home(core, key)
    pin, copied = pin_of(home), copying.known(core)
    planner = core.engine.planner(now)
    catalog = planner.catalog
    return Offers(
        as_of=now,
        offers=tuple(
            _offer(
                planner,
                principal,
                profile,
                chosen,
                pin=pin,
                copied=copied,
                runs=core.model.runs,
                now=now,
            )
            for profile in catalog.profiles
            if profile.audience.includes(principal)
            for chosen in catalog.classes_of(profile)
        ),
    )


def _home(core: Core, key: ServerKey | None) -> Home | None:
    record = core.model.by_key(key) if key is not None else None
    return copying.go_back(record).home if record is not None else None


def _offer(
    planner: Planner,
    principal: Principal,
    profile: Profile,
    chosen: ResourceClass,
    *,
    pin: Pin | None,
    copied: Copying,
    runs: Runs,
    now: datetime,
) -> Offer:
    verdict = what_if(planner, principal, profile.name, chosen.name, pin=pin)
    why = verdict.explanation
    if why is not None:
        why = with_likely_ends(why, runs, now=now.timestamp())
    found = WaysOut()
    if pin is not None and not verdict.choosable:
        found = ways_out(
            planner, principal, profile.name, chosen.name, pin=pin, copying=copied
        )
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
        time_limits=planner.catalog.time_limits(profile, chosen),
        startable=verdict.startable,
        choosable=verdict.choosable,
        ways_out=tuple(map(way_out, found.ways)),
        no_copy=found.no_copy,
        waiting=verdict.ahead,
        headline=sentence(why, now=now) if why is not None else STARTS_NOW,
        explanation=why,
        change=verdict.change,
    )


def validate(
    core: Core, principal: Principal, options: dict[str, object]
) -> ValidateAnswer:
    """Return the normalised choice, or the one reason why it may not be asked for.

    What can only wait is valid; what no machine may or can ever run is not.
    """
    catalog = core.catalogs.current()
    choice = read_choice(catalog, principal, options)
    if isinstance(choice, Explanation):
        return _refusal(choice)
    planner = core.engine.planner(core.clock.now())
    verdict = what_if(planner, principal, choice.profile, choice.class_name)
    if verdict.explanation is not None and verdict.explanation.kind in _FINAL:
        return _refusal(verdict.explanation)
    profile = catalog.profile_named(choice.profile)
    deadlines = profile.deadlines if profile is not None else Deadlines()
    return ValidateAnswer(
        choice=choice,
        start_seconds=deadlines.prepare_seconds + deadlines.start_seconds,
    )


def _refusal(fault: Explanation) -> ValidateAnswer:
    return ValidateAnswer(explanation=fault, headline=sentence(fault))
