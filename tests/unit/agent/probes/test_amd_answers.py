"""The AMD tools prove presence, in any of the forms in which they answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from probe_cases import a_run
from probe_machines import a_pretend_machine

from fleet_agent.probes.amd.probe import AmdProbe
from fleet_agent.probes.interpret import interpret
from fleet_agent.probes.tools import ToolCall, ToolResult
from fleet_contracts.capabilities import ProbeStatus


CARD: dict[str, Any] = {
    "gpu": 0,
    "asic": {"market_name": "AMD Instinct MI300X", "target_graphics_version": "gfx942"},
    "vram": {"type": "HBM", "size": {"value": 196592, "unit": "MB"}},
    "driver": {"name": "amdgpu", "version": "6.12.12"},
}


@pytest.mark.parametrize("document", [[CARD], {"gpu_data": [CARD]}])
def test_amd_smi_may_wrap_its_list_or_not(document: Any) -> None:
    """Releases differ in the frame, and agree in the card."""
    text = json.dumps(document, indent=4)
    [device] = interpret(a_run("amd-smi", "static", "--json", stdout=text)).devices

    assert device.name == "AMD Instinct MI300X"
    assert device.memory_mib == 196592
    assert device.architecture == "gfx942"
    assert device.driver_version == "6.12.12"
    assert device.execution_supported is False


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ({"value": 24560, "unit": "MB"}, 24560),
        ("24560 MB", 24560),
        ({"value": 24, "unit": "GB"}, None),
        ({"value": 0, "unit": "MB"}, None),
        ("N/A", None),
        (24560, None),
        (None, None),
    ],
)
def test_a_size_without_an_exact_unit_is_unknown(
    size: Any, expected: int | None
) -> None:
    """Gigabytes are rounded, and a bare number could be anything."""
    card = CARD | {"vram": {"size": size}}
    answer = interpret(a_run("amd-smi", "static", stdout=json.dumps([card])))

    assert answer.devices[0].memory_mib == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("gfx90a", "gfx90a"),
        ("gfx90a:sramecc+:xnack-", "gfx90a"),
        ("GFX1100", "gfx1100"),
        ("gfx1201", "gfx1201"),
        ("gfx9010", None),
        ("gfx11001", None),
        ("gfx", None),
        ("N/A", None),
        (7, None),
    ],
)
def test_only_a_real_target_is_an_architecture(
    target: Any, expected: str | None
) -> None:
    """Some releases print the version in decimal, which names another target."""
    text = json.dumps({"card0": {"GFX Version": target}})
    answer = interpret(a_run("rocm-smi", "--json", stdout=text))

    assert answer.devices[0].architecture == expected


def test_a_vendors_comma_does_not_shift_the_columns() -> None:
    """rocm-smi's CSV quotes nothing, and AMD's name holds a comma."""
    text = (
        "device,Card series,Card model,Card vendor,Card SKU,VRAM Total Memory (B)\n"
        "card0,Vega 20,0x081e,Advanced Micro Devices, Inc. [AMD/ATI],D1631,17163091968\n"
        "card1,Vega 20,0x081e,Advanced Micro Devices Inc. [AMD/ATI],D1631,17163091968\n"
    )
    answer = interpret(a_run("rocm-smi", "--csv", stdout=text))

    assert [device.memory_mib for device in answer.devices] == [16368, 16368]
    assert answer.status is ProbeStatus.OK


def test_rocm_smi_without_json_is_read_card_by_card() -> None:
    """The form for people names each card in each line."""
    text = (
        "\n============ ROCm System Management Interface ============\n"
        "GPU[0]\t\t: Card series: \t\tAMD INSTINCT MI210\n"
        "GPU[0]\t\t: GFX Version: \t\tgfx90a\n"
        "GPU[1]\t\t: Card series: \t\tAMD INSTINCT MI210\n"
        "============ End of ROCm SMI Log ============\n"
    )
    answer = interpret(a_run("rocm-smi", "--showproductname", stdout=text))

    assert [device.index for device in answer.devices] == [0, 1]
    assert answer.devices[0].architecture == "gfx90a"
    assert answer.status is ProbeStatus.OK


@pytest.mark.parametrize("text", ["{}", '{"system": {"Driver version": "6.3.6"}}', "7"])
def test_json_without_cards_is_not_zero_cards(text: str) -> None:
    """Only a list that is empty says that there is none."""
    answer = interpret(a_run("rocm-smi", "--json", stdout=text))

    assert answer.status is ProbeStatus.UNPARSEABLE
    assert not answer.devices_complete


def test_an_empty_list_is_zero_for_this_driver() -> None:
    """amd-smi lists what its driver has: nothing."""
    answer = interpret(a_run("amd-smi", "list", "--json", stdout="[]"))

    assert answer.status is ProbeStatus.NO_DEVICES


def test_a_driver_version_that_cannot_be_read_costs_no_card() -> None:
    """amd-smi then fails as a whole, and is asked again without it."""

    def fails_with_driver(call: ToolCall) -> ToolResult:
        if "--driver" in call.argv:
            return ToolResult(
                tool=call.tool, argv=call.argv, exit_code=1, stderr="AmdSmiException\n"
            )
        return ToolResult(
            tool=call.tool, argv=call.argv, exit_code=0, stdout=json.dumps([CARD])
        )

    machine = a_pretend_machine(amd_smi=fails_with_driver)
    tool, answer = AmdProbe(ask=machine).observe()

    assert tool == "amd-smi"
    assert len(answer.devices) == 1
    assert machine.times("rocm-smi") == 0


def test_the_older_tool_speaks_where_the_newer_is_absent() -> None:
    """Machines with an old ROCm have rocm-smi alone."""
    machine = a_pretend_machine(rocm_smi='{"card0": {"Card Series": "Vega 20"}}')
    tool, answer = AmdProbe(ask=machine).observe()

    assert tool == "rocm-smi"
    assert answer.devices[0].name == "Vega 20"
