"""A host's facts say what may be used of it, and unknown where nothing tells."""

from __future__ import annotations

from typing import Any

import pytest
from probe_machines import LINUX, MAC, NOON

from fleet_agent.probes.host.cgroups import (
    cpu_quota_milli,
    files,
    memory_limit_bytes,
)
from fleet_agent.probes.host.facts import judge_host
from fleet_contracts.capabilities import HostFacts, Observed


OBSERVED = Observed(source="psutil", observed_at=NOON)
UNIFIED = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
LEGACY = (
    "31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


def judged(readings: dict[str, Any], **mac: str) -> HostFacts:
    """Return the facts of *readings*; names of *mac* have underscores for dots."""
    return judge_host(
        readings,
        OBSERVED,
        {name.replace("__", "."): value for name, value in mac.items()},
    )


def read_from(tree: dict[str, str]) -> dict[str, str]:
    """Return the limits of a process in a pretended file system."""
    return files(tree.get)


def test_the_tightest_limit_on_the_way_up_binds() -> None:
    """A slice above the service limits it too (cgroup v2)."""
    found = read_from(
        {
            "/proc/self/mountinfo": UNIFIED,
            "/proc/self/cgroup": "0::/user.slice/agent.service\n",
            "/sys/fs/cgroup/user.slice/agent.service/cpu.max": "400000 100000",
            "/sys/fs/cgroup/user.slice/agent.service/memory.max": "max",
            "/sys/fs/cgroup/user.slice/cpu.max": "150000 100000",
            "/sys/fs/cgroup/user.slice/memory.max": "2147483648",
        }
    )

    assert cpu_quota_milli(found) == 1500
    assert memory_limit_bytes(found) == 2 << 30


def test_the_old_hierarchies_are_read_as_well() -> None:
    """Version 1 keeps each controller in a tree of its own."""
    found = read_from(
        {
            "/proc/self/mountinfo": LEGACY,
            "/proc/self/cgroup": "5:cpu,cpuacct:/box\n4:memory:/box\n",
            "/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "600000",
            "/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000",
            "/sys/fs/cgroup/memory/box/memory.limit_in_bytes": "1073741824",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        }
    )

    assert cpu_quota_milli(found) == 6000
    assert memory_limit_bytes(found) == 1 << 30


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/a/cpu.max", "max 100000"),
        ("/a/cpu.max", ""),
        ("/a/cpu.max", "many some"),
        ("/a/cpu.cfs_quota_us", "-1"),
    ],
)
def test_no_quota_is_not_a_quota_of_nothing(path: str, text: str) -> None:
    """The word "max", -1 and what cannot be read set no limit."""
    assert cpu_quota_milli({path: text}) is None


def test_what_may_be_used_is_the_smaller_of_machine_and_limit() -> None:
    """Both are told: what the machine has, and what this agent may use."""
    host = judged(
        LINUX
        | {
            "cgroup_files": {
                "/sys/fs/cgroup/cpu.max": "250000 100000",
                "/sys/fs/cgroup/memory.max": str(1 << 30),
            }
        }
    )

    assert host.cores_logical.value == 16
    assert host.cores_allowed_milli.value == 2500
    assert host.memory_bytes.value == 64 << 30
    assert host.memory_allowed_bytes.value == 1 << 30
    observed = host.memory_allowed_bytes.observed
    assert observed is not None
    assert observed.source == "cgroup"


def test_an_affinity_mask_is_a_limit_too() -> None:
    """Taskset and batch systems give a process some of the cores."""
    host = judged(LINUX | {"cores_visible": 3})

    assert host.cores_allowed_milli.value == 3000


def test_a_limit_above_the_machine_is_none() -> None:
    """A quota of more cores than there are adds nothing."""
    quota = {"/sys/fs/cgroup/cpu.max": "6400000 100000"}
    host = judged(LINUX | {"cgroup_files": quota})

    assert host.cores_allowed_milli.value == 16000


def test_rosetta_does_not_make_a_mac_an_intel_one() -> None:
    """A translated process sees x86_64; the hardware is told by the system."""
    host = judged(
        MAC | {"machine": "x86_64"},
        hw__optional__arm64="1",
        machdep__cpu__brand_string="Apple M4",
    )

    assert host.apple_silicon.value is True
    assert host.architecture.value == "arm64"
    assert host.process_architecture.value == "x86_64"
    assert host.translated.value is True
    assert host.cpu_name.value == "Apple M4"


def test_an_intel_mac_is_one() -> None:
    """Nothing on it says arm64."""
    host = judged(
        MAC | {"machine": "x86_64"},
        machdep__cpu__brand_string="Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz",
    )

    assert host.apple_silicon.value is False
    assert host.translated.value is False
    assert host.architecture.value == "x86_64"


@pytest.mark.parametrize(
    "mac",
    [
        {"machdep__cpu__brand_string": "Apple M1 (Virtual)"},
        {"kern__hv_vmm_present": "1"},
    ],
)
def test_a_mac_guest_is_known_as_one(mac: dict[str, str]) -> None:
    """Its GPU is paravirtual, whatever it claims."""
    assert judged(MAC, **mac).virtual_machine.value is True


def test_no_sign_of_a_virtual_machine_is_no_proof() -> None:
    """A Linux host without a sign stays unknown."""
    assert judged(LINUX).virtual_machine.value is None
    assert judged(LINUX | {"virtual_sign": "QEMU"}).virtual_machine.value is True


@pytest.mark.parametrize("value", [None, 0, -1, "many", True, 3.5])
def test_an_amount_that_cannot_be_is_unknown(value: Any) -> None:
    """A host without memory or cores is one that could not be asked."""
    host = judged(
        LINUX | {"memory_bytes": value, "cores_visible": value, "cores_logical": value}
    )

    assert host.memory_allowed_bytes.value is None
    assert host.cores_allowed_milli.value is None


def test_every_fact_says_where_it_comes_from_and_when() -> None:
    """No value of a host stands without origin and time."""
    host = judged(LINUX)

    for name in HostFacts.model_fields:
        fact = getattr(host, name)
        if fact.value is not None:
            assert fact.observed.observed_at == NOON, name
            assert fact.observed.source, name
