"""Whatever is in a catalog or its file, nothing leaks and nothing breaks."""

from __future__ import annotations

from hypothesis import given, strategies as st

from fleet_contracts.catalog import (
    Catalog,
    Profile,
    ResourceClass,
    Runtime,
    public_view,
)
from fleet_contracts.catalog_file import CatalogError, parse_catalog
from fleet_contracts.catalog_yaml import Source
from fleet_contracts.workloads import Accelerator, DriverName


SLUGS = st.sampled_from(["a", "b", "c"])
REFS = st.none() | st.text("rst", min_size=3, max_size=6).map("ref-{}".format)
CLASSES = st.builds(
    ResourceClass,
    name=SLUGS,
    title=st.text(max_size=5),
    accelerator=st.sampled_from(Accelerator),
    cpu_milli=st.integers(0, 64_000),
    memory_bytes=st.integers(0, 2**40),
    limit_seconds=st.none() | st.floats(0, 10**6),
)
RUNTIMES = st.builds(
    Runtime,
    name=SLUGS,
    accelerators=st.lists(st.sampled_from(Accelerator)).map(tuple),
    ref=REFS,
    container_ref=REFS,
    driver_refs=st.dictionaries(
        st.sampled_from([DriverName.NATIVE, DriverName.DOCKER]),
        st.text("rst", min_size=3).map("ref-{}".format),
    ),
)
PROFILES = st.builds(
    Profile,
    name=SLUGS,
    title=st.text(max_size=5),
    classes=st.lists(SLUGS, min_size=1).map(tuple),
    runtimes=st.lists(SLUGS, min_size=1).map(tuple),
)
CATALOGS = st.builds(
    Catalog,
    classes=st.lists(CLASSES, max_size=3).map(tuple),
    runtimes=st.lists(RUNTIMES, max_size=3).map(tuple),
    profiles=st.lists(PROFILES, max_size=3).map(tuple),
)


def loads(text: str) -> bool:
    """Return whether *text* is a catalog, and make sure that its faults are told."""
    try:
        parse_catalog([Source("catalog.yaml", text)])
    except CatalogError as error:
        assert all(fault.line >= 1 for fault in error.faults)  # noqa: PT017 - every other exception must get through
        return False
    return True


@given(CATALOGS, st.lists(RUNTIMES, max_size=3))
def test_the_public_view_does_not_depend_on_any_ref(
    catalog: Catalog, others: list[Runtime]
) -> None:
    """With and without maps the answer is the same, byte for byte."""
    changed = catalog.model_copy(update={"runtimes": tuple(others)})
    view = str(public_view(catalog))
    assert view == str(public_view(changed))
    assert "ref-" not in view


@given(st.text(max_size=200))
def test_any_text_is_a_catalog_or_has_faults(text: str) -> None:
    """Reading raises nothing else, whatever the file says."""
    assert isinstance(loads(text), bool)


YAML_WORDS = st.sampled_from(
    [
        "classes",
        "runtimes",
        "profiles",
        "quotas",
        "shares",
        "trust",
        "name",
        "cpu",
        "memory",
        "accelerators",
        "driver_refs",
        "native",
        "docker",
        "ref",
        "cuda",
        "mps",
        "1",
        "0.5",
        "1G",
        "-1",
        "yes",
        "null",
        "3.10",
        "{}",
        "[]",
    ]
)
JSON = st.recursive(
    YAML_WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(YAML_WORDS, inner, max_size=5)
    ),
    max_leaves=30,
)


def as_yaml(value: object) -> str:
    """Return *value* as flow YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {as_yaml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_yaml(item) for item in value) + "]"
    return str(value)


@given(JSON)
def test_any_shape_of_entries_is_a_catalog_or_has_faults(value: object) -> None:
    """Known words in the wrong places are faults, never a crash."""
    assert isinstance(loads(as_yaml(value)), bool)
