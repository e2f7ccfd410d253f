"""nvidia-smi's answers are read by their form, whatever stands around them."""

from __future__ import annotations

import pytest
from probe_cases import a_query, a_run

from fleet_agent.probes.interpret import interpret
from fleet_agent.probes.nvidia.probe import FIELDS
from fleet_contracts.capabilities import ProbeStatus


QUERY = "index,uuid,pci.bus_id,driver_version,memory.total,compute_cap,mig.mode.current,name"
UUIDS = [f"GPU-00000000-0000-0000-0000-{number:012d}" for number in range(100)]


def a_row(index: int, **cells: str) -> str:
    """Return a row of ``QUERY``."""
    values = {
        "index": str(index),
        "uuid": UUIDS[index],
        "bus": f"00000000:{index:02X}:00.0",
        "driver": "550.54.15",
        "memory": "81559",
        "cap": "9.0",
        "mig": "Disabled",
        "name": "NVIDIA H100 80GB HBM3",
    } | cells
    return ", ".join(values.values())


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_change_nothing(end: str, start: str) -> None:
    """Windows, old terminals and editors leave their marks in recordings."""
    answer = interpret(a_query(f"{start}{a_row(0)}{end}{a_row(1)}{end}", QUERY))

    assert answer.status is ProbeStatus.OK
    assert [device.uuid for device in answer.devices] == UUIDS[:2]
    assert answer.devices[1].name == "NVIDIA H100 80GB HBM3"


def test_many_cards_are_many_devices() -> None:
    """Sixteen equal cards are sixteen devices, told apart by UUID."""
    rows = "\n".join(a_row(index) for index in range(16))
    answer = interpret(a_query(rows, QUERY))

    assert len({device.uuid for device in answer.devices}) == 16
    assert answer.devices_complete


@pytest.mark.parametrize(
    "token",
    [
        "[N/A]",
        "N/A",
        "n/a",
        "[Not Supported]",
        "Not Supported",
        "[Unknown Error]",
        "Unknown Error",
        "[Insufficient Permissions]",
        "[Some New Token]",
        "-",
        "",
    ],
)
def test_every_spelling_of_unknown_is_unknown(token: str) -> None:
    """An unknown cell is null, and costs neither the row nor the other cells."""
    answer = interpret(a_query(a_row(0, memory=token, cap=token), QUERY))

    [device] = answer.devices
    assert device.memory_mib is None
    assert device.compute_capability is None
    assert device.uuid == UUIDS[0]
    assert device.driver_version == "550.54.15"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("81559", 81559),
        ("81559 MiB", 81559),
        ("0", None),
        ("-5", None),
        ("80 GB", None),
        ("1e5", None),
    ],
)
def test_memory_is_a_whole_number_of_mib_or_unknown(
    cell: str, expected: int | None
) -> None:
    """Nothing is converted from a rounded unit, and 0 is no amount."""
    answer = interpret(a_query(a_row(0, memory=cell), QUERY))

    assert answer.devices[0].memory_mib == expected


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("[GPU is lost]", "gpu_lost"),
        ("[GPU requires reset]", "gpu_requires_reset"),
        ("ERR!", "device_error"),
    ],
)
def test_a_broken_card_stays_in_the_list_and_is_not_used(
    token: str, reason: str
) -> None:
    """The count stays right, and the healthy card beside it stays usable."""
    lost = ", ".join(["1", *[token] * 7])
    answer = interpret(a_query(f"{a_row(0)}\n{lost}\n", QUERY))

    assert (answer.status, answer.reason) == (ProbeStatus.PARTIAL, reason)
    assert [device.healthy for device in answer.devices] == [True, False]
    assert [device.execution_supported for device in answer.devices] == [True, False]


def test_a_comma_in_the_name_belongs_to_the_name() -> None:
    """The name is the one free text, so it takes what is too much."""
    answer = interpret(a_query(a_row(0, name="NVIDIA Foo, Bar Edition"), QUERY))

    assert answer.devices[0].name == "NVIDIA Foo, Bar Edition"


def test_a_name_says_nothing_about_memory() -> None:
    """A name may speak of another memory, and a slice carries the whole card's name."""
    answer = interpret(a_query("NVIDIA GH200 480GB, [N/A]\n", "name,memory.total"))

    assert answer.devices[0].memory_mib is None


@pytest.mark.parametrize(
    "noise",
    [
        "WARNING: infoROM is corrupted at gpu 0000:67:00.0",
        "[HAMI-core Msg(571:140025334466368:libvgpu.c:836)]: Initializing.....",
        "Warning: persistence mode is disabled, and something else, too",
    ],
)
def test_lines_around_the_rows_are_warnings(noise: str) -> None:
    """A preloaded library or a warning is no device, before, between or after."""
    text = "\n".join([noise, a_row(0), noise, a_row(1), noise])
    answer = interpret(a_query(text, QUERY))

    assert answer.status is ProbeStatus.OK_WITH_WARNINGS
    assert len(answer.devices) == 2
    assert len(answer.warnings) == 3


def test_a_row_that_was_cut_off_is_told() -> None:
    """The devices that were read stand, and the list is known to be short."""
    answer = interpret(a_query(f"{a_row(0)}\n{a_row(1)[:40]}", QUERY))

    assert (answer.status, answer.reason) == (ProbeStatus.PARTIAL, "truncated_row")
    assert len(answer.devices) == 1
    assert not answer.devices_complete


