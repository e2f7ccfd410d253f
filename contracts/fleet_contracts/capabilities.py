"""What a machine says about itself: facts with their origin and time, never guesses.

Unknown is ``None``: never 0, never an empty word.  A machine's hardware is its own
word; its owner, provider and name come from the controller's record (``with_identity``).
Free memory and utilisation are observations (``usage``) and never capacity.
``placement_facts.py`` turns a picture into what placement reads.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Generic, TypeVar

from pydantic import AwareDatetime, Field

from fleet_contracts.base import Message
from fleet_contracts.workloads import DriverName


CAPABILITIES_SCHEMA: Final = "jupyterhub-fleet/capabilities/v1"

Value = TypeVar("Value")
Amount = Annotated[int, Field(ge=0)]
Percent = Annotated[int, Field(ge=0, le=100)]


class Origin(StrEnum):
    """Who says so."""

    DETECTED = "detected"
    """A probe saw it on the machine."""
    RECORD = "record"
    """The controller's record of the machine."""
    LABEL = "label"
    """Somebody wrote it into the agent's configuration."""


class ProbeStatus(StrEnum):
    """How a probe ended.  Only ``no_devices`` means zero, and for one GPU driver only."""

    OK = "ok"
    OK_WITH_WARNINGS = "ok_with_warnings"
    PARTIAL = "partial"
    NO_DEVICES = "no_devices"
    TOOL_ABSENT = "tool_absent"
    TOOL_ERROR = "tool_error"
    UNSUPPORTED_QUERY = "unsupported_query"
    UNPARSEABLE = "unparseable"
    TIMEOUT = "timeout"
    CRASH = "crash"


class DeviceKind(StrEnum):
    """What a device is computed on with; ``other`` has no way to be computed on."""

    CUDA = "cuda"
    ROCM = "rocm"
    MPS = "mps"
    XPU = "xpu"
    OTHER = "other"


class MemoryKind(StrEnum):
    """Whether a device's memory is its own or the machine's."""

    DEDICATED = "dedicated"
    UNIFIED = "unified"
    UNKNOWN = "unknown"


class Observed(Message):
    """Where a fact comes from, and when it was seen."""

    origin: Origin = Origin.DETECTED
    source: str
    """The tool, file or call that said it, such as ``nvidia-smi`` or ``cgroup v2``."""
    observed_at: AwareDatetime


class Fact(Message, Generic[Value]):
    """One value with its origin and time; ``value`` None is unknown."""

    value: Value | None = None
    observed: Observed | None = None
    """None only for a fact that nothing has looked at yet."""


class HostFacts(Message):
    """The computer and what this agent may use of it."""

    os: Fact[str] = Fact[str]()
    """``linux``, ``darwin`` or ``windows``."""
    os_version: Fact[str] = Fact[str]()
    os_build: Fact[str] = Fact[str]()
    """Which build of macOS runs; it changes with every update."""
    kernel: Fact[str] = Fact[str]()
    architecture: Fact[str] = Fact[str]()
    """The hardware's: ``arm64`` on Apple Silicon, under Rosetta too."""
    process_architecture: Fact[str] = Fact[str]()
    """What this process was built for; differs from the hardware when translated."""
    translated: Fact[bool] = Fact[bool]()
    apple_silicon: Fact[bool] = Fact[bool]()
    virtual_machine: Fact[bool] = Fact[bool]()
    container: Fact[bool] = Fact[bool]()
    cpu_name: Fact[str] = Fact[str]()
    cpu_emulated: Fact[bool] = Fact[bool]()
    cores_physical: Fact[int] = Fact[int]()
    cores_logical: Fact[int] = Fact[int]()
    cores_visible: Fact[int] = Fact[int]()
    """Logical cores in this process's affinity mask."""
    cores_allowed_milli: Fact[int] = Fact[int]()
    """The smaller of affinity and cgroup quota, in thousandths of a core."""
    memory_bytes: Fact[int] = Fact[int]()
    memory_allowed_bytes: Fact[int] = Fact[int]()
    """The smaller of RAM and the cgroup's limit."""
    disk_bytes: Fact[int] = Fact[int]()
    disk_free_bytes: Fact[int] = Fact[int]()
    """Of the file system that holds the agent's state and notebooks."""
    python: Fact[str] = Fact[str]()
    """The version of the interpreter that runs the agent."""


