"""What the admin offers: classes, runtimes, profiles, and who may use them.

The models only hold and look up; ``catalog_file.py`` reads the admin's YAML and
reports its faults.  Refs (``ref``, ``driver_refs``, ``container_ref``) are operator
facts: whatever a user can read is made from ``public_view`` and never has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Final

from pydantic import Field
from typing_extensions import override

from fleet_contracts.base import Contract, Slug
from fleet_contracts.time_limits import TimeLimits, shorter
from fleet_contracts.workloads import (
    Accelerator,
    Bytes,
    DriverName,
    MilliCores,
    Principal,
    Seconds,
    WorkloadKind,
)


Count = Annotated[int, Field(ge=0)]
UNSEEN: Final = frozenset({Accelerator.MPS, Accelerator.ROCM})
"""Devices of which nobody can see whether they compute: no idle limit ends those."""


class OperatingSystem(StrEnum):
    """The operating systems that a machine may report."""

    LINUX = "linux"
    MACOS = "macos"


class Relation(StrEnum):
    """How a principal stands to a machine, from closest to farthest."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"


class Isolation(StrEnum):
    """What keeps a workload from the machine it runs on."""

    WEAK = "weak"
    CONTAINER = "container"
    CLUSTER = "cluster"
    NONE = "none"
    """Nothing of the user's runs: the simulation driver."""


class ResourceClass(Contract):
    """What a user asks to hold."""

    name: Slug
    title: str
    description: str = ""
    accelerator: Accelerator = Accelerator.CPU
    devices: Count = 0
    """Whole devices of the accelerator; 0 for a CPU class."""
    device_memory_bytes: Bytes | None = None
    """The least memory of each device; None: any."""
    compute_capability: str | None = None
    """The least compute capability of each device, such as ``8.0``."""
    device_models: tuple[str, ...] = ()
    """Names of device models that serve; empty: any."""
    cpu_milli: MilliCores
    memory_bytes: Bytes
    disk_bytes: Bytes = 0
    limit_seconds: Seconds | None = None
    """How long a workload may run once it is ready; None: no limit."""
    idle_limit_seconds: Seconds | None = None
    """How long one may compute nothing before it is ended; None: as long as it likes."""
    lease_seconds: Seconds | None = None
    """How long it may run while its machine is cut off; None: as long as it likes."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the machine's record that must have these values."""


class Runtime(Contract):
    """What runs: an environment or image, and where it can."""

    name: Slug
    title: str = ""
    kind: WorkloadKind = WorkloadKind.NOTEBOOK
    accelerators: tuple[Accelerator, ...]
    requires: tuple[str, ...] = ()
    """Capabilities of the machine, such as ``torch.cuda``."""
    model_formats: tuple[str, ...] = ()
    """For endpoints: the validated formats that it loads."""
    ref: str | None = Field(default=None, repr=False)
    driver_refs: dict[DriverName, str] = Field(default_factory=dict, repr=False)
    container_ref: str | None = Field(default=None, repr=False)


class Requirements(Contract):
    """What a profile was made for: a compatibility aid, not a guarantee."""

    interpreter: str | None = None
    """The least Python version of the environment, such as ``3.11``."""
    frameworks: dict[str, str] = Field(default_factory=dict)
    """Least versions of frameworks, such as ``torch: 2.4``."""
    cuda: str | None = None
    """The least CUDA version that the GPU driver must support, such as ``12.4``."""
    os: tuple[OperatingSystem, ...] = ()
    """Empty: any."""
    capabilities: tuple[str, ...] = ()


class Audience(Contract):
    """Who may use a profile: anybody, or the named users and groups."""

    everyone: bool = True
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def includes(self, principal: Principal) -> bool:
        """Return whether *principal* belongs to the audience."""
        return (
            self.everyone
            or principal.name in self.users
            or not set(self.groups).isdisjoint(principal.groups)
        )


class Deadlines(Contract):
    """How long each step of a launch may take before it counts as failed."""

    prepare_seconds: Seconds = 1800
    start_seconds: Seconds = 120
    stop_seconds: Seconds = 10


class Profile(Contract):
    """What a user picks: one class per choice, never a fallback list."""

    name: Slug
    version: str = "1"
    title: str
    description: str = ""
    kind: WorkloadKind = WorkloadKind.NOTEBOOK
    classes: Annotated[tuple[Slug, ...], Field(min_length=1)]
    """The choices; the first is meant when the user names none."""
    runtimes: Annotated[tuple[Slug, ...], Field(min_length=1)]
    requirements: Requirements = Requirements()
    audience: Audience = Audience()
    deadlines: Deadlines = Deadlines()
    limit_seconds: Seconds | None = None
    """The profile's own time limit; the shorter of this and the class's counts."""
    idle_limit_seconds: Seconds | None = None
    """How long it may compute nothing; the shorter of this and the class's counts."""
    priority: int = 0


