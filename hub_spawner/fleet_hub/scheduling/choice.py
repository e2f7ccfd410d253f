"""May this be asked for at all?  Judged by the catalog alone, machines aside.

The spawn form, the REST API and every later start ask the same function, so that no
path is laxer than another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fleet_contracts.base import SLUG_PATTERN
from fleet_contracts.catalog import Catalog, Profile, ResourceClass
from fleet_contracts.language import mark
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.selection import Selection, runtime_spec, select_runtime
from fleet_contracts.workloads import (
    Choice,
    DriverName,
    ModelVerdict,
    Principal,
    RuntimeSpec,
    WorkloadKind,
)
from fleet_hub.scheduling.quotas import exceeds_ever


HANDOVER_SECONDS: Final = 300.0
"""What may pass between a placement and the launch: the Hub has to be there for it."""
SLACK_SECONDS: Final = 30.0
"""What may pass between the end of a workload and the news of it."""

_SLUG: Final = re.compile(SLUG_PATTERN)
_OPTIONS = ("profile", "class", "files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A choice that may be asked for, resolved against the catalog."""

    profile: Profile
    chosen: ResourceClass
    limit_seconds: float | None
    hold_seconds: float
    """How long it may hold a machine from its placement on, at the most: until the news
    of its end has come."""
    catalog_digest: str
    selections: Mapping[DriverName, Selection] = field(repr=False)
    """What the one selector answers for each driver."""
    is_served_by_none: bool = False
    """No runtime of the profile serves the class through any driver."""
    specs: dict[DriverName, RuntimeSpec] = field(default_factory=dict, repr=False)

    def spec(self, driver: DriverName) -> RuntimeSpec:
        """Return what an agent is handed for *driver*, which serves the request."""
        if driver not in self.specs:
            self.specs[driver] = runtime_spec(
                self.selections[driver],
                accelerator=self.chosen.accelerator,
                driver=driver,
                catalog_digest=self.catalog_digest,
            )
        return self.specs[driver]


def read_choice(
    catalog: Catalog, principal: Principal, options: Mapping[str, object]
) -> Choice | Explanation:
    """Return the choice in *options*, as they come from a form or by REST, or why not.

    Anything may be in *options*: unknown keys, wrong types and odd texts are refused.
    """
    unknown = next((name for name in options if name not in _OPTIONS), None)
    if unknown is not None:
        return Explanation(reason=Reason.OPTION_UNKNOWN, subject=_shown(unknown))
    profile, class_name = options.get("profile"), options.get("class")
    if not isinstance(profile, str) or not profile:
        return _no_profile(profile)
    if class_name == "":
        class_name = None
    files = options.get("files")
    if files == "":
        files = None
    if files not in (None, "fresh", "copy"):
        return Explanation(reason=Reason.INVALID_REQUEST, subject="files")
    if class_name is not None and not isinstance(class_name, str):
        return Explanation(reason=Reason.INVALID_REQUEST, subject="class")
    resolved = resolve(catalog, principal, profile, class_name)
    if isinstance(resolved, Explanation):
        return resolved
    return Choice.model_validate(
        {"profile": resolved.profile.name, "class": class_name, "files": files}
    )


def _no_profile(profile: object) -> Explanation:
    if profile is None or profile == "":
        return Explanation(reason=Reason.PROFILE_REQUIRED)
    return Explanation(reason=Reason.INVALID_REQUEST, subject="profile")


def resolve(
    catalog: Catalog,
    principal: Principal,
    profile_name: str,
    class_name: str | None,
    model: ModelVerdict | None = None,
    *,
    known: dict[object, Request] | None = None,
) -> Request | Explanation:
    """Return what *principal* asks for with this profile and class, or why they may not.

    No machine is looked at: "some runtime of this profile serves this class" is all
    that can be said of runtimes here.  Equal choices give the same object from *known*.
    """
    profile = catalog.profile_named(profile_name)
    if profile is None:
        return _unknown(Reason.PROFILE_UNKNOWN, profile_name)
    if not profile.audience.includes(principal):
        return Explanation(reason=Reason.NOT_IN_AUDIENCE, subject=profile.name)
    chosen = _chosen(catalog, profile, class_name)
    if chosen is None:
        return _unknown(Reason.CLASS_UNKNOWN, class_name or "")
    if profile.kind is WorkloadKind.ENDPOINT:
        return Explanation(reason=Reason.ENDPOINTS_NOT_BUILT, subject=profile.name)
    key = (profile.name, chosen.name, model)
    known = {} if known is None else known
    request = known.get(key) or _request(catalog, profile, chosen, model)
    known[key] = request
    if request.is_served_by_none:
        return Explanation(
            reason=Reason.RUNTIME_NONE_MATCHES, subject=chosen.accelerator.value
        )
    return exceeds_ever(catalog, principal, chosen) or request


def _request(
    catalog: Catalog,
    profile: Profile,
    chosen: ResourceClass,
    model: ModelVerdict | None,
) -> Request:
    runtimes = catalog.runtimes_of(profile)
    limit, deadlines = catalog.limit_seconds(profile, chosen), profile.deadlines
    steps = (
        HANDOVER_SECONDS
        + deadlines.prepare_seconds
        + deadlines.start_seconds
        + deadlines.stop_seconds
    )
    selections = {
        driver: select_runtime(
            runtimes,
            kind=profile.kind,
            accelerator=chosen.accelerator,
            driver=driver,
            model=model,
        )
        for driver in DriverName
    }
    return Request(
        profile=profile,
        chosen=chosen,
        limit_seconds=limit,
        hold_seconds=math.inf if limit is None else limit + steps + SLACK_SECONDS,
        catalog_digest=catalog.digest,
        selections=selections,
        is_served_by_none=all(
            found.refusal is not None for found in selections.values()
        ),
    )


def _chosen(
    catalog: Catalog, profile: Profile, class_name: str | None
) -> ResourceClass | None:
    name = profile.classes[0] if class_name is None else class_name
    return catalog.class_named(name) if name in profile.classes else None


def _unknown(reason: Reason, name: str) -> Explanation:
    """Return that nothing is called *name*; one that looks right is told apart.

    A space at its end, a capital or a letter of another alphabet is easily overlooked.
    """
    if _SLUG.fullmatch(name) or not name:
        return Explanation(reason=reason, subject=_shown(name))
    return Explanation(
        reason=reason,
        subject=f"“{_shown(name)}”",
        detail=mark(
            "names are at most 63 small letters from a to z, digits and hyphens"
        ),
    )


def _shown(name: object) -> str:
    """Return *name* short and printable: it comes from outside and is shown."""
    text = "".join(
        character if character.isprintable() else "?" for character in str(name)
    )
    return text[:63]
