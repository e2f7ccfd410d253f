"""Values of a catalog that could never be meant are faults, with their line."""

from __future__ import annotations

import pytest

from fleet_contracts.catalog_file import CatalogError, parse_catalog
from fleet_contracts.catalog_yaml import Source


SENSE = """\
classes:
  - {name: small, cpu: CPU, memory: MEMORY, limit: LIMIT, idle_limit: REST}
runtimes:
  - {name: python, accelerators: [cpu], driver_refs: {native: env}, requires: [HAS]}
profiles:
  - {name: lab, classes: [small], runtimes: [python], requirements: {cuda: CUDA}, limit: SPAN, idle_limit: PAUSE}
"""


@pytest.mark.parametrize(
    ("change", "line", "part"),
    [
        ({"CPU": "0"}, 2, "asks for no cpu"),
        ({"MEMORY": "0"}, 2, "asks for no memory"),
        ({"LIMIT": "0"}, 2, "ends what has just become ready"),
        ({"SPAN": "0"}, 6, "ends what has just become ready"),
        ({"REST": "59s"}, 2, "'small' ends who only reads what was computed"),
        ({"PAUSE": "0"}, 6, "'lab' ends who only reads what was computed"),
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
        "REST": "60s",
        "PAUSE": "1h",
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


@pytest.mark.parametrize(
    ("devices", "seen"), [("cuda", True), ("mps", False), ("rocm", False)]
)
def test_an_idle_limit_that_nobody_could_keep_is_a_fault(
    devices: str, seen: bool
) -> None:
    """Better than one that never ends anything and looks as if it did."""
    text = f"""\
classes:
  - name: gpu
    accelerator: {devices}
    cpu: 1
    memory: 1G
    idle_limit: 2h
runtimes:
  - {{name: python, accelerators: [{devices}], driver_refs: {{native: env}}}}
profiles:
  - {{name: lab, classes: [gpu], runtimes: [python]}}
"""
    try:
        parse_catalog([Source("catalog.yaml", text)])
        told = []
    except CatalogError as error:
        told = [one for one in error.faults if "would end nothing" in one.message]
    assert [one.line for one in told] == ([] if seen else [6])
