"""Catalogs from YAML: what was written is kept, and what is left out has its default."""

from __future__ import annotations

from catalog_texts import PARTS, faults, load, with_part

from fleet_contracts.catalog import OperatingSystem, Relation
from fleet_contracts.catalog_file import parse_catalog
from fleet_contracts.catalog_yaml import Source
from fleet_contracts.workloads import Accelerator, DriverName, WorkloadKind


GOOD = """\
classes:
  - name: cpu
    cpu: 0.5
    memory: 1.5G
  - name: gpu
    title: One large GPU
    accelerator: cuda
    device_memory: 40G
    compute_capability: 8.0
    device_models: [A100, H100]
    cpu: 4
    memory: 16Gi
    disk: 10g
    limit: 8h
    labels: {zone: 3}
runtimes:
  - name: torch
    accelerators: [cpu, cuda]
    requires: [torch.cuda]
    driver_refs: {native: torch-env, docker: "registry.example/torch:1"}
    ref: default
profiles:
  - name: lab
    version: 2.10
    classes: [cpu, gpu]
    runtimes: [torch]
    requirements:
      interpreter: 3.10
      frameworks: {torch: 2.4}
      cuda: 12.4
      os: [linux]
    audience: {groups: [bio]}
    deadlines: {prepare: 1h}
    limit: 12h
    priority: 5
quotas:
  - {user: "*", workloads: 3}
  - {group: bio, devices: 4, cpu: 64, memory: 256G}
shares:
  half_life: 2d
  groups: {bio: 2}
trust:
  container: guest
"""


def test_a_good_catalog_keeps_what_was_written() -> None:
    """Amounts become integers; versions stay what they are: 2.10 is not 2.1."""
    catalog = load(GOOD)
    cpu, gpu = catalog.classes
    assert (cpu.cpu_milli, cpu.memory_bytes, cpu.devices) == (500, 3 * 2**29, 0)
    assert (cpu.title, cpu.accelerator) == ("cpu", Accelerator.CPU)
    assert (gpu.devices, gpu.device_memory_bytes) == (1, 40 * 2**30)
    assert (gpu.compute_capability, gpu.device_models) == ("8.0", ("A100", "H100"))
    assert (gpu.disk_bytes, gpu.limit_seconds) == (10 * 2**30, 28800)
    assert gpu.labels == {"zone": "3"}
    (runtime,) = catalog.runtimes
    assert runtime.driver_refs[DriverName.NATIVE] == "torch-env"
    assert runtime.kind is WorkloadKind.NOTEBOOK
    (profile,) = catalog.profiles
    assert (profile.version, profile.requirements.interpreter) == ("2.10", "3.10")
    assert profile.requirements.os == (OperatingSystem.LINUX,)
    assert profile.requirements.frameworks == {"torch": "2.4"}
    assert (profile.audience.everyone, profile.audience.groups) == (False, ("bio",))
    assert profile.deadlines.prepare_seconds == 3600
    assert profile.deadlines.start_seconds == 120
    assert catalog.limit_seconds(profile, gpu) == 28800
    assert catalog.limit_seconds(profile, cpu) == 43200
    assert catalog.quotas[1].cpu_milli == 64000
    assert catalog.shares.half_life_seconds == 172_800
    assert catalog.shares.groups == {"bio": 2.0}
    assert catalog.trust.container is Relation.GUEST
    assert catalog.trust.cluster is Relation.GUEST


def test_a_class_may_end_when_its_machine_is_cut_off() -> None:
    """Only one that asks for it, and not at every short fault of the network."""
    leased = "classes:\n  - {name: cpu, cpu: 1, memory: 1G, lease: 15m}\n"
    assert load(with_part(**{"class": leased})).classes[0].lease_seconds == 900
    assert load(with_part()).classes[0].lease_seconds is None
    for short in ("0s", "59s"):
        [told] = faults(with_part(**{"class": leased.replace("15m", short)}))
        assert "lease" in told


def test_an_old_catalog_without_maps_loads() -> None:
    """Runtimes with only a ref, or an older container_ref, keep working."""
    catalog = load(
        with_part(
            runtime="""\
runtimes:
  - {name: env, accelerators: [cpu, mps], ref: image, container_ref: older}
"""
        )
    )
    assert catalog.runtimes[0].container_ref == "older"
    assert not catalog.runtimes[0].driver_refs


def test_several_files_are_one_catalog() -> None:
    """Each file may hold any part; their order is kept."""
    catalog = parse_catalog([Source(name, text) for name, text in PARTS.items()])
    assert catalog.profiles[0].runtimes == ("env",)