def test_a_repeated_identity_is_one_device() -> None:
    """The same card printed twice must not be handed out twice."""
    answer = interpret(a_query(f"{a_row(0)}\n{a_row(0)}\n", QUERY))

    assert len(answer.devices) == 1
    assert answer.status is ProbeStatus.PARTIAL


def test_columns_follow_the_header_that_is_printed() -> None:
    """Without a known command the header names the columns, units and all."""
    text = "name, memory.total [MiB], extra.new_field\nTesla T4, 15109 MiB, 7\n"
    answer = interpret(a_run("nvidia-smi", stdout=text))

    assert answer.devices[0].memory_mib == 15109
    assert answer.devices[0].name == "Tesla T4"


def test_a_card_with_mig_is_not_handed_out_whole() -> None:
    """With MIG on no process can use the card itself."""
    answer = interpret(a_query(a_row(0, mig="Enabled"), QUERY))

    assert answer.devices[0].mig_enabled is True
    assert answer.devices[0].execution_supported is None


def test_a_listing_shows_the_instances_below_their_card() -> None:
    """MIG instances are facts about a card, and no devices of their own."""
    text = (
        f"GPU 0: NVIDIA A100-SXM4-40GB (UUID: {UUIDS[1]})\n"
        "  MIG 3g.20gb     Device  0: (UUID: MIG-00000000-0000-0000-0000-000000000002)\n"
        "  MIG 1g.5gb      Device  1: (UUID: MIG-00000000-0000-0000-0000-000000000003)\n"
        f"GPU 1: NVIDIA A100-SXM4-40GB (UUID: {UUIDS[2]})\n"
    )
    answer = interpret(a_run("nvidia-smi", "-L", stdout=text))

    assert [len(device.mig_instances) for device in answer.devices] == [2, 0]


def test_zero_needs_the_sentence_that_says_so() -> None:
    """An exit code alone, or silence, never means that there is no GPU."""
    sentence = interpret(a_query("No devices were found\n", QUERY, exit_code=6))
    silent = interpret(a_query("", QUERY, exit_code=6))

    assert sentence.status is ProbeStatus.NO_DEVICES
    assert sentence.devices_complete
    assert silent.status is ProbeStatus.TOOL_ERROR
    assert not silent.devices_complete


def test_a_failure_is_no_zero_even_beside_the_sentence() -> None:
    """A lost card makes the tool say both; the devices are then unknown."""
    text = (
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.\n"
        "No devices were found\n"
    )
    answer = interpret(a_query(text, QUERY, exit_code=6))

    assert (answer.status, answer.reason) == (ProbeStatus.TOOL_ERROR, "gpu_lost")


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (-11, ProbeStatus.CRASH, "killed_by_sigsegv"),
        (139, ProbeStatus.CRASH, "killed_by_sigsegv"),
        (-9, ProbeStatus.CRASH, "killed_by_sigkill"),
        (3221225477, ProbeStatus.CRASH, "access_violation"),
        (126, ProbeStatus.TOOL_ERROR, "tool_not_executable"),
        (127, ProbeStatus.TOOL_ABSENT, "tool_not_found"),
        (124, ProbeStatus.TIMEOUT, "tool_timeout"),
        (9, ProbeStatus.TOOL_ERROR, "driver_not_running"),
        (250, ProbeStatus.TOOL_ERROR, "tool_failed"),
    ],
)
def test_how_it_ended_decides_before_what_it_printed(
    code: int, status: ProbeStatus, reason: str
) -> None:
    """Rows of a run that failed are not believed."""
    answer = interpret(a_query(f"{a_row(0)}\n", QUERY, exit_code=code))

    assert (answer.status, answer.reason) == (status, reason)
    assert answer.devices == ()
    assert not answer.devices_complete


@pytest.mark.parametrize(
    "message",
    [
        "bash: nvidia-smi: command not found",
        "bash: line 1: nvidia-smi: Kommando nicht gefunden.",
        "zsh: command not found: nvidia-smi",
        "sh: 1: nvidia-smi: not found",
        "'nvidia-smi' is not recognized as an internal or external command,",
        "FileNotFoundError: [Errno 2] No such file or directory: 'nvidia-smi'",
        'exec: "nvidia-smi": executable file not found in $PATH: unknown',
    ],
)
def test_shells_say_absent_in_many_ways(message: str) -> None:
    """A tool that is not installed is told apart from one that fails."""
    answer = interpret(a_run("nvidia-smi", exit_code=None, stderr=f"{message}\n"))

    assert answer.status is ProbeStatus.TOOL_ABSENT


def test_huge_output_is_read_in_bounded_time() -> None:
    """Endless lines around one row neither hang the reader nor hide the row."""
    noise = "x, y, z " * 20_000
    answer = interpret(a_query(f"{noise}\n{a_row(0)}\n{'a,' * 20_000}\n", QUERY))

    assert len(answer.devices) == 1
    assert all(len(warning) <= 301 for warning in answer.warnings)


def test_the_live_query_asks_for_the_name_last() -> None:
    """Only the last column can hold a comma without doubt."""
    assert FIELDS[-1] == "name"
