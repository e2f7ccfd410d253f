"""What does this machine offer to make a sandbox from?"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

from fleet_agent.bubblewrap_program import is_new_enough, packaged_bwrap
from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.native.bubblewrap import BubblewrapTools
from fleet_agent.drivers.native.sandbox import Link, Mount
from fleet_contracts.reasons import Reason


SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_TOP_LEVEL = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into /usr on most systems, and folders on some."""

_ETC = (
    # names and addresses
    *("hosts", "resolv.conf", "nsswitch.conf", "services", "protocols"),
    # libraries and programs
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "mime.types"),
    # certificates of authorities; never ssl/private
    *("ssl/certs", "ssl/openssl.cnf", "ca-certificates", "crypto-policies"),
    *("pki/tls/certs", "pki/tls/openssl.cnf", "pki/ca-trust/extracted"),
    # time and language
    *("localtime", "timezone", "locale.conf"),
)


def system_mounts(root: Path = Path("/")) -> tuple[Mount, ...]:
    """Return what every workload sees of the system, read-only.

    Programs and libraries, and the few files of /etc that make names, certificates and
    clocks work.
    """
    mounts = [Mount(source=str(root / "usr"), target="/usr")]
    mounts += [
        Mount(source=str(root / path[1:]), target=path)
        for path in _TOP_LEVEL
        if (root / path[1:]).is_dir() and not (root / path[1:]).is_symlink()
    ]
    for name in _ETC:
        # A link may lead to where the sandbox has nothing, /run above all.
        source = Path(os.path.realpath(root / "etc" / name))
        if source.exists():
            mounts.append(Mount(source=str(source), target=f"/etc/{name}"))
    return tuple(mounts)


def system_links(root: Path = Path("/")) -> tuple[Link, ...]:
    """Return the links that stand beside the system's mounts."""
    return tuple(
        Link(path=path, to=os.readlink(root / path[1:]))  # noqa: PTH115 - as it is
        for path in _TOP_LEVEL
        if (root / path[1:]).is_symlink()
    )


def find_tools(*, root: bool, search_path: str = SYSTEM_PATH) -> BubblewrapTools:
    """Return the programs that make a sandbox, for an agent that is *root* or not.

    Raises:
        DriverError: they are missing or too old.
    """
    bwrap = shutil.which("bwrap", path=search_path) or packaged_bwrap()
    if bwrap is None:
        raise sandbox_missing("bubblewrap is not installed")
    version = _version(bwrap)
    if not is_new_enough(version):
        raise sandbox_missing(f"{bwrap} is too old, or no bubblewrap: {version!r}")
    # It runs inside, where the system's own paths are all there is.
    setpriv = shutil.which("setpriv", path=SYSTEM_PATH)
    if root and setpriv is None:
        raise sandbox_missing(
            "setpriv is not installed", tool="setpriv, a part of util-linux,"
        )
    return BubblewrapTools(bwrap=bwrap, setpriv=setpriv if root else None)


def sandbox_missing(message: str, tool: str = "bubblewrap 0.8 or newer") -> DriverError:
    """Return the refusal of a machine that cannot keep a workload to itself."""
    return DriverError(
        Reason.SANDBOX_MISSING,
        message,
        detail="This machine cannot put a notebook into a sandbox, so it runs none. "
        f"Its owner can fix that: install {tool} with the system's package manager.",
    )


def cannot_confine(error: Exception) -> DriverError:
    """Return what a fault of the machine means to whoever wanted a notebook."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DriverError(
            Reason.DISK_FULL,
            f"no space for a run: {error}",
            detail="The disk of this machine is full, so the notebook cannot start.",
        )
    return DriverError(
        Reason.START_FAILED,
        f"the sandbox cannot be made: {error}",
        detail="The sandbox for the notebook could not be made on this machine. "
        "Tell the person who runs it.",
    )


def _version(bwrap: str) -> str:
    try:
        answer = subprocess.run(
            [bwrap, "--version"],
            capture_output=True,
            check=False,
            env={},
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise sandbox_missing(f"{bwrap} does not run: {error}") from error
    return answer.stdout.strip()
