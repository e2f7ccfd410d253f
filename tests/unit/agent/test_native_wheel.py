"""The fleet's own wheel depends on its files alone."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from fleet_agent.drivers.native.environments.wheel import (
    CONTRACTS,
    installed_lab_package,
    pack,
)


def a_package(folder: Path) -> Path:
    """Return a package with Jupyter configuration and a front-end extension."""
    package = folder / "fleet_lab"
    config = package / "jupyter-config" / "jupyter_server_config.d"
    config.mkdir(parents=True)
    (config / "fleet_lab.json").write_text("{}")
    (package / "labextension").mkdir()
    (package / "labextension" / "package.json").write_text('{"name": "fleet-lab"}')
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_bytes(b"whatever")
    (package / "__init__.py").write_text("")
    return package


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    """Times, modes and bytecode do not matter."""
    first = a_package(tmp_path / "one")
    second = a_package(tmp_path / "two")
    os.utime(second / "__init__.py", (1, 1))
    (second / "__init__.py").chmod(0o600)
    (second / "__pycache__" / "x.pyc").write_bytes(b"something else")

    assert pack(first) == pack(second)


def test_other_files_give_another_version(tmp_path: Path) -> None:
    """No cache can mix two of them up."""
    package = a_package(tmp_path)
    before = pack(package)
    (package / "__init__.py").write_text("changed = True\n")

    assert pack(package).file_name != before.file_name


def test_configuration_and_front_end_go_where_jupyter_looks(tmp_path: Path) -> None:
    """The extension is enabled by being installed."""
    wheel = pack(a_package(tmp_path))

    names = zipfile.ZipFile(io.BytesIO(wheel.content)).namelist()
    data = wheel.file_name.removesuffix("-py3-none-any.whl") + ".data/data"

    assert f"{data}/etc/jupyter/jupyter_server_config.d/fleet_lab.json" in names
    assert f"{data}/share/jupyter/labextensions/fleet-lab/package.json" in names
    assert "fleet_lab/__init__.py" in names
    assert not any("__pycache__" in name for name in names)


def test_the_contracts_come_along(tmp_path: Path) -> None:
    """A kernel needs their words to say why it waited."""
    wheel = pack(a_package(tmp_path), CONTRACTS)

    names = zipfile.ZipFile(io.BytesIO(wheel.content)).namelist()

    assert "fleet_contracts/sentences.py" in names
    assert "fleet_lab/__init__.py" in names


def test_the_package_that_comes_with_the_agent_is_found() -> None:
    """It is found without being imported."""
    assert (installed_lab_package() / "identity.py").is_file()
