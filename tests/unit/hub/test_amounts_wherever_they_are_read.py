"""An amount has one meaning wherever it is read: in a catalog, a setting, an option."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from fleet_agent.errors import SettingsError
from fleet_agent.simulated_machine import MachineShape
from fleet_agent.terms.settings import WrittenTerms, read_terms
from fleet_contracts.amounts import LARGEST
from fleet_contracts.catalog import Catalog
from fleet_contracts.catalog_file import CatalogError, parse_catalog
from fleet_contracts.catalog_yaml import Source
from fleet_hub.errors import ConfigurationError
from fleet_hub.periods import PeriodError, moment
from fleet_hub.service.written import bytes_of


MIB = 1024**2
GIB = 1024**3
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)

BYTES = {
    "512": 512,
    "1.5G": 3 * GIB // 2,
    "1Gi": GIB,
    "1GiB": GIB,
    "2g": 2 * GIB,
    "64M": 64 * MIB,
    "1G ": GIB,
    " 1G": GIB,
    "1T": 1024 * GIB,
}
NO_BYTES = (
    *("-1G", "-1", "+1G", "1TB", "1GB", "1KB", "G", "one", "1 G", "1,5G", "1_000"),
    *("1e3", "0x10", "1.G", ".5G", "NaN", "inf", "٣G", "\N{FULLWIDTH DIGIT ONE}G"),
    *("512.5", "9E", "1G\n2G", "1G;", "1G#", "9" * 40),
)
CORES = {"2": 2000, "0.5": 500, "500m": 500, "1.25": 1250}
NO_CORES = ("-1", "0.0001", "0.5m", "1G", "two", "1e3", "+1", "1c", "NaN", "1,5")
SPANS = {"90": 90, "90s": 90, "30m": 1800, "8h": 28_800, "1h30m": 5400, "2d": 172_800}
NO_SPANS = ("-5m", "5m1h", "1w", "1 h", "h", "1e3", "NaN", "+1h", "soon")


def a_catalog(**amounts: str) -> Catalog:
    """Return the catalog in which these texts stand, as YAML has them."""
    written = {
        "cpu": "1",
        "memory": "1G",
        "disk": "0",
        "device_memory": "1G",
        "limit": "8h",
        "quota_memory": "1G",
        "quota_cpu": "1",
        "prepare": "1h",
        "half_life": "1d",
    }
    of = {name: json.dumps(text) for name, text in (written | amounts).items()}
    text = f"""
classes:
  - name: gpu
    accelerator: cuda
    device_memory: {of["device_memory"]}
    cpu: {of["cpu"]}
    memory: {of["memory"]}
    disk: {of["disk"]}
    limit: {of["limit"]}
runtimes:
  - {{name: r, accelerators: [cuda], driver_refs: {{docker: x}}}}
profiles:
  - {{name: p, classes: [gpu], runtimes: [r], deadlines: {{prepare: {of["prepare"]}}}}}
quotas:
  - {{user: ada, cpu: {of["quota_cpu"]}, memory: {of["quota_memory"]}}}
