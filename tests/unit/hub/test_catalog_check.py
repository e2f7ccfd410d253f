"""Catalogs on disk, and the command that checks them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleet_contracts.catalog_file import CatalogError
from fleet_contracts.catalog_yaml import MAX_CHARACTERS
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.catalog_check import default_catalog, load_catalog, main


GOOD = """\
classes: [{name: cpu, cpu: 1, memory: 1G}]
runtimes: [{name: env, accelerators: [cpu], driver_refs: {native: env}}]
profiles: [{name: lab, classes: [cpu], runtimes: [env]}]
"""


def test_the_default_catalog_offers_a_small_and_a_large_notebook() -> None:
    """A new fleet can start notebooks without a catalog of its own."""
    catalog = default_catalog()
    offered = [
        (profile.name, chosen.cpu_milli, chosen.memory_bytes)
        for profile in catalog.profiles
        for chosen in catalog.classes_of(profile)
    ]
    assert offered == [
        ("cpu-small", 1000, 2**30),
        ("cpu-large", 2000, 4 * 2**30),
    ]
    assert all(profile.description for profile in catalog.profiles)
    (runtime,) = catalog.runtimes
    assert runtime.driver_refs == {DriverName.NATIVE: "jupyter"}
    assert runtime.accelerators == (Accelerator.CPU,)


def test_a_good_file_is_found_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer counts what was understood, and the exit status is 0."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)
    assert main([str(file)]) == 0
    assert (
        "1 profiles, 1 classes, 1 runtimes; no fault found" in capsys.readouterr().out
    )
    assert main([str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    """Other files in it are left alone."""
    for number, line in enumerate(GOOD.splitlines()):
        (tmp_path / f"{number}.{'yml' if number else 'yaml'}").write_text(line)
    (tmp_path / "README.md").write_text("not YAML: [")
    assert load_catalog(tmp_path).profiles[0].name == "lab"


def test_faults_are_told_with_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An editor can jump to them; a script gets them as JSON."""
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD.replace("1G", "1GB"))
    assert main([str(file)]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"{file}:1: '1GB' is no amount of bytes")
    assert told.endswith("1 fault found.\n")
    assert main([str(file), "--json"]) == 1
    (fault,) = json.loads(capsys.readouterr().out)
    assert (fault["file"], fault["line"]) == (str(file), 1)
    file.write_text("a: 1\nb: 2\n")
    assert main([str(file)]) == 1
    assert "2 faults found" in capsys.readouterr().err


def test_what_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    """A missing, empty, binary or huge file is told like any other fault."""
    with pytest.raises(CatalogError, match=r"cannot be read: No such file"):
        load_catalog(tmp_path / "none.yaml")
    with pytest.raises(CatalogError, match="the folder has no YAML file"):
        load_catalog(tmp_path)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(CatalogError, match="not UTF-8"):
        load_catalog(binary)
    huge = tmp_path / "huge.yaml"
    huge.write_text("#" * (MAX_CHARACTERS + 2))
    with pytest.raises(CatalogError, match="too large"):
        load_catalog(huge)
