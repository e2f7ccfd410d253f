"""An Apple Silicon Mac has its one Metal device, whatever its tools say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from probe_cases import a_run

from fleet_agent.probes.interpret import interpret
from fleet_contracts.capabilities import DeviceKind, ProbeStatus


SILICON = {"os": "darwin", "apple_silicon": True, "virtual_machine": False}
INTEL = SILICON | {"apple_silicon": False}
GUEST = SILICON | {"virtual_machine": True}


def an_entry(**facts: Any) -> str:
    """Return system_profiler's JSON with one graphics entry."""
    entry = {
        "_name": "kHW_AppleM2Item",
        "spdisplays_vendor": "sppci_vendor_Apple",
        "sppci_model": "Apple M2",
        "sppci_cores": "10",
    }
    return json.dumps({"SPDisplaysDataType": [entry | facts]})


@pytest.mark.parametrize(
    "run",
    [
        {"stdout": an_entry()},
        {"stdout": ""},
        {"stdout": '{"SPDisplaysDataType": []}'},
        {"stdout": "Grafikkarte/Monitore:\n"},
        {"stdout": "", "exit_code": 1},
        {"stdout": "", "exit_code": None, "timed_out": True},
        {"stdout": "", "exit_code": 127},
        {"stdout": "", "exit_code": -11},
    ],
)
def test_the_hosts_facts_decide_that_there_is_a_device(run: dict[str, Any]) -> None:
    """A slow, empty, localised or broken tool costs the name at most."""
    answer = interpret(a_run("system_profiler", context=SILICON, **run))

    [device] = answer.devices
    assert device.accelerator is DeviceKind.MPS
    assert device.execution_supported is True
    assert device.memory_mib is None


def test_an_intel_mac_has_no_metal_device() -> None:
    """Its graphics are shown as other hardware, on which nothing runs."""
    text = json.dumps(
        {
            "SPDisplaysDataType": [
                {
                    "spdisplays_vendor": "sppci_vendor_intel",
                    "sppci_model": "Intel UHD Graphics 630",
                    "spdisplays_vram_shared": "1536 MB",
                },
                {
                    "spdisplays_vendor": "sppci_vendor_amd",
                    "sppci_model": "AMD Radeon Pro 5300M",
                    "spdisplays_vram": "4 GB",
                },
            ]
        }
    )
    answer = interpret(a_run("system_profiler", stdout=text, context=INTEL))

    assert {device.accelerator for device in answer.devices} == {DeviceKind.OTHER}
    assert {device.execution_supported for device in answer.devices} == {False}
    assert [device.memory_mib for device in answer.devices] == [None, 4096]


def test_a_guests_device_is_not_known_to_work() -> None:
    """A paravirtual GPU claims Metal; only an operation on it could tell."""
    text = an_entry(sppci_model="Apple Paravirtual device", sppci_cores=None)
    answer = interpret(a_run("system_profiler", stdout=text, context=GUEST))

    [device] = answer.devices
    assert device.execution_supported is None
    assert device.name == "Apple Paravirtual device"


def test_a_translated_text_still_names_the_gpu() -> None:
    """Only the keys are translated: the heading is the model in every language."""
    text = (
        "Grafikkarte/Monitore:\n\n    Apple M1 Pro:\n\n"
        "      Chipsatz-Modell: Apple M1 Pro\n      Anbieter: Apple (0x106b)\n"
        "      Monitore:\n        Color LCD:\n          Auflösung: 3024 x 1964\n"
    )
    answer = interpret(a_run("system_profiler", stdout=text, context=SILICON))

    assert [device.name for device in answer.devices] == ["Apple M1 Pro"]


@pytest.mark.parametrize(
    ("limit", "expected"), [("28672", 28672), ("0", None), ("default", None)]
)
def test_only_a_set_limit_is_an_amount_of_gpu_memory(
    limit: str, expected: int | None
) -> None:
    """0 means the system's default, which it does not tell."""
    run = a_run(
        "sysctl", "-n", "iogpu.wired_limit_mb", stdout=f"{limit}\n", context=SILICON
    )

    assert interpret(run).devices[0].memory_mib == expected


def test_the_machines_memory_is_not_the_gpus() -> None:
    """Unified memory is shared with everything else on the Mac."""
    run = a_run("sysctl", "-n", "hw.memsize", stdout="38654705664\n", context=SILICON)
    answer = interpret(run)

    assert answer.devices[0].memory_mib is None
    assert answer.facts["system_memory_mib"] == 36864


def test_the_kernel_tells_silicon_under_rosetta() -> None:
    """A translated program sees x86_64, and an arm64 kernel."""
    text = (
        "Darwin mac 23.1.0 Darwin Kernel Version 23.1.0: root:xnu-10002.41.9~6/"
        "RELEASE_ARM64_T6000 x86_64\n"
    )
    answer = interpret(a_run("uname", "-a", stdout=text))

    assert [device.accelerator for device in answer.devices] == [DeviceKind.MPS]
    assert answer.facts["translated_process"] is True


def test_linux_on_apple_hardware_has_no_metal() -> None:
    """Metal belongs to macOS, whatever the processor."""
    context = {"os": "linux", "apple_silicon": True}
    answer = interpret(a_run("uname", "-sm", stdout="Linux aarch64\n", context=context))

    assert answer.devices == ()
    assert answer.status is ProbeStatus.OK
