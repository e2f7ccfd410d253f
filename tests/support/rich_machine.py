"""A machine that has something to say in every part of its picture."""

from __future__ import annotations

from datetime import datetime

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    AgentDriver,
    Backend,
    ContainerEngine,
    DeviceKind,
    DeviceUsage,
    Fact,
    Framework,
    HostFacts,
    Label,
    MemoryKind,
    NetworkFacts,
    Note,
    Observed,
    Origin,
    ProbeReport,
    ProbeStatus,
    Tool,
    TorchFacts,
    Usage,
    WorkerCapabilities,
)
from fleet_contracts.workloads import DriverName


GIB = 1 << 30
GPU = "GPU-00000000-0000-0000-0000-000000000001"


def a_usage(at: datetime, *, free_mib: int = 559) -> Usage:
    """Return how busy the machine was at *at*."""
    return Usage(
        observed=Observed(source="psutil", observed_at=at),
        memory_available_bytes=48 * GIB,
        load_milli=1500,
        devices=(
            DeviceUsage(
                accelerator=DeviceKind.CUDA,
                uuid=GPU,
                memory_free_mib=free_mib,
                utilisation_percent=97,
            ),
        ),
    )


def a_rich_picture(at: datetime, *, text: str = "") -> WorkerCapabilities:
    """Return a picture with two GPUs; *text* is added to every word in it."""
    seen = Observed(source=f"nvidia-smi{text}", observed_at=at)
    told = Observed(source="configuration", observed_at=at, origin=Origin.LABEL)
    return WorkerCapabilities(
        detected_at=at,
        settled=True,
        host=HostFacts(
            os=Fact(value="linux", observed=seen),
            os_version=Fact(value=f"Debian 12{text}", observed=seen),
            architecture=Fact(value="x86_64", observed=seen),
            cpu_name=Fact(value=f"EPYC{text}", observed=seen),
            cores_logical=Fact(value=64, observed=seen),
            cores_allowed_milli=Fact(value=32_000, observed=seen),
            memory_bytes=Fact(value=128 * GIB, observed=seen),
            memory_allowed_bytes=Fact(value=64 * GIB, observed=seen),
        ),
        accelerators=(
            AcceleratorDevice(
                accelerator=DeviceKind.CUDA,
                vendor=f"NVIDIA{text}",
                name=f"H100{text}",
                uuid=GPU,
                memory_mib=81559,
                memory_kind=MemoryKind.DEDICATED,
                driver_version="550.54.15",
                healthy=True,
                execution_supported=True,
                observed=seen,
            ),
            AcceleratorDevice(
                accelerator=DeviceKind.ROCM,
                vendor="AMD",
                name="MI300X",
                execution_supported=False,
                observed=seen,
            ),
        ),
        frameworks=(
            Framework(
                name=f"torch{text}",
                version="2.5.1",
                environment="pytorch",
                observed=seen,
            ),
        ),
        torch=(
            TorchFacts(
                environment=f"pytorch{text}", version="2.5.1", cuda=True, observed=seen
            ),
        ),
        distributed_backends=(
            Backend(name="gloo", available=True, environment="pytorch", observed=seen),
        ),
        sandboxes=(
            Tool(name="bubblewrap", usable=True, version=f"0.8{text}", observed=seen),
        ),
        container_engines=(
            ContainerEngine(
                name="docker",
                usable=False,
                reason=f"permission_denied{text}",
                observed=seen,
            ),
        ),
        drivers=(
            AgentDriver(name=DriverName.NATIVE, usable=True, observed=seen),
            AgentDriver(
                name=DriverName.DOCKER,
                usable=False,
                reason="docker_unusable",
                observed=seen,
            ),
        ),
        network=NetworkFacts(
            advertise_address=Fact(value=f"192.0.2.1{text}", observed=seen)
        ),
        labels=(Label(name="room", value=f"b12{text}", observed=told),),
        usage=a_usage(at),
        probes=(
            ProbeReport(
                probe="amd", status=ProbeStatus.PARTIAL, reason="partial", observed=seen
            ),
        ),
        notes=(
            Note(probe="amd", reason="partial", text=f"its answer is not whole{text}"),
        ),
    )