class MigInstance(Message):
    """A slice of a GPU; reported, and not yet something that a class can ask for."""

    name: str | None = None
    uuid: str | None = None


class AcceleratorDevice(Message):
    """One accelerator, as its own tool describes it."""

    accelerator: DeviceKind
    vendor: str
    index: Amount | None = None
    """The tool's own numbering: a label for people, never an identity."""
    uuid: str | None = None
    name: str | None = None
    memory_mib: Annotated[int, Field(gt=0)] | None = None
    """The device's own memory: never the machine's, never read from the name."""
    memory_kind: MemoryKind = MemoryKind.UNKNOWN
    compute_capability: str | None = None
    """``major.minor`` as text ("8.10" is not 8.1); CUDA only."""
    architecture: str | None = None
    driver_version: str | None = None
    healthy: bool | None = None
    execution_supported: bool | None = None
    """Whether jobs may be placed on it; what torch can do is ``torch`` alone."""
    pci_bus_id: str | None = None
    mig_enabled: bool | None = None
    mig_instances: tuple[MigInstance, ...] = ()
    observed: Observed | None = None
    sources: dict[str, Observed] = Field(default_factory=dict)
    """Fields that another tool than ``observed`` told."""


class Framework(Message):
    """An installed package of a workload's interpreter, from its metadata."""

    name: str
    version: str | None = None
    build: str | None = None
    """The flavour that the metadata cannot tell, such as ``cu128`` or ``rocm6.2``."""
    environment: str
    """The ref of the workload environment that holds it."""
    observed: Observed


class TorchFacts(Message):
    """What torch in one environment said that it can do on this machine.

    ``cuda`` and ``mps`` are the capabilities ``torch.cuda`` and ``torch.mps``: true
    only after an operation on the device succeeded.
    """

    environment: str | None = None
    """The ref of the workload environment that was asked."""
    interpreter: str | None = None
    status: ProbeStatus = ProbeStatus.OK
    reason: str = "ok"
    version: str | None = None
    cuda_built: bool | None = None
    cuda_available: bool | None = None
    mps_built: bool | None = None
    mps_available: bool | None = None
    hip_version: str | None = None
    distributed_backends: tuple[str, ...] | None = None
    cuda: bool | None = None
    mps: bool | None = None
    observed: Observed | None = None


class Backend(Message):
    """A collective-communication backend of an environment: gloo, nccl, mpi."""

    name: str
    available: bool | None = None
    environment: str
    observed: Observed


class Tool(Message):
    """A program whose presence alone proves nothing: ``usable`` was tried."""

    name: str
    usable: bool | None = None
    version: str | None = None
    reason: str = "ok"
    """Why it is not usable, or not known to be."""
    observed: Observed


class ContainerEngine(Tool):
    """Docker or podman; ``gpu_runtime`` says whether it can hand out devices."""

    gpu_runtime: bool | None = None


class AgentDriver(Message):
    """One way this agent can run workloads."""

    name: DriverName
    usable: bool | None = None
    reason: str = "ok"
    limits: bool | None = None
    """Whether a workload is kept to the cores and the memory of its class."""
    environments: tuple[str, ...] | None = None
    """The refs of all environments that it can run; None: not known before it tries."""
    observed: Observed


class NetworkFacts(Message):
    """How others may reach this machine: a claim, until the controller has tried it."""

    advertise_address: Fact[str] = Fact[str]()


class Label(Message):
    """A word of the configuration; it cannot claim hardware and decides no trust."""

    name: str
    value: str
    observed: Observed


