"""Values of a catalog that could never be meant are faults, with their line."""

from __future__ import annotations

import pytest

from fleet_contracts.catalog_file import CatalogError, parse_catalog
from fleet_contracts.catalog_yaml import Source


SENSE = """\
classes:
  - {name: small, cpu: CPU, memory: MEMORY, limit: LIMIT}
runtimes:
  - {name: python, accelerators: [cpu], driver_refs: {native: env}, requires: [HAS]}
profiles:
  - {name: lab, classes: [small], runtimes: [python], requirements: {cuda: CUDA}, limit: SPAN}
"""


@pytest.mark.parametrize(
    ("change", "line", "part"),
    [
        ({"CPU": "0"}, 2, "asks for no cpu"),
        ({"MEMORY": "0"}, 2, "asks for no memory"),
        ({"LIMIT": "0"}, 2, "ends what has just become ready"),
        ({"SPAN": "0"}, 6, "ends what has just become ready"),
        ({"HAS": "torch.cudda"}, 4, "'torch.cudda'"),
        ({"HAS": "gpu"}, 4, "'gpu'"),
        ({"CUDA": "twelve"}, 6, "no version of cuda"),
        ({"CUDA": '">=12"'}, 6, "no version of cuda"),
        ({"CUDA": '"99.1"'}, 6, "nobody knows which GPU driver cuda 99.1 needs"),
        ({}, 0, ""),
        ({"HAS": "container.docker.gpu"}, 0, ""),
        ({"CUDA": '"12.4.1+build"'}, 0, ""),
    ],
)
def test_values_that_could_never_be_meant_are_faults(
    change: dict[str, str], line: int, part: str
) -> None:
    """Amounts of nothing, versions that are none, and what no machine can report."""
    values = {
        "CPU": "1",
        "MEMORY": "1G",
        "LIMIT": "8h",
        "SPAN": "4h",
        "HAS": "torch.cuda",
        "CUDA": '"12.4"',
    }
    text = SENSE
    for word, value in (values | change).items():
        text = text.replace(word, value)
    if not line:
        parse_catalog([Source("catalog.yaml", text)])
        return
    with pytest.raises(CatalogError) as caught:
        parse_catalog([Source("catalog.yaml", text)])
    (fault,) = caught.value.faults
    assert fault.line == line
    assert part in fault.message
