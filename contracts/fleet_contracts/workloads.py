"""What is asked for, and what a machine is told to run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import override

from fleet_contracts.base import Contract, Message, Slug


Bytes = Annotated[int, Field(ge=0)]
MilliCores = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class WorkloadKind(StrEnum):
    """What sort of program a workload is."""

    NOTEBOOK = "notebook"
    ENDPOINT = "endpoint"


class Accelerator(StrEnum):
    """What a class computes on."""

    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"
    ROCM = "rocm"


class DriverName(StrEnum):
    """The agent drivers; a cluster's back end is called kubernetes."""

    NATIVE = "native"
    DOCKER = "docker"
    SIMULATION = "simulation"
    KUBERNETES = "kubernetes"


class RefSource(StrEnum):
    """Which entry of the catalog a runtime's ref came from."""

    DRIVER_REFS = "driver_refs"
    CONTAINER_REF = "container_ref"
    REF = "ref"


class ModelVerdict(Contract):
    """What content validation said about a model, bound to the model's digest."""

    digest: str
    format: str
    valid: bool


class Principal(Contract):
    """The Hub user on whose behalf something runs, as the Hub knows them."""

    user_id: int
    name: str
    groups: tuple[str, ...] = ()
    admin: bool = False


class ServerKey(Contract):
    """One server of one user, by the Hub's own ids: a rename changes neither."""

    user_id: int
    server_id: int

    @override
    def __str__(self) -> str:
        """Return the form used in URLs and as a store key, such as ``3-17``."""
        return f"{self.user_id}-{self.server_id}"


class Choice(Contract):
    """What a user chose: the only user options that exist."""

    profile: Slug
    class_name: Slug | None = Field(default=None, alias="class")
    """None: the profile's first class."""
    files: Literal["fresh", "copy"] | None = None
    """What to do where the files' machine can never run the choice: ``fresh`` begins
    with an empty folder elsewhere, ``copy`` with a copy of them.  The files stay where
    they are.  It changes nothing anywhere else."""


class Resources(Contract):
    """What an allocation holds of a machine."""

    cpu_milli: MilliCores = 0
    memory_bytes: Bytes = 0
    disk_bytes: Bytes = 0
    devices: tuple[str, ...] = ()
    """UUIDs of whole GPUs."""
    metal: bool = False
    """The Mac's GPU, exclusively; see ``devices.py``."""


class RuntimeSpec(Message):
    """The selected runtime, with the ref of the machine's own driver and no other."""

    name: str
    driver: DriverName
    ref: str = Field(repr=False)
    accelerator: Accelerator
    requires: tuple[str, ...] = ()
    catalog_digest: str
    kind: WorkloadKind = WorkloadKind.NOTEBOOK
    source: RefSource = RefSource.DRIVER_REFS
    """Lets the agent run the selection again on the entry that it is handed."""
    model_formats: tuple[str, ...] = ()


class CopyOrder(Message):
    """Begin with the files of another folder, which the controller hands over."""

    limit_bytes: Bytes
    """The most that may be copied."""


class WorkloadSpec(Message):
    """All that an agent needs to run one allocation.

    ``environment`` holds secrets: it is never logged, never in a timeline, and
    dropped from the controller's store once the workload is ready or over.
    """

    kind: WorkloadKind = WorkloadKind.NOTEBOOK
    owner: str
    """The Hub user's name: the only identity a native server may accept."""
    owner_id: int
    server_name: str = ""
    notebook: str
    """The name of the notebook folder on the machine: it outlives the allocation."""
    copy_order: CopyOrder | None = None
    """None: the folder begins empty, or is there already."""
    profile: str
    class_name: str
    runtime: RuntimeSpec
    resources: Resources
    environment: dict[str, str] = Field(default_factory=dict, repr=False)
    arguments: tuple[str, ...] = ()
    prepare_seconds: Seconds = 1800
    start_seconds: Seconds = 120
    stop_seconds: Seconds = 10
    """How long the server may take to end by itself before it is killed."""
    limit_seconds: Seconds | None = None
    """How long it may run once ready; None: no limit."""
    lease_seconds: Seconds | None = None
    """How long it may run while its machine is cut off; None: as long as it likes."""