shares: {{half_life: {of["half_life"]}}}
"""
    return parse_catalog([Source(name="catalog.yaml", text=text)])


Reader = Callable[[str], object]
BYTE_READERS: dict[str, Reader] = {
    "memory of a class": lambda text: a_catalog(memory=text).classes[0].memory_bytes,
    "disk of a class": lambda text: a_catalog(disk=text).classes[0].disk_bytes,
    "memory of a device": lambda text: (
        a_catalog(device_memory=text).classes[0].device_memory_bytes
    ),
    "memory of a quota": lambda text: (
        a_catalog(quota_memory=text).quotas[0].memory_bytes
    ),
    "memory that an owner lends": lambda text: (
        read_terms(WrittenTerms(max_memory=text)).memory_bytes
    ),
    "memory of a pretended machine": lambda text: (
        MachineShape.model_validate({"cores": 1, "memory": text}).memory
    ),
    "memory of a pretended GPU": lambda text: (
        MachineShape.model_validate(
            {"cores": 1, "memory": "1G", "gpus": [{"name": "A100", "memory": text}]}
        )
        .gpus[0]
        .memory
    ),
    "files that may be copied": bytes_of,
}
CORE_READERS: dict[str, Reader] = {
    "cores of a class": lambda text: a_catalog(cpu=text).classes[0].cpu_milli,
    "cores of a quota": lambda text: a_catalog(quota_cpu=text).quotas[0].cpu_milli,
    "cores that an owner lends": lambda text: (
        read_terms(WrittenTerms(max_cpu=text)).cpu_milli
    ),
}
SPAN_READERS: dict[str, Reader] = {
    "limit of a class": lambda text: a_catalog(limit=text).classes[0].limit_seconds,
    "deadline of a profile": lambda text: (
        a_catalog(prepare=text).profiles[0].deadlines.prepare_seconds
    ),
    "half-life of use": lambda text: a_catalog(half_life=text).shares.half_life_seconds,
    "period of a report": lambda text: (NOW - moment(text, NOW)).total_seconds(),
}
REFUSALS = (CatalogError, SettingsError, ConfigurationError, PeriodError, ValueError)


@pytest.mark.parametrize("place", BYTE_READERS)
@pytest.mark.parametrize(("text", "amount"), BYTES.items())
def test_an_amount_of_bytes_means_the_same_everywhere(
    place: str, text: str, amount: int
) -> None:
    """``512``, ``1.5G``, ``1Gi``, ``2g`` and a space at either end: all by 1024."""
    assert BYTE_READERS[place](text) == amount


@pytest.mark.parametrize("place", BYTE_READERS)
@pytest.mark.parametrize("text", NO_BYTES)
def test_what_is_no_amount_of_bytes_is_refused_everywhere(
    place: str, text: str
) -> None:
    """A negative one above all, and what half of its readers would take for another."""
    with pytest.raises(REFUSALS) as caught:
        BYTE_READERS[place](text)
    assert not isinstance(caught.value, UnicodeError)


@pytest.mark.parametrize("place", CORE_READERS)
@pytest.mark.parametrize(("text", "milli"), CORES.items())
def test_a_number_of_cores_means_the_same_everywhere(
    place: str, text: str, milli: int
) -> None:
    """Whole ones, parts of one, and thousandths."""
    assert CORE_READERS[place](text) == milli


@pytest.mark.parametrize("place", CORE_READERS)
@pytest.mark.parametrize("text", NO_CORES)
def test_what_is_no_number_of_cores_is_refused_everywhere(
    place: str, text: str
) -> None:
    """Nothing is rounded to what fits."""
    with pytest.raises(REFUSALS):
        CORE_READERS[place](text)


@pytest.mark.parametrize(
    ("place", "text", "seconds"),
    [
        (place, text, seconds)
        for place in SPAN_READERS
        for text, seconds in SPANS.items()
        # Beside dates a bare number could be a year.
        if not (place == "period of a report" and text.isdecimal())
    ],
)
def test_a_length_of_time_means_the_same_everywhere(
    place: str, text: str, seconds: float
) -> None:
    """A bare number is seconds."""
    assert SPAN_READERS[place](text) == seconds


@pytest.mark.parametrize("place", SPAN_READERS)
@pytest.mark.parametrize("text", NO_SPANS)
def test_what_is_no_length_of_time_is_refused_everywhere(place: str, text: str) -> None:
    """And never taken for a time to come."""
    with pytest.raises(REFUSALS):
        SPAN_READERS[place](text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("memory: 512", 512),
        ("memory: 0512", 512),
        ("memory: 1Gi", GIB),
        ("memory: 2g", 2 * GIB),
    ],
)
def test_an_amount_needs_no_quotes_in_a_catalog(written: str, meant: int) -> None:
    """YAML reads some as numbers: they mean what their texts mean."""
    text = (
        f"classes: [{{name: c, cpu: 1, {written}}}]\n"
        "runtimes: [{name: r, accelerators: [cpu], ref: x, driver_refs: {docker: x}}]\n"
        "profiles: [{name: p, classes: [c], runtimes: [r]}]\n"
    )
    (chosen,) = parse_catalog([Source(name="catalog.yaml", text=text)]).classes
    assert chosen.memory_bytes == meant


@pytest.mark.parametrize(
    "written",
    [
        *("true", "yes", "null", "[1G]", "{a: 1}", "-1", "1.5", ".inf", ".nan", "-0.0"),
        *("1e3", "1_000", "0x10", "0o17", "1:30", "2026-11-30", "''"),
    ],
)
def test_what_yaml_makes_of_a_text_is_no_other_amount(written: str) -> None:
    """Octal, hexadecimal and sexagesimal numbers, truth values and dates are refused."""
    text = (
        f"classes: [{{name: c, cpu: 1, memory: {written}}}]\n"
        "runtimes: [{name: r, accelerators: [cpu], ref: x, driver_refs: {docker: x}}]\n"
        "profiles: [{name: p, classes: [c], runtimes: [r]}]\n"
    )
    with pytest.raises(CatalogError) as caught:
        parse_catalog([Source(name="catalog.yaml", text=text)])
    assert "catalog.yaml:1" in str(caught.value.faults[0])


def test_the_largest_amount_is_one_that_can_be_kept() -> None:
    """One more would not fit into a database: it is refused and not cut."""
    assert BYTE_READERS["memory of a class"](str(LARGEST)) == LARGEST
    for text in (str(LARGEST + 1), "8E"):
        with pytest.raises(CatalogError):
            BYTE_READERS["memory of a class"](text)


def test_a_refusal_names_the_setting_and_how_to_write_one() -> None:
    """Whoever wrote it need not guess which of many it was."""
    with pytest.raises(SettingsError, match=r"max_memory: '1GB' .* write 512, 1\.5G"):
        read_terms(WrittenTerms(max_memory="1GB"))
    with pytest.raises(ConfigurationError, match=r"copy_limit: '1GB' .* write 512"):
        bytes_of("1GB")
    assert moment("2d", NOW) == NOW - timedelta(days=2)
