"""Small catalogs as an admin writes them, and what is told of their faults."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fleet_contracts.catalog import Catalog
from fleet_contracts.catalog_file import CatalogError, parse_catalog
from fleet_contracts.catalog_yaml import Source


PARTS = {
    "class": "classes:\n  - {name: cpu, cpu: 1, memory: 1G}\n",
    "runtime": (
        "runtimes:\n  - {name: env, accelerators: [cpu], driver_refs: {native: env}}\n"
    ),
    "profile": "profiles:\n  - {name: lab, classes: [cpu], runtimes: [env]}\n",
}


def load(text: str) -> Catalog:
    """Return the catalog in *text*."""
    return parse_catalog([Source("catalog.yaml", dedent(text))])


def faults(text: str) -> list[str]:
    """Return what is wrong with *text*, as an admin reads it."""
    with pytest.raises(CatalogError) as caught:
        load(text)
    assert all(fault.remedy for fault in caught.value.faults)
    return [str(fault) for fault in caught.value.faults]


def with_part(**parts: str) -> str:
    """Return a small good catalog with some parts replaced or added."""
    return "".join((PARTS | parts).values())
