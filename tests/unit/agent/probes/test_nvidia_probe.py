"""The live NVIDIA probe falls back field by field and card by card."""

from __future__ import annotations

from probe_machines import FIELDS_ROW, a_pretend_machine

from fleet_agent.probes.nvidia.probe import NvidiaProbe
from fleet_agent.probes.tools import ToolCall, ToolResult
from fleet_contracts.capabilities import ProbeStatus


HEALTHY = "00000000:01:00.0"
LOST = "00000000:02:00.0"


def test_a_field_that_the_tool_does_not_know_is_left_out() -> None:
    """An old nvidia-smi rejects the query field by field; the rest is still learnt."""

    def old_tool(call: ToolCall) -> ToolResult:
        query = call.argv[1]
        for field in ("compute_cap", "mig.mode.current"):
            if field in query:
                text = f'Field "{field}" is not a valid field to query.\n\n'
                return ToolResult(
                    tool=call.tool, argv=call.argv, exit_code=2, stdout=text
                )
        cells = FIELDS_ROW.split(", ")
        row = ", ".join([*cells[:5], *cells[7:]])
        return ToolResult(tool=call.tool, argv=call.argv, exit_code=0, stdout=row)

    machine = a_pretend_machine(nvidia_smi=old_tool)
    seen = NvidiaProbe(ask=machine).observe()

    [device] = seen.answer.devices
    assert device.compute_capability is None
    assert device.memory_mib == 81559
    assert machine.times("nvidia-smi") == 3


def test_a_mandatory_field_that_is_rejected_ends_the_asking() -> None:
    """Without a name or memory there is nothing to ask again, and no endless loop."""
    machine = a_pretend_machine(
        nvidia_smi=ToolResult(
            tool="nvidia-smi",
            exit_code=2,
            stdout='Field "memory.total" is not a valid field to query.\n',
        )
    )
    seen = NvidiaProbe(ask=machine).observe()

    assert seen.answer.status is ProbeStatus.UNSUPPORTED_QUERY
    assert not seen.answer.devices_complete
    assert machine.times("nvidia-smi") == 1


def one_lost_card(call: ToolCall) -> ToolResult:
    """Answer as a machine on which one lost card breaks every call for all."""
    if HEALTHY in call.argv:
        return ToolResult(
            tool=call.tool, argv=call.argv, exit_code=0, stdout=FIELDS_ROW
        )
    text = (
        f"Unable to determine the device handle for GPU {LOST}: GPU is lost. "
        "Reboot the system to recover this GPU\n"
    )
    return ToolResult(tool=call.tool, argv=call.argv, exit_code=15, stdout=text)


def test_one_dead_card_does_not_hide_the_others() -> None:
    """Each card is asked alone; the dead one stays in the list, unhealthy."""
    machine = a_pretend_machine(nvidia_smi=one_lost_card)
    probe = NvidiaProbe(ask=machine, pci_ids=lambda: (HEALTHY, LOST))
    answer = probe.observe().answer

    assert (answer.status, answer.reason) == (ProbeStatus.PARTIAL, "gpu_lost")
    assert [device.healthy for device in answer.devices] == [True, False]
    assert [device.execution_supported for device in answer.devices] == [True, False]


def test_cards_that_the_kernel_lists_are_no_devices_by_themselves() -> None:
    """The second witness enriches the reason and never makes a device."""
    machine = a_pretend_machine(
        nvidia_smi=ToolResult(
            tool="nvidia-smi",
            exit_code=18,
            stdout="Failed to initialize NVML: Driver/library version mismatch\n",
        )
    )
    answer = NvidiaProbe(ask=machine, pci_ids=lambda: (HEALTHY, LOST)).observe().answer

    assert answer.devices == ()
    assert answer.reason == "nvml_driver_library_mismatch"
    assert "the kernel's driver lists 2 card(s)" in answer.warnings[-1]


def test_mig_instances_are_listed_with_their_card() -> None:
    """A card with MIG on is asked for its instances."""
    uuid = "GPU-00000000-0000-0000-0000-000000000001"
    listing = (
        f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {uuid})\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-00000000-0000-0000-0000-000000000009)\n"
    )
    machine = a_pretend_machine(nvidia_smi=FIELDS_ROW.replace("Disabled", "Enabled"))
    machine.replies["nvidia-smi -L"] = listing
    [device] = NvidiaProbe(ask=machine).observe().answer.devices

    assert [instance.name for instance in device.mig_instances] == ["3g.40gb"]
    assert device.execution_supported is None


def test_what_is_busy_now_is_an_observation() -> None:
    """Used and free memory are told apart from the device's capacity."""
    seen = NvidiaProbe(ask=a_pretend_machine(nvidia_smi=FIELDS_ROW)).observe()

    [busy] = seen.usage
    assert (busy.memory_used_mib, busy.memory_free_mib) == (81000, 559)
    assert busy.utilisation_percent == 97
    assert seen.answer.devices[0].memory_mib == 81559