class OwnerTerm(Message):
    """One term on which the machine's owner lends it, and whether it is met now."""

    name: str
    """``cpu``, ``memory``, ``drivers``, ``hours``, ``presence``, ``power``, ``drain``."""
    met: bool | None = True
    """None: nobody can tell, which counts as not met: the machine takes nothing new."""
    reason: str = "ok"
    """Why it is not met, as a reason's code."""
    amount: Amount | None = None
    """The most that the owner lends, in *unit*; None: the term is no amount."""
    unit: str | None = None
    """``milli_cores`` or ``bytes``."""
    until: AwareDatetime | None = None
    """When that changes by itself; None: nobody knows."""
    text: str = ""
    """The term as the owner wrote it."""
    observed: Observed


class MetalFence(Message):
    """Whether a Mac's sandbox keeps a CPU notebook from the GPU: seen, or unknown.

    ``placement_facts`` says what follows; without this nothing does.
    """

    consent: bool = False
    """The machine's owner lets CPU notebooks share, where the fence was seen to hold."""
    holds: bool | None = None
    """True: nothing reached the GPU from inside, and the same programs did without the
    fence.  False: something reached it.  None: nobody knows."""
    reason: str = "ok"
    """Why it is not known to hold, as a stable ``lower_snake`` code."""
    os_build: str | None = None
    """The build of macOS on which that was seen; it says nothing about another."""
    observed: Observed


class Identity(Message):
    """Who the machine is and who supplies it: always from the controller's record."""

    name: Fact[str] = Fact[str]()
    owner: Fact[str] = Fact[str]()
    provider: Fact[str] = Fact[str]()


class DeviceUsage(Message):
    """How busy one device was."""

    accelerator: DeviceKind
    uuid: str | None = None
    index: Amount | None = None
    memory_free_mib: Amount | None = None
    memory_used_mib: Amount | None = None
    utilisation_percent: Percent | None = None
    compute_processes: Amount | None = None
    """How many programs compute on it, whoever's; None: that was not asked or told."""
    compute_memory_mib: Amount | None = None
    """What those have taken of it; None: of some of them nobody knows."""
    foreign_mib: Amount | None = None
    """What programs outside the fleet take of it, a desktop's pictures aside; 0:
    nothing.  None: the fleet holds it, or nobody knows."""


class Usage(Message):
    """Observations of one moment: shown, and never used as capacity."""

    observed: Observed
    memory_available_bytes: Amount | None = None
    load_milli: Amount | None = None
    """The load average of the last minute, in thousandths."""
    devices: tuple[DeviceUsage, ...] = ()


class Note(Message):
    """Something that a person should know about the picture."""

    probe: str
    reason: str
    """A stable ``lower_snake`` code."""
    text: str


class ProbeReport(Message):
    """How one probe ended: a broken tool is a fact with a reason."""

    probe: str
    status: ProbeStatus
    reason: str = "ok"
    devices_complete: bool | None = None
    """False: there may be more devices.  None: the probe says nothing of devices."""
    warnings: tuple[str, ...] = ()
    excerpt: str = ""
    """At most 4 KiB of what the tool said, when it did not simply succeed."""
    observed: Observed


class WorkerCapabilities(Message):
    """The whole picture of a machine."""

    schema_: str = Field(default=CAPABILITIES_SCHEMA, alias="schema")
    detected_at: AwareDatetime | None = None
    settled: bool = False
    """False while slow probes are still out: their facts are unknown so far."""
    identity: Identity = Identity()
    host: HostFacts = HostFacts()
    accelerators: tuple[AcceleratorDevice, ...] = ()
    frameworks: tuple[Framework, ...] = ()
    torch: tuple[TorchFacts, ...] = ()
    """One entry for each environment that was asked."""
    distributed_backends: tuple[Backend, ...] = ()
    launchers: tuple[Tool, ...] = ()
    container_engines: tuple[ContainerEngine, ...] = ()
    sandboxes: tuple[Tool, ...] = ()
    drivers: tuple[AgentDriver, ...] = ()
    network: NetworkFacts = NetworkFacts()
    labels: tuple[Label, ...] = ()
    terms: tuple[OwnerTerm, ...] = ()
    """The owner's own limits; what runs already is not ended by them."""
    metal_fence: MetalFence | None = None
    """None: the machine is no Mac, or has not said anything about it."""
    usage: Usage | None = None
    probes: tuple[ProbeReport, ...] = ()
    notes: tuple[Note, ...] = ()
