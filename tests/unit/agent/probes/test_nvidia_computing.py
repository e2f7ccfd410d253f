"""Who computes on which card is read without anybody's name or number."""

from __future__ import annotations

import pytest
from probe_machines import FIELDS_ROW, a_pretend_machine

from fleet_agent.probes.nvidia.computing import Computing, read_computing
from fleet_agent.probes.nvidia.probe import NvidiaProbe
from fleet_agent.probes.tools import ToolCall, ToolResult


A, B = (f"GPU-00000000-0000-0000-0000-00000000000{digit}" for digit in "12")
IDLE = FIELDS_ROW.replace("81000, 559, 97", "0, 81559, 0")


def said(text: str, **facts: object) -> ToolResult:
    """Return what the tool printed."""
    return ToolResult(
        **({"tool": "nvidia-smi", "exit_code": 0, "stdout": text} | facts)  # type: ignore[arg-type]
    )


def test_the_programs_of_each_card_are_summed() -> None:
    """Two on one card count together; a card without any is not named."""
    found = read_computing(said(f"{A}, 1024 MiB\n{B}, 300 MiB\n{A}, 76 MiB\n"))
    assert found == {
        A: Computing(processes=2, memory_mib=1100),
        B: Computing(processes=1, memory_mib=300),
    }


@pytest.mark.parametrize(
    "hidden", ["[N/A]", "[Not Supported]", "[Insufficient Permissions]"]
)
def test_an_amount_that_is_hidden_is_unknown_and_its_program_counts(
    hidden: str,
) -> None:
    """One hidden amount makes the sum unknown, whatever comes after it."""
    found = read_computing(said(f"{A}, {hidden}\n{A}, 500 MiB\n"))
    assert found == {A: Computing(processes=2, memory_mib=None)}


@pytest.mark.parametrize("nobody", ["", "\n", "No running processes found\n"])
def test_nobody_is_an_answer(nobody: str) -> None:
    """An empty list says that no card is computed on, as far as the tool sees."""
    assert read_computing(said(nobody)) == {}


@pytest.mark.parametrize(
    "result",
    [
        said("", exit_code=9),
        said('Field "used_memory" is not a valid field to query.\n', exit_code=2),
        said("Unable to determine the device handle, for GPU 0\n"),
        said("something else\n"),
        said("", timed_out=True, exit_code=None),
    ],
)
def test_what_is_no_list_says_nothing(result: ToolResult) -> None:
    """A tool that fails is no proof that nobody computes."""
    assert read_computing(result) is None


def test_an_idle_machine_is_asked_once() -> None:
    """The list is a second call, and no card gives a reason for it."""
    machine = a_pretend_machine(nvidia_smi=IDLE)
    [busy] = NvidiaProbe(ask=machine).look().usage
    assert machine.times("nvidia-smi") == 1
    assert (busy.memory_used_mib, busy.memory_free_mib) == (0, 81559)
    assert busy.compute_processes is None


def test_a_board_that_spells_unknown_as_nothing_stays_unknown() -> None:
    """Where none is said to be free either, no amount is told at all."""
    machine = a_pretend_machine(nvidia_smi=IDLE.replace("0, 81559, 0", "0, 0, 0"))
    [busy] = NvidiaProbe(ask=machine).look().usage
    assert (busy.memory_used_mib, busy.memory_free_mib) == (None, None)


def test_a_card_in_use_comes_with_who_computes_on_it() -> None:
    """Asked are the card and the amount: no pid, no program's name, no user."""
    asked: list[ToolCall] = []

    def tool(call: ToolCall) -> ToolResult:
        asked.append(call)
        is_list = any("compute-apps" in part for part in call.argv)
        text = f"{A}, 80500 MiB\n" if is_list else FIELDS_ROW
        return ToolResult(tool=call.tool, argv=call.argv, exit_code=0, stdout=text)

    [busy] = NvidiaProbe(ask=a_pretend_machine(nvidia_smi=tool)).look().usage
    assert (busy.compute_processes, busy.compute_memory_mib) == (1, 80500)
    assert asked[-1].argv[1] == "--query-compute-apps=gpu_uuid,used_memory"


def test_a_list_that_cannot_be_had_leaves_it_unknown() -> None:
    """An old tool that does not know the question is no reason to know less."""

    def tool(call: ToolCall) -> ToolResult:
        if any("compute-apps" in part for part in call.argv):
            return ToolResult(tool=call.tool, argv=call.argv, exit_code=2)
        return ToolResult(
            tool=call.tool, argv=call.argv, exit_code=0, stdout=FIELDS_ROW
        )

    [busy] = NvidiaProbe(ask=a_pretend_machine(nvidia_smi=tool)).look().usage
    assert busy.memory_used_mib == 81000
    assert busy.compute_processes is None
