"""Judges the readings of a computer: what it is, and what may be used of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleet_agent.probes.host.cgroups import cpu_quota_milli, memory_limit_bytes
from fleet_contracts.capabilities import Fact, HostFacts, Observed


_SYSTEMS: Final = {"linux": "linux", "darwin": "darwin", "win32": "windows"}
_ARCHITECTURES: Final = {
    "aarch64": "arm64",
    "arm64": "arm64",
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "x64": "x86_64",
}
_HYPERVISORS: Final = re.compile(
    r"qemu|kvm|vmware|virtualbox|innotek|xen|parallels|bochs|virtual machine|bhyve"
    r"|amazon ec2|google compute|openstack|firecracker|hyper-v",
    re.IGNORECASE,
)
_EMULATED: Final = re.compile(r"^virtualapple|^qemu", re.IGNORECASE)


def architecture(machine: object) -> str | None:
    """Return the one spelling of an architecture."""
    if not isinstance(machine, str) or not machine:
        return None
    return _ARCHITECTURES.get(machine.lower(), machine.lower())


def is_emulated(cpu_name: str) -> bool:
    """Whether a processor's name is one that an emulator makes up."""
    return _EMULATED.search(cpu_name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """Makes facts that say where they come from."""

    observed: Observed

    def fact(self, value: Any, source: str | None = None) -> Fact[Any]:
        observed = self.observed
        if source is not None:
            observed = observed.model_copy(update={"source": source})
        return Fact(value=value, observed=observed)


def judge_host(
    readings: Mapping[str, Any],
    observed: Observed,
    mac: Mapping[str, str] | None = None,
) -> HostFacts:
    """Return the host's facts; *mac* holds the answers of ``sysctl`` on macOS."""
    sources = _Sources(observed=observed)
    system = _SYSTEMS.get(str(readings.get("platform")))
    facts: dict[str, Fact[Any]] = {
        "os": sources.fact(system, "sys.platform"),
        "kernel": sources.fact(_text(readings.get("release")), "uname"),
        "python": sources.fact(_text(readings.get("python")), "interpreter"),
    }
    facts |= _processor(readings, sources)
    facts |= _memory(readings, sources)
    if system == "darwin":
        facts |= _mac(readings, mac or {}, sources)
    elif system == "linux":
        facts |= _linux(readings, sources)
    return HostFacts.model_validate(facts)


def _processor(readings: Mapping[str, Any], sources: _Sources) -> dict[str, Fact[Any]]:
    own = architecture(readings.get("machine"))
    logical = _count(readings.get("cores_logical"))
    visible = _count(readings.get("cores_visible")) or logical
    quota = cpu_quota_milli(_files(readings))
    amounts = [amount for amount in (visible and visible * 1000, quota) if amount]
    name = _cpu_name(readings.get("cpuinfo"))
    return {
        "architecture": sources.fact(own, "uname"),
        "process_architecture": sources.fact(own, "uname"),
        "cpu_name": sources.fact(name, "/proc/cpuinfo"),
        "cpu_emulated": sources.fact(
            is_emulated(name) if name else None, "/proc/cpuinfo"
        ),
        "cores_physical": sources.fact(_count(readings.get("cores_physical"))),
        "cores_logical": sources.fact(logical),
        "cores_visible": sources.fact(visible, "affinity"),
        "cores_allowed_milli": sources.fact(
            min(amounts, default=None), "cgroup" if quota else "affinity"
        ),
    }


def _memory(readings: Mapping[str, Any], sources: _Sources) -> dict[str, Fact[Any]]:
    total = _count(readings.get("memory_bytes"))
    limit = memory_limit_bytes(_files(readings))
    known = [amount for amount in (total, limit) if amount]
    disk = readings.get("disk")
    disk = disk if isinstance(disk, Mapping) else {}
    binding = limit is not None and limit == min(known)
    return {
        "memory_bytes": sources.fact(total),
        "memory_allowed_bytes": sources.fact(
            min(known, default=None), "cgroup" if binding else None
        ),
        "disk_bytes": sources.fact(_count(disk.get("total")), "statvfs"),
        "disk_free_bytes": sources.fact(_amount(disk.get("free")), "statvfs"),
    }


def _linux(readings: Mapping[str, Any], sources: _Sources) -> dict[str, Fact[Any]]:
    release = str(readings.get("os_release") or "")
    pretty = re.search(r"^PRETTY_NAME=\"?([^\"\n]{1,120})", release, re.MULTILINE)
    signs = f"{readings.get('virtual_sign')} {readings.get('product_sign')}"
    flags = re.search(
        r"^flags\s*:.*\bhypervisor\b", str(readings.get("cpuinfo")), re.MULTILINE
    )
    virtual = bool(_HYPERVISORS.search(signs) or flags)
    contained = bool(readings.get("container_signs"))
    return {
        "os_version": sources.fact(pretty[1] if pretty else None, "/etc/os-release"),
        # No sign is no proof: a machine without one stays unknown.
        "virtual_machine": sources.fact(virtual or None, "dmi"),
        "container": sources.fact(contained or None, "container files"),
        "apple_silicon": sources.fact(value=False, source="sys.platform"),
        "translated": sources.fact(None),
    }


def _mac(
    readings: Mapping[str, Any], mac: Mapping[str, str], sources: _Sources
) -> dict[str, Fact[Any]]:
    own = architecture(readings.get("machine"))
    arm = own == "arm64" or mac.get("hw.optional.arm64") == "1"
    arm = arm or "ARM64" in str(readings.get("kernel_version"))
    brand = _text(mac.get("machdep.cpu.brand_string"))
    virtual = mac.get("kern.hv_vmm_present") == "1" or "(Virtual)" in (brand or "")
    told = "kern.hv_vmm_present" in mac or brand is not None
    return {
        "os_version": sources.fact(_text(readings.get("mac_version")), "sw_vers"),
        "os_build": sources.fact(_text(mac.get("kern.osversion")), "sysctl"),
        "architecture": sources.fact("arm64" if arm else own, "sysctl"),
        "translated": sources.fact(arm and own != "arm64", "sysctl"),
        "apple_silicon": sources.fact(arm, "sysctl"),
        "virtual_machine": sources.fact(virtual if told else None, "sysctl"),
        "cpu_name": sources.fact(brand, "sysctl"),
        "cpu_emulated": sources.fact(value=False, source="sysctl"),
    }


def _cpu_name(cpuinfo: object) -> str | None:
    match = re.search(r"^model name\s*:\s*(.{1,200})$", str(cpuinfo), re.MULTILINE)
    return match[1].strip() if match else None


def _files(readings: Mapping[str, Any]) -> dict[str, str]:
    found = readings.get("cgroup_files")
    if not isinstance(found, Mapping):
        return {}
    return {str(path): str(text) for path, text in found.items()}


def _text(value: object) -> str | None:
    return value.strip()[:200] or None if isinstance(value, str) else None


def _amount(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and value >= 0 else None  # type: ignore[operator,return-value]


def _count(value: object) -> int | None:
    """Return an amount above zero: a computer without cores or memory is unknown."""
    return _amount(value) or None
