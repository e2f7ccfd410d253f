"""The catalog's file format: what an admin writes, and the model that it becomes.

Amounts are texts with units here and integers in the catalog.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fleet_contracts.amounts import parse_bytes, parse_cores, parse_seconds
from fleet_contracts.base import Contract, Slug
from fleet_contracts.catalog import (
    Audience,
    Deadlines,
    OperatingSystem,
    Profile,
    Quota,
    Relation,
    Requirements,
    ResourceClass,
    Runtime,
    Shares,
    TrustPolicy,
)
from fleet_contracts.workloads import Accelerator, DriverName, WorkloadKind


_WHOLE: Final = re.compile(r"-?[0-9]+", re.ASCII)
_PLAIN: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


def _number(written: object, form: re.Pattern[str], must: str) -> str:
    """Return *written* if it has one meaning: digits, as for every other amount."""
    if not isinstance(written, str) or form.fullmatch(written) is None:
        raise PydanticCustomError(must, "is no number")
    return written


def _whole(written: object) -> str:
    return _number(written, _WHOLE, "int_parsing")


def _plain(written: object) -> str:
    return _number(written, _PLAIN, "float_parsing")


ByteAmount = Annotated[int, BeforeValidator(parse_bytes)]
CoreAmount = Annotated[int, BeforeValidator(parse_cores)]
Duration = Annotated[float, BeforeValidator(parse_seconds)]
MOST: Final = 1_000_000
"""More devices or workloads than any fleet has, and a priority above all others."""
Count = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=MOST)]
Priority = Annotated[int, BeforeValidator(_whole), Field(ge=-MOST, le=MOST)]
Weight = Annotated[
    float, BeforeValidator(_plain), Field(gt=0, le=MOST, allow_inf_nan=False)
]


def _trimmed(text: str) -> str:
    """Return *text* if nothing at its ends is there without being seen."""
    if text != text.strip():
        raise PydanticCustomError("blank_end", "has a blank at its end")
    return text


def _one_word(ref: str) -> str:
    """Return *ref* if it can name an image or an environment."""
    if any(character.isspace() for character in ref):
        raise PydanticCustomError("blank_inside", "has a blank in it")
    return ref


Text = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_trimmed)]
Texts = tuple[Text, ...]
Ref = Annotated[Text, AfterValidator(_one_word)]
"""No message about it says what it is."""


def _title(text: object) -> object:
    """Return *text* if it can be read on one line."""
    if not isinstance(text, str) or not text:
        return text
    title = text.strip()
    if all(unicodedata.category(one)[0] in "CZ" for one in title):
        raise ValueError("the title is blank")
    if len(title.splitlines()) != 1:
        raise ValueError("a title must be one line")
    return title


Title = Annotated[Text, BeforeValidator(_title)]


def _agent_driver(name: object) -> DriverName:
    """Return the driver of this name, if it is one that an agent can have."""
    for driver in (DriverName.DOCKER, DriverName.NATIVE):
        if name == driver.value:
            return driver
    raise ValueError(
        f"{str(name)[:80]!r} is no agent driver: name docker or native, and use ref "
        "for everything else"
    )


AgentDriver = Annotated[DriverName, BeforeValidator(_agent_driver)]


class ClassEntry(Contract):
    """A class, as it is written."""

    name: Slug
    title: Title | None = None
    description: str = ""
    accelerator: Accelerator = Accelerator.CPU
    devices: Count | None = None
    device_memory: ByteAmount | None = None
    compute_capability: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?$")] | None = (
        None
    )
    device_models: Texts = ()
    cpu: CoreAmount
    memory: ByteAmount
    disk: ByteAmount = 0
    limit: Duration | None = None
    idle_limit: Duration | None = None
    lease: Duration | None = None
    labels: dict[Text, Text] = Field(default_factory=dict)

    def build(self) -> ResourceClass:
        """Return the class; one with an accelerator asks for one device by default."""
        has_accelerator = self.accelerator is not Accelerator.CPU
        return ResourceClass(
            name=self.name,
            title=self.title or self.name,
            description=self.description,
            accelerator=self.accelerator,
            devices=int(has_accelerator) if self.devices is None else self.devices,
            device_memory_bytes=self.device_memory,
            compute_capability=self.compute_capability,
            device_models=self.device_models,
            cpu_milli=self.cpu,
            memory_bytes=self.memory,
            disk_bytes=self.disk,
            limit_seconds=self.limit,
            idle_limit_seconds=self.idle_limit,
            lease_seconds=self.lease,
            labels=self.labels,
        )


class RuntimeEntry(Contract):
    """A runtime, as it is written."""

    name: Slug
    title: str = ""
    kind: WorkloadKind = WorkloadKind.NOTEBOOK
    accelerators: Annotated[tuple[Accelerator, ...], Field(min_length=1)]
    requires: Texts = ()
    model_formats: Texts = ()
    ref: Ref | None = None
    driver_refs: dict[AgentDriver, Ref] = Field(default_factory=dict)
    container_ref: Ref | None = None

    def build(self) -> Runtime:
        """Return the runtime."""
        return Runtime(**dict(self))


class RequirementsEntry(Contract):
    """What a profile was made for, as it is written."""

    interpreter: Text | None = None
    frameworks: dict[Text, Text] = Field(default_factory=dict)
    cuda: Text | None = None
    os: tuple[OperatingSystem, ...] = ()
    capabilities: Texts = ()


class AudienceEntry(Contract):
    """Who may use a profile, as it is written."""

    users: Texts = ()
    groups: Texts = ()


class DeadlinesEntry(Contract):
    """How long the steps of a launch may take, as it is written."""

    prepare: Duration = Deadlines().prepare_seconds
    start: Duration = Deadlines().start_seconds
    stop: Duration = Deadlines().stop_seconds


class ProfileEntry(Contract):
    """A profile, as it is written."""

    name: Slug
    version: Text = "1"
    title: Title | None = None
    description: str = ""
    kind: WorkloadKind = WorkloadKind.NOTEBOOK
    classes: Annotated[tuple[str, ...], Field(min_length=1)]
    runtimes: Annotated[tuple[str, ...], Field(min_length=1)]
    requirements: RequirementsEntry = RequirementsEntry()
    audience: AudienceEntry | None = None
    """None: everybody."""
    deadlines: DeadlinesEntry = DeadlinesEntry()
    limit: Duration | None = None
    idle_limit: Duration | None = None
    priority: Priority = 0

    def build(self) -> Profile:
        """Return the profile."""
        return Profile(
            name=self.name,
            version=self.version,
            title=self.title or self.name,
            description=self.description,
            kind=self.kind,
            classes=self.classes,
            runtimes=self.runtimes,
            requirements=Requirements(**dict(self.requirements)),
            audience=Audience(everyone=self.audience is None)
            if self.audience is None
            else Audience(
                everyone=False, users=self.audience.users, groups=self.audience.groups
            ),
            deadlines=Deadlines(
                prepare_seconds=self.deadlines.prepare,
                start_seconds=self.deadlines.start,
                stop_seconds=self.deadlines.stop,
            ),
            limit_seconds=self.limit,
            idle_limit_seconds=self.idle_limit,
            priority=self.priority,
        )


class QuotaEntry(Contract):
    """A quota, as it is written."""

    user: Text | None = None
    group: Text | None = None
    workloads: Count | None = None
    devices: Count | None = None
    cpu: CoreAmount | None = None
    memory: ByteAmount | None = None

    def build(self) -> Quota:
        """Return the quota."""
        return Quota(
            user=self.user,
            group=self.group,
            workloads=self.workloads,
            devices=self.devices,
            cpu_milli=self.cpu,
            memory_bytes=self.memory,
        )


class SharesEntry(Contract):
    """The fair share, as it is written."""

    half_life: Annotated[Duration, Field(gt=0)] = Shares().half_life_seconds
    users: dict[Text, Weight] = Field(default_factory=dict)
    groups: dict[Text, Weight] = Field(default_factory=dict)

    def build(self) -> Shares:
        """Return the shares."""
        return Shares(
            half_life_seconds=self.half_life, users=self.users, groups=self.groups
        )


class TrustEntry(Contract):
    """The trust policy, as it is written."""

    container: Relation = TrustPolicy().container
    cluster: Relation = TrustPolicy().cluster

    def build(self) -> TrustPolicy:
        """Return the policy."""
        return TrustPolicy(container=self.container, cluster=self.cluster)
