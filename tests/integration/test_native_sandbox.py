"""Code in a notebook cannot leave its sandbox: each way out is tried for real.

The attempts run in a kernel of a real notebook server, once under an agent that is
root and once under an agent without any rights.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import pytest_asyncio
from fake_hub import FakeHub
from native_machine import TOKEN, a_notebook
from notebook_client import Kernel, NotebookServer
from other_agent import NOBODY, OtherAgent

from fleet_agent.drivers.common.accounts import UidRange
from fleet_agent.drivers.native.inside.landlock import can_scope


pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="module"),
]

ATTEMPTS = (
    Path(sys.modules["notebook_client"].__file__ or "")
    .with_name("sandbox_attempts.py")
    .read_text()
)
SECRET = "a-secret-of-the-machine"


@dataclass(frozen=True)
class Tried:
    """What happened to the attempts, and what the machine had to lose."""

    result: dict[str, Any]
    host: Host
    uid: int


@dataclass(frozen=True)
class Host:
    """Things outside the sandbox, open to everybody so that only it can hide them."""

    secrets: tuple[str, ...]
    sockets: tuple[str, ...]
    abstract: str
    pid: int


@contextmanager
def a_host(base: Path, state: Path) -> Iterator[Host]:
    """Plant secrets, sockets and a process that holds a secret."""
    secrets = [
        base / "home" / "anna" / "diary.txt",
        base / "hub" / "jupyterhub.sqlite",
        base / "hub" / "cookie_secret",
        state / "token",
        state / "ledger.sqlite",
        state / "notebooks" / "bert-default" / "private.ipynb",
    ]
    for path in secrets:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
        path.chmod(0o644)
    abstract = f"fleet-test-{os.getpid()}-{base.name}"
    with (
        socket.socket(socket.AF_UNIX) as by_path,
        socket.socket(socket.AF_UNIX) as by_name,
        subprocess.Popen(
            [sys.executable, "-c", "input()"],
            stdin=subprocess.PIPE,
            env={"SECRET": SECRET},
        ) as process,
    ):
        by_path.bind(str(base / "service.sock"))
        by_name.bind(f"\0{abstract}")
        for server in (by_path, by_name):
            server.listen()
        (base / "service.sock").chmod(0o777)
        yield Host(
            secrets=tuple(map(str, secrets)),
            sockets=(str(base / "service.sock"),),
            abstract=abstract,
            pid=process.pid,
        )
        process.kill()


@pytest_asyncio.fixture(
    loop_scope="module", scope="module", params=["agent is root", "agent has no rights"]
)
async def tried(request: pytest.FixtureRequest) -> AsyncIterator[Tried]:
    """The attempts, made once for each kind of agent."""
    unprivileged = request.param == "agent has no rights"
    if not unprivileged and os.geteuid() != 0:
        pytest.skip("the tests do not run as root")
    # Not pytest's own folder: every new session of pytest closes that to other users.
    with TemporaryDirectory(prefix="fleet-machine-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101 - a name, not a path
        state = Path(folder) / "agent"
        state.mkdir(mode=0o700)
        with a_host(Path(folder), state) as host:
            result = await try_everything(state, host, unprivileged=unprivileged)
            uid = NOBODY if os.geteuid() == 0 else os.geteuid()
            yield Tried(
                result=result,
                host=host,
                uid=uid if unprivileged else UidRange().first,
            )


async def try_everything(
    state: Path, host: Host, *, unprivileged: bool
) -> dict[str, Any]:
    """Return what came of the attempts, in a kernel under an agent in *state*."""
    facts = {
        "read": [*host.secrets, "/etc/shadow", "/etc/ssl/private"],
        "list": ["/run", "/sys", "/var/lib", str(state)],
        "connect": [*host.sockets, "/run/docker.sock"],
        "abstract": host.abstract,
        "pids": [host.pid, os.getpid()],
    }
    future = "from __future__ import annotations"
    code = ATTEMPTS.replace(future, f"FACTS = {facts!r}", 1)
    async with FakeHub() as hub, OtherAgent(state, unprivileged=unprivileged) as agent:
        handle = await agent.start(a_notebook(hub))
        try:
            async with Kernel(NotebookServer(handle.url or "", TOKEN)) as kernel:
                result: dict[str, Any] = json.loads(await kernel.run(code))
                return result
        finally:
            await agent.stop(handle)


async def test_the_attempts_would_succeed_outside(tried: Tried) -> None:
    """Only the sandbox can be what stopped them."""
    assert {Path(path).read_text() for path in tried.host.secrets} == {SECRET}  # noqa: ASYNC240 - short
    for address in (*tried.host.sockets, f"\0{tried.host.abstract}"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)


async def test_other_peoples_files_and_the_fleets_secrets_are_not_there(
    tried: Tried,
) -> None:
    """The owner's home, another user's notebook, the agent's token, the Hub's files."""
    assert set(tried.result["read"].values()) == {"ENOENT"}


async def test_the_rest_of_the_machine_is_not_there(tried: Tried) -> None:
    """No home, no /run, no /sys, no state of programs."""
    assert set(tried.result["list"].values()) == {"ENOENT"}
    assert tried.result["root_of_first"] in ("ENOENT", "EACCES")
    # Root's home may be on the way to the interpreter; nothing else of it is there.
    assert set(tried.result["homes"]) <= set(Path(sys.base_prefix).parts)


async def test_no_environment_of_another_process_can_be_read(tried: Tried) -> None:
    """Neither a process of the machine nor the sandbox tool gives anything away."""
    assert SECRET not in tried.result["environments"]
    assert tried.result["host_pids"] == []


async def test_no_socket_of_the_host_can_be_reached_by_path(tried: Tried) -> None:
    """Unix sockets of the machine are not mounted."""
    assert set(tried.result["connect"].values()) == {"ENOENT"}


@pytest.mark.skipif(not can_scope(), reason="this kernel has no Landlock 6")
async def test_no_abstract_socket_of_the_host_can_be_reached(tried: Tried) -> None:
    """They belong to the shared network; Landlock closes them."""
    assert tried.result["abstract"] == "EPERM"


async def test_only_the_own_folder_and_private_temps_take_writes(tried: Tried) -> None:
    """Every folder near the root is tried."""
    allowed = ("/home/jovyan", "/tmp", "/var/tmp", "/dev/shm")

    assert "/home/jovyan" in tried.result["writable"]
    assert [
        path for path in tried.result["writable"] if not path.startswith(allowed)
    ] == []


async def test_nothing_the_user_runs_has_rights_or_can_get_them(tried: Tried) -> None:
    """No capability, no way to root, no mount, no trace of the sandbox's own process."""
    result = tried.result
    capabilities = {
        name: int(value, 16)
        for name, value in result["status"].items()
        if name.startswith("Cap")
    }

    assert result["uid"] == tried.uid
    assert result["uid"] != 0
    assert 0 not in result["groups"]
    assert set(capabilities.values()) == {0}
    assert len(capabilities) == 5
    assert result["status"]["NoNewPrivs"] == "1"
    assert "0" not in result["su"].split()
    for way in ("become_root", "become_group", "mount", "chroot"):
        assert result[way] in ("EPERM", "EINVAL"), way


