"""What an edit of the catalog changed, in the admin's own words and without a ref."""

from __future__ import annotations

import pytest

from fleet_contracts.catalog import Catalog
from fleet_contracts.catalog_diff import edits
from fleet_contracts.catalog_file import parse_catalog
from fleet_contracts.catalog_yaml import Source


BASE = """\
classes:
  - {name: small, cpu: 1, memory: 1G, limit: 8h}
  - {name: gpu, accelerator: cuda, cpu: 4, memory: 16G, device_memory: 20G}
runtimes:
  - {name: python, accelerators: [cpu], driver_refs: {native: secret-env}}
  - {name: torch, accelerators: [cuda], ref: secret-image, requires: [torch.cuda]}
profiles:
  - {name: lab, classes: [small], runtimes: [python]}
  - {name: torch, classes: [gpu], runtimes: [torch], audience: {groups: [bio]}}
quotas:
  - {user: "*", devices: 2}
"""


def catalog(old: str = "", new: str = "") -> Catalog:
    """Return the catalog with *old* replaced by *new*."""
    assert old in BASE
    return parse_catalog([Source("catalog.yaml", BASE.replace(old, new))])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("memory: 1G", "memory: 1.5G", ["~ class small: memory 1G → 1.5G"]),
        ("cpu: 1,", "cpu: 0.5,", ["~ class small: cpu 1 → 0.5"]),
        (", limit: 8h", "", ["~ class small: limit 8h → —"]),
        (
            "device_memory: 20G",
            "device_memory: 40G, device_models: [A100]",
            ["~ class gpu: device_memory 20G → 40G, device_models — → [A100]"],
        ),
        (
            "driver_refs: {native: secret-env}",
            "driver_refs: {native: other-env, docker: secret-thing}",
            ["~ runtime python: driver_refs.native changed, driver_refs.docker added"],
        ),
        ("ref: secret-image", "ref: other", ["~ runtime torch: ref changed"]),
        (
            "ref: secret-image",
            "ref: secret-image, container_ref: secret-older",
            ["~ runtime torch: container_ref added"],
        ),
        (
            "audience: {groups: [bio]}",
            "audience: {groups: [bio, chem]}, version: 2, priority: 5",
            [
                (
                    "~ profile torch: version 1 → 2, "
                    "audience.groups [bio] → [bio, chem], priority 0 → 5"
                )
            ],
        ),
        (
            'quotas:\n  - {user: "*", devices: 2}\n',
            'quotas:\n  - {user: "*", devices: 4, memory: 64G}\n',
            [
                "+ quota of user *: devices 4, memory 64G",
                "- quota of user *: devices 2",
            ],
        ),
        (
            "profiles:\n",
            "trust: {container: owner}\nshares: {half_life: 1d}\nprofiles:\n",
            ["~ shares: half_life 7d → 1d", "~ trust: container member → owner"],
        ),
        (
            ", audience: {groups: [bio]}",
            "",
            [
                (
                    "~ profile torch: audience.everyone no → yes, "
                    "audience.groups [bio] → —"
                ),
            ],
        ),
        ("", "", []),
    ],
)
def test_an_edit_is_told_in_the_catalogs_own_units(
    old: str, new: str, expected: list[str]
) -> None:
    """Each entry by its section and name, each value as it is written."""
    found = [str(edit) for edit in edits(catalog(), catalog(old, new))]
    assert found == expected
    assert not any("secret" in line or "other" in line for line in found)


def test_entries_that_came_went_or_moved_are_told_apart() -> None:
    """Only an order that selection goes by is a change of its own."""
    python = next(line for line in BASE.splitlines() if "name: python" in line)
    swapped = BASE.replace(python + "\n", "").replace(
        "profiles:", f"{python}\nprofiles:"
    )
    new = parse_catalog([Source("catalog.yaml", swapped)])
    assert [str(edit) for edit in edits(catalog(), new)] == ["~ runtime python moved"]
    more = catalog(
        "quotas:", "  - {name: x, classes: [small], runtimes: [python]}\nquotas:"
    )
    assert [str(edit) for edit in edits(catalog(), more)] == ["+ profile x"]
    assert [str(edit) for edit in edits(more, catalog())] == ["- profile x"]
