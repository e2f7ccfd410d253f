"""No bytes whatsoever make a probe raise, hang or invent a device."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from hypothesis import HealthCheck, given, settings, strategies as st
from probe_cases import ProbeCase, all_cases

from fleet_agent.probes.documents import answer_document
from fleet_agent.probes.host.facts import judge_host
from fleet_agent.probes.interpret import READERS, interpret
from fleet_agent.probes.tools import ToolFault, ToolResult
from fleet_contracts.capabilities import Observed, ProbeStatus, WorkerCapabilities


CASES = all_cases()
WITHOUT_DEVICES = frozenset(
    {
        ProbeStatus.NO_DEVICES,
        ProbeStatus.TOOL_ABSENT,
        ProbeStatus.TOOL_ERROR,
        ProbeStatus.UNSUPPORTED_QUERY,
        ProbeStatus.UNPARSEABLE,
        ProbeStatus.TIMEOUT,
        ProbeStatus.CRASH,
    }
)
QUERY = (
    "nvidia-smi",
    "--query-gpu=index,uuid,pci.bus_id,driver_version,memory.total,compute_cap,name",
    "--format=csv,noheader,nounits",
)
LIMIT_SECONDS = 5.0

any_bytes = st.binary(max_size=2000).map(lambda raw: raw.decode("utf-8", "replace"))
any_text = st.text(max_size=2000)
# Pieces of real outputs in any order: nearer to what a broken tool prints.
fragments = st.lists(
    st.sampled_from(
        sorted({line for case in CASES for line in case.result.stdout.splitlines()})
    ),
    max_size=12,
).map("\n".join)
exit_codes = st.none() | st.sampled_from([0, 1, 2, 6, 9, 14, 15, 127, 139, 255, -11])
exit_codes |= st.integers(-(2**31), 2**32)
runs = st.builds(
    ToolResult,
    tool=st.sampled_from(sorted(READERS)),
    argv=st.just(()) | st.just(QUERY) | st.lists(st.text(max_size=30)).map(tuple),
    exit_code=exit_codes,
    stdout=any_bytes | any_text | fragments,
    stderr=any_bytes | fragments,
    timed_out=st.booleans(),
    fault=st.none() | st.sampled_from(ToolFault),
    env=st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=3),
    context=st.dictionaries(
        st.sampled_from(
            ["os", "os_version", "cpu_brand", "columns", "memory_limit_bytes"]
        ),
        st.none()
        | st.integers()
        | st.text(max_size=10)
        | st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
        max_size=4,
    ),
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(run=runs)
def test_any_run_of_any_tool_leads_to_a_conclusion(run: ToolResult) -> None:
    """Whatever a tool prints and however it ends, the answer is sound JSON in time."""
    started = time.monotonic()
    answer = interpret(run)

    assert time.monotonic() - started < LIMIT_SECONDS
    json.dumps(answer_document(answer))
    if answer.status in WITHOUT_DEVICES:
        # Only a Mac's own GPU is known without its tool, and no Mac is drawn here
        # but by a tool's own words.
        assert all(device.vendor == "apple" for device in answer.devices)
    if answer.status is ProbeStatus.NO_DEVICES:
        assert answer.devices_complete


@settings(max_examples=300, deadline=None)
@given(noise=any_bytes | any_text, exit_code=exit_codes)
def test_noise_is_never_a_device(noise: str, exit_code: int | None) -> None:
    """Bytes that hold no row yield no NVIDIA device and no usable one anywhere."""
    rows = [line for line in noise.splitlines() if line.count(",") == 6]
    answer = interpret(
        ToolResult(tool="nvidia-smi", argv=QUERY, exit_code=exit_code, stdout=noise)
    )

    if not rows:
        assert answer.devices == ()
        assert answer.status is not ProbeStatus.OK


@settings(max_examples=200, deadline=None)
@given(
    case=st.sampled_from([case for case in CASES if case.result.tool == "nvidia-smi"]),
    end=st.floats(0, 1),
)
def test_a_recording_that_was_cut_names_no_other_device(
    case: ProbeCase, end: float
) -> None:
    """Cut anywhere, an output never yields a device that the whole one lacks."""
    whole = interpret(case.result).devices
    text = case.result.stdout[: int(len(case.result.stdout) * end)]
    found = interpret(replace(case.result, stdout=text)).devices

    assert len(found) <= len(whole)
    known = {device.uuid for device in whole}
    # A UUID that was itself cut is still the beginning of a known one.
    for device in found:
        assert device.uuid is None or any(
            uuid is not None and uuid.startswith(device.uuid) for uuid in known
        )


@settings(max_examples=200, deadline=None)
@given(
    case=st.sampled_from(CASES),
    before=st.sampled_from(["", "\ufeff", "\n\n", "some, foreign, line\n"]),
    after=st.sampled_from(["", "\n", "\r\n\r\n", "\nanother foreign line"]),
)
def test_noise_around_a_recording_costs_no_device(
    case: ProbeCase, before: str, after: str
) -> None:
    """What surrounds an output may add warnings, and never a device."""
    whole = interpret(case.result).devices
    noisy = replace(case.result, stdout=f"{before}{case.result.stdout}{after}")

    assert len(interpret(noisy).devices) <= len(whole)


readings = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=30), inner, max_size=3)
    ),
    max_leaves=8,
)
OBSERVED = Observed(source="a test", observed_at="2026-01-01T00:00:00Z")  # type: ignore[arg-type]


@settings(max_examples=200, deadline=None)
@given(
    said=st.dictionaries(
        st.sampled_from(
            [
                *("platform", "machine", "cpuinfo", "cgroup_files", "memory_bytes"),
                *("cores_visible", "cores_logical", "disk", "os_release"),
            ]
        ),
        readings,
    ),
    platform=st.sampled_from(["linux", "darwin", "win32", "plan9"]),
)
def test_any_reading_of_a_host_is_judged(
    said: dict[str, object], platform: str
) -> None:
    """A host that says nonsense is unknown in that, and nowhere 0."""
    host = judge_host(said | {"platform": platform}, OBSERVED, {})

    assert host.cores_allowed_milli.value != 0
    assert host.memory_allowed_bytes.value != 0
    WorkerCapabilities(host=host).model_dump_json()