async def test_only_the_sandboxs_own_first_process_may_belong_to_another_user(
    tried: Tried,
) -> None:
    """The notebook server, its kernels and terminals run as the unprivileged user."""
    users = tried.result["users"]
    first = users["1"]

    assert first in (0, tried.uid)
    assert {users[pid] for pid in users if pid != "1"} == {tried.uid}
    assert first == tried.uid or tried.result["kill_first"] == "EPERM"
    assert first == tried.uid or tried.result["trace_first"] == "EACCES"


async def test_no_gpu_is_visible_to_a_cpu_class(tried: Tried) -> None:
    """There is no device file, and CUDA is told that there is none."""
    plain = {"core", "fd", "full", "null", "ptmx", "pts", "random", "shm"}
    plain |= {"stderr", "stdin", "stdout", "tty", "urandom", "zero", "console"}

    assert set(tried.result["devices"]) <= plain
    assert tried.result["cuda"] == ""


async def test_nothing_of_the_agents_environment_leaks(tried: Tried) -> None:
    """Only what the Hub gave, what Jupyter adds, and the sandbox's own."""
    leaked = set(os.environ) & set(tried.result["variables"])

    assert leaked <= {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR"} | {
        "PWD",
        "VIRTUAL_ENV",
        "TERM",
    }
