"""Which control groups a run gets, and what is written into them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fleet_agent.drivers.native.limits import (
    MOST_PROCESSES,
    ControlGroups,
    Limits,
    delegated,
    out_of_memory_kills,
    remove,
)
from fleet_contracts.workloads import Resources


LIMITS = Limits.of(Resources(cpu_milli=1500, memory_bytes=2 << 30))
V1 = """\
9:name=systemd:/system.slice/x.service
8:pids:/system.slice/x.service
4:memory:/system.slice/x.service
2:cpu,cpuacct:/system.slice/x.service
0::/system.slice/x.service
"""


def a_v1(root: Path, *controllers: str) -> Path:
    """Lay out a machine with cgroup v1; return what its agent's own groups are."""
    for controller in controllers:
        (root / controller / "system.slice/x.service").mkdir(parents=True)
    own = root / "own"
    own.write_text(V1)
    return own


def a_v2(root: Path, path: str, controllers: str = "cpu io memory pids") -> Path:
    """Lay out a machine with cgroup v2 whose agent is in *path*."""
    (root / "cgroup.controllers").write_text(controllers)
    here = root / path
    here.mkdir(parents=True)
    (here.parent / "cgroup.controllers").write_text(controllers)
    (here.parent / "cgroup.subtree_control").write_text("")
    own = root / "own"
    own.write_text(f"0::/{path}\n")
    return own


def test_a_class_becomes_settings_of_either_version() -> None:
    """Each file and value exactly; memory includes what would be swapped."""
    assert LIMITS.settings(1) == {
        "cpu": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"},
        "memory": {
            "memory.limit_in_bytes": "2147483648",
            "memory.memsw.limit_in_bytes": "2147483648",
        },
        "pids": {"pids.max": str(MOST_PROCESSES)},
    }
    assert LIMITS.settings(2) == {
        "cpu": {"cpu.max": "150000 100000"},
        "memory": {"memory.max": "2147483648", "memory.swap.max": "0"},
        "pids": {"pids.max": str(MOST_PROCESSES)},
    }


@pytest.mark.parametrize("version", [1, 2])
def test_nothing_asked_for_is_nothing_limited_but_processes(version: int) -> None:
    """A class of no amount has no limit of it; a fork bomb ends nobody's machine."""
    settings = Limits().settings(version)

    assert (settings["cpu"], settings["memory"]) == ({}, {})
    assert settings["pids"] == {"pids.max": str(MOST_PROCESSES)}


def test_the_least_share_of_a_core_is_one_that_the_kernel_takes() -> None:
    """Less than a thousandth of a second is refused by it."""
    assert Limits(cpu_milli=1).settings(1)["cpu"]["cpu.cfs_quota_us"] == "1000"


def test_of_version_1_the_folders_that_the_agent_may_write_are_its_own(
    tmp_path: Path,
) -> None:
    """Each controller has its own; one that is not there limits nothing."""
    own = a_v1(tmp_path, "memory", "pids")
    groups = delegated("a1", root=tmp_path, own=own)

    assert groups is not None
    assert groups.version == 1
    assert set(groups.bases) == {"memory", "pids"}
    groups.make("r1", LIMITS)
    for name in ("memory", "pids"):
        place = tmp_path / name / "system.slice/x.service/jupyterhub-fleet-a1-r1"
        assert place in groups.places("r1")
        assert place.is_dir()
    memory, pids = (
        tmp_path / f"{name}/system.slice/x.service/jupyterhub-fleet-a1-r1"
        for name in ("memory", "pids")
    )
    assert (memory / "memory.limit_in_bytes").read_text() == "2147483648"
    assert not (memory / "memory.memsw.limit_in_bytes").exists(), "no swap accounting"
    assert (pids / "pids.max").read_text() == str(MOST_PROCESSES)


def test_of_version_2_the_agents_service_is_divided(tmp_path: Path) -> None:
    """The agent is in a group of its own, and its notebooks are beside it."""
    own = a_v2(tmp_path, "system.slice/x.service/agent")
    groups = delegated("a1", root=tmp_path, own=own)
    service = tmp_path / "system.slice/x.service"

    assert groups is not None
    assert groups.version == 2
    assert (service / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    groups.make("r1", LIMITS)
    assert groups.places("r1") == (service / "jupyterhub-fleet-a1-r1",)
    assert (groups.places("r1")[0] / "cpu.max").read_text() == "150000 100000"


@pytest.mark.parametrize(
    "path", ["system.slice/x.service", "user.slice/user-1.slice/session-2.scope"]
)
def test_of_version_2_nothing_is_taken_that_was_not_given(
    tmp_path: Path, path: str
) -> None:
    """A group that the agent itself is in cannot limit others."""
    own = a_v2(tmp_path, path)

    assert delegated("a1", root=tmp_path, own=own) is None


def test_a_controller_that_was_not_delegated_limits_nothing(tmp_path: Path) -> None:
    """The others do."""
    own = a_v2(tmp_path, "system.slice/x.service/agent", controllers="cpu io")
    groups = delegated("a1", root=tmp_path, own=own)

    assert groups is not None
    assert set(groups.bases) == {"cpu"}


def test_a_system_without_control_groups_limits_nothing(tmp_path: Path) -> None:
    """Nor one whose folders are somebody else's."""
    assert delegated("a1", root=tmp_path, own=tmp_path / "absent") is None
    assert delegated("a1", root=tmp_path, own=a_v1(tmp_path)) is None


def test_a_command_is_in_all_groups_before_it_begins(tmp_path: Path) -> None:
    """It keeps its words, whatever is in them, and its process."""
    bases = {name: tmp_path / name for name in ("cpu", "memory")}
    groups = ControlGroups(version=1, bases=bases, name="x")
    for base in bases.values():
        (base / "x-r1").mkdir(parents=True)
    command = groups.entering("r1", ("/bin/sh", "-c", 'echo "$$ $1"', "sh", "a 'b' $c"))

    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    pid, words = told.strip().split(" ", 1)
    assert words == "a 'b' $c"
    for base in bases.values():
        assert (base / "x-r1/cgroup.procs").read_text().strip() == pid


def test_a_command_that_cannot_be_limited_does_not_run(tmp_path: Path) -> None:
    """Without a group there is no limit, and then there is no notebook."""
    groups = ControlGroups(version=1, bases={"cpu": tmp_path / "cpu"}, name="x")
    done = subprocess.run(
        groups.entering("r1", ("/bin/echo", "it runs")),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 126
    assert done.stdout == ""


def test_groups_that_no_run_has_any_more_are_removed(tmp_path: Path) -> None:
    """Those of this agent, and of no other."""
    groups = ControlGroups(version=1, bases={"cpu": tmp_path}, name="x-a1")
    for name in ("x-a1-kept", "x-a1-left", "x-a2-other", "y"):
        (tmp_path / name).mkdir()
    groups.sweep({"x-a1-kept"})

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("x-a1-kept", "x-a2-other", "y"),
    ]
    remove([tmp_path / "x-a1-kept", tmp_path / "x-a1-gone"])
    assert not (tmp_path / "x-a1-kept").exists()


@pytest.mark.parametrize(
    ("file", "text", "kills"),
    [
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3),
        ("memory.events", "low 0\nmax 5\noom 1\noom_kill 0\n", 0),
        ("memory.events", "strange\n", None),
    ],
)
def test_what_the_limit_has_ended_is_counted(
    tmp_path: Path, file: str, text: str, kills: int | None
) -> None:
    """By the group itself, not by the whole machine."""
    (tmp_path / file).write_text(text)

    assert out_of_memory_kills([tmp_path / "absent", tmp_path]) == kills
