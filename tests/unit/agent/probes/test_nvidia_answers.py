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


def test_equal_rows_without_identity_are_equal_cards() -> None:
    """Eight cards of one model, asked for name and memory alone, are eight."""
    text = "Tesla V100-SXM2-32GB, 32510 MiB\n" * 8
    answer = interpret(a_query(text, "name,memory.total"))

    assert len(answer.devices) == 8


@pytest.mark.parametrize(
    "name",
    [
        "GeForce GTX 1650 with Max-Q Design",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "H100L-2-24C",
        "GRID A100-10C",
        "Orin (nvgpu)",
        "Quadro RTX 6000/8000",
    ],
)
def test_real_names_are_names(name: str) -> None:
    """Whatever words a product's name is made of, it stays as it is printed."""
    answer = interpret(a_query(f"{name}\n", "name"))

    assert [device.name for device in answer.devices] == [name]


@pytest.mark.parametrize(
    "text",
    [
        "No devices were found",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "Failed to initialize NVML: Unknown Error",
        "ERROR: something is wrong",
        "Please install the driver",
    ],
)
def test_a_sentence_is_no_name(text: str) -> None:
    """Asked for one free text, an error must not become a product."""
    answer = interpret(a_query(f"{text}\n", "name", exit_code=None))

    assert answer.devices == ()


def test_a_list_of_processes_is_no_list_of_cards() -> None:
    """It names a card in each line, once for every process."""
    text = (
        "pid, process_name, gpu_uuid, used_gpu_memory [MiB]\n"
        f"1234, /usr/bin/python3, {UUIDS[1]}, 500 MiB\n"
        f"1235, /usr/bin/python3, {UUIDS[1]}, 500 MiB\n"
    )
    run = a_run("nvidia-smi", "--query-compute-apps=pid,process_name", stdout=text)

    assert interpret(run).devices == ()


OLD_TABLE = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 384.130                Driver Version: 384.130                   |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla K80           Off  | 00000000:00:1E.0 Off |                    0 |
| N/A   43C    P0    57W / 149W |      0MiB / 11439MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
"""


def test_a_table_is_read_where_it_leaves_no_doubt() -> None:
    """The form for people holds the count, the memory and the driver."""
    [device] = interpret(a_run("nvidia-smi", stdout=OLD_TABLE)).devices

    assert (device.name, device.memory_mib) == ("Tesla K80", 11439)
    assert device.driver_version == "384.130"


@pytest.mark.parametrize(
    ("old", "new"),
    [("Tesla K80", "GeForce G..."), ("P0", "ERR!"), ("11439MiB", "lots    ")],
)
def test_a_doubtful_table_is_not_read(old: str, new: str) -> None:
    """A name that was cut or a reading in error makes it unparseable, not wrong."""
    answer = interpret(a_run("nvidia-smi", stdout=OLD_TABLE.replace(old, new)))

    assert answer.status is ProbeStatus.UNPARSEABLE
    assert answer.devices == ()


XML = f"""\
<?xml version="1.0" ?>
<nvidia_smi_log>
\t<driver_version>550.54.15</driver_version>
\t<attached_gpus>1</attached_gpus>
\t<gpu id="00000000:01:00.0">
\t\t<product_name>Tesla T4</product_name>
\t\t<mig_mode>\n\t\t\t<current_mig>N/A</current_mig>\n\t\t</mig_mode>
\t\t<uuid>{UUIDS[1]}</uuid>
\t\t<fb_memory_usage>\n\t\t\t<total>15360 MiB</total>\n\t\t</fb_memory_usage>
\t</gpu>
</nvidia_smi_log>
"""


def test_the_xml_form_is_read_too() -> None:
    """The same facts under other names."""
    [device] = interpret(a_run("nvidia-smi", "-q", "-x", stdout=XML)).devices

    assert (device.name, device.memory_mib) == ("Tesla T4", 15360)
    assert (device.uuid, device.driver_version) == (UUIDS[1], "550.54.15")


def test_an_xml_that_was_cut_is_not_whole() -> None:
    """A log without its end may have had more cards."""
    cut = XML.replace("</nvidia_smi_log>", "").replace(
        "<attached_gpus>1<", "<attached_gpus>4<"
    )
    answer = interpret(a_run("nvidia-smi", "-q", "-x", stdout=cut))

    assert (answer.status, answer.reason) == (ProbeStatus.PARTIAL, "devices_missing")
    assert not answer.devices_complete
