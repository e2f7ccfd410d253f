"""What does macOS let a workload do?  Pure: a plan becomes the text of a profile.

The profile language is Scheme without evaluation: ``(version 1)``, then rules of which
the last one that matches decides.  Everything is denied first.  Paths are compared
after links were followed, so a plan names real ones: ``/private/tmp``, not ``/tmp``.

The profile withholds the GPU from a CPU class, but nobody has shown that it can be
withheld: the Metal rule (``fleet_contracts.devices``) does not rest on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final


SYSTEM: Final = (
    *("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec"),
    *("/usr/share", "/System/Library", "/System/Cryptexes", "/Library/Apple"),
    # the command line tools, for packages that are compiled
    *("/Library/Developer/CommandLineTools", "/Library/Frameworks"),
    # Homebrew's programs and libraries; its databases and settings stay closed
    *(
        f"{prefix}/{folder}"
        for prefix in ("/opt/homebrew", "/usr/local")
        for folder in ("bin", "lib", "opt", "Cellar", "Frameworks", "share")
    ),
    "/private/var/db/timezone",
)
"""Programs, libraries and data of the system: no user's, and no secrets."""

SYSTEM_FILES: Final = (
    *("/private/etc/hosts", "/private/etc/resolv.conf", "/private/etc/services"),
    *("/private/etc/protocols", "/private/etc/localtime", "/private/etc/passwd"),
    *("/private/etc/group", "/private/etc/shells", "/private/etc/ssl/cert.pem"),
    *("/private/etc/ssl/openssl.cnf", "/private/etc/nsswitch.conf"),
    *("/private/etc/zshrc", "/private/etc/profile", "/private/etc/bashrc"),
)
DEVICES: Final = (
    *("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"),
    *("/dev/tty", "/dev/ptmx", "/dev/fd"),
)
RESOLVER: Final = "/private/var/run/mDNSResponder"
"""The socket through which macOS looks up every name."""

SERVICES: Final = (
    # accounts, settings, logs and notifications that system libraries ask for
    *("com.apple.system.opendirectoryd.libinfo", "com.apple.cfprefsd.agent"),
    *("com.apple.cfprefsd.daemon", "com.apple.logd", "com.apple.diagnosticd"),
    *("com.apple.system.notification_center", "com.apple.system.logger"),
    # names, certificates and the state of the network
    *("com.apple.dnssd.service", "com.apple.trustd", "com.apple.trustd.agent"),
    *("com.apple.SystemConfiguration.configd", "com.apple.networkd"),
)
METAL_SERVICES: Final = (
    *("com.apple.MTLCompilerService", "com.apple.cvmsServ"),
    "com.apple.gpumemd.source",
)
METAL_CLIENTS: Final = (
    *("AGXDeviceUserClient", "AGXCommandQueue", "AGXSharedUserClient"),
    *("IOSurfaceRootUserClient", "IOAccelerator", "IOGPUDeviceUserClient"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatbeltPlan:
    """One workload's rights on a Mac; every path is a real one, without links."""

    read: tuple[str, ...]
    """Folders that are read and run from, with all below them."""
    write: tuple[str, ...]
    """Folders that are read, written and run from, with all below them."""
    metal: bool = False
    """Whether the class asked for the GPU."""


def profile(plan: SeatbeltPlan) -> str:
    """Return the profile for ``sandbox-exec``; the same plan gives the same text."""
    readable = (*SYSTEM, *plan.read, *plan.write)
    parts = [
        "(version 1)",
        "(deny default)",
        "; itself, and what it starts",
        "(allow process-fork)",
        "(allow signal (target same-sandbox))",
        "(allow process-info* (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow ipc-posix-sem)",
        "(allow ipc-posix-shm)",
        "; what it reads, and runs programs from",
        _rule("file-read*", _each("subpath", readable)),
        _rule("file-read*", _each("literal", (*SYSTEM_FILES, *DEVICES, "/", "/dev"))),
        _rule("file-read-metadata", _each("literal", _above(readable))),
        _rule("process-exec", _each("subpath", readable)),
        _rule("file-map-executable", _each("subpath", readable)),
        "; what it changes",
        _rule("file-write*", _each("subpath", plan.write)),
        _rule("file-write-data", _each("literal", DEVICES)),
        "; terminals",
        "(allow pseudo-tty)",
        '(allow file-read* file-write* (regex #"^/dev/ttys[0-9]+$"))',
        '(allow file-ioctl (regex #"^/dev/(tty|ptmx|ttys[0-9]+)$"))',
        "; the network, which is the machine's own",
        "(allow system-socket)",
        "(allow network-bind (local ip))",
        "(allow network-inbound (local ip))",
        "(allow network-outbound (remote ip))",
        _rule("network-outbound", [f"(literal {_text(RESOLVER)})"]),
        _rule("network-bind", _each("subpath", plan.write)),
        _rule("network-outbound", _each("subpath", plan.write)),
        "; services of the system",
        _rule("mach-lookup", _each("global-name", SERVICES)),
    ]
    if plan.metal:
        parts += [
            "; the GPU",
            _rule("mach-lookup", _each("global-name", METAL_SERVICES)),
            _rule("iokit-open", _each("iokit-user-client-class", METAL_CLIENTS)),
        ]
    return "\n".join(parts) + "\n"


def _rule(operation: str, filters: Iterable[str]) -> str:
    return "\n  ".join([f"(allow {operation}", *filters]) + ")"


def _each(kind: str, values: Iterable[str]) -> list[str]:
    return [f"({kind} {_text(value)})" for value in values]


def _above(folders: Iterable[str]) -> list[str]:
    """Return every folder on the way: programs ask what the parts of a path are."""
    parents = {
        str(parent) for folder in folders for parent in PurePosixPath(folder).parents
    }
    return sorted(parents)


def _text(value: str) -> str:
    """Return *value* as a text of the language, whatever characters it has.

    Raises:
        ValueError: it holds a NUL, which no path and no name has.
    """
    if "\x00" in value:
        raise ValueError(f"{value!r} cannot be the name of anything")
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