class Quota(Contract):
    """The most that one user, or each user or a group together, may hold at once."""

    user: str | None = None
    """This user; ``*``: each user for themselves."""
    group: str | None = None
    """All members of this group together; ``*``: each group for itself."""
    workloads: Count | None = None
    devices: Count | None = None
    cpu_milli: MilliCores | None = None
    memory_bytes: Bytes | None = None


class Shares(Contract):
    """The weights of the fair share, and how fast past use is forgotten."""

    half_life_seconds: Annotated[float, Field(gt=0)] = 7 * 24 * 3600
    users: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    groups: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)


class TrustPolicy(Contract):
    """The farthest relation that each isolation may serve.

    Weak isolation has no entry: it serves the machine's owner and no setting widens
    it.
    """

    container: Relation = Relation.MEMBER
    cluster: Relation = Relation.GUEST


class Catalog(Contract):
    """Everything that the admin offers; the order of the file is kept."""

    classes: tuple[ResourceClass, ...] = ()
    runtimes: tuple[Runtime, ...] = ()
    profiles: tuple[Profile, ...] = ()
    quotas: tuple[Quota, ...] = ()
    shares: Shares = Shares()
    trust: TrustPolicy = TrustPolicy()

    @override
    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Catalog:
        """Return a catalog with other parts; nothing cached comes along."""
        parts = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**(parts | dict(update or {})))

    @cached_property
    def digest(self) -> str:
        """The identity of the whole catalog, refs included."""
        return sha256(self.model_dump_json().encode()).hexdigest()

    @cached_property
    def _classes(self) -> dict[str, ResourceClass]:
        return {item.name: item for item in self.classes}

    @cached_property
    def _profiles(self) -> dict[str, Profile]:
        return {item.name: item for item in self.profiles}

    def class_named(self, name: str) -> ResourceClass | None:
        """Return the class called *name*, or None."""
        return self._classes.get(name)

    def profile_named(self, name: str) -> Profile | None:
        """Return the profile called *name*, or None."""
        return self._profiles.get(name)

    def classes_of(self, profile: Profile) -> tuple[ResourceClass, ...]:
        """Return the classes of *profile*, in the order of its choices."""
        return tuple(
            self._classes[name] for name in profile.classes if name in self._classes
        )

    def runtimes_of(self, profile: Profile) -> tuple[Runtime, ...]:
        """Return the runtimes of *profile*, in the order of the catalog."""
        return tuple(item for item in self.runtimes if item.name in profile.runtimes)

    def limit_seconds(self, profile: Profile, chosen: ResourceClass) -> float | None:
        """Return how long a workload may run; None: as long as it likes."""
        found = self.time_limits(profile, chosen).limit
        return None if found is None else found.seconds

    def idle_limit_seconds(
        self, profile: Profile, chosen: ResourceClass
    ) -> float | None:
        """Return how long one may compute nothing; None: as long as it likes."""
        found = self.time_limits(profile, chosen).idle_limit
        return None if found is None else found.seconds

    def time_limits(self, profile: Profile, chosen: ResourceClass) -> TimeLimits:
        """Return both limits, each with the entry that set it: the shorter of two."""
        is_seen = chosen.accelerator not in UNSEEN
        return TimeLimits(
            limit=shorter(chosen.limit_seconds, profile.limit_seconds),
            idle_limit=shorter(chosen.idle_limit_seconds, profile.idle_limit_seconds)
            if is_seen
            else None,
        )


def public_view(catalog: Catalog) -> dict[str, Any]:
    """Return what every user may read of *catalog*: the profiles and their classes.

    Nothing of a runtime is in it, so that the answer is the same, byte for byte,
    whichever refs stand behind it.  Audiences stay out: they name other people.
    """
    return {
        "profiles": [
            {
                "name": profile.name,
                "version": profile.version,
                "title": profile.title,
                "description": profile.description,
                "kind": profile.kind.value,
                "requirements": profile.requirements.model_dump(mode="json"),
                "classes": [
                    _public_class(catalog, profile, chosen)
                    for chosen in catalog.classes_of(profile)
                ],
            }
            for profile in catalog.profiles
        ]
    }


def _public_class(
    catalog: Catalog, profile: Profile, chosen: ResourceClass
) -> dict[str, Any]:
    view = chosen.model_dump(mode="json", exclude={"labels"})
    view["limit_seconds"] = catalog.limit_seconds(profile, chosen)
    view["idle_limit_seconds"] = catalog.idle_limit_seconds(profile, chosen)
    return view
