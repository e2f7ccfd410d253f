"""A real agent that takes this computer for a Mac, by a Mac's recorded answers.

``python simulated_mac.py SANDBOX_EXEC run …``: the command line is the agent's own.
A file ``os-build`` beside SANDBOX_EXEC says which build of macOS runs.
Its probes hear what the tools of a Mac answered; its native driver is the Mac's, with
a stand-in for ``sandbox-exec``.  Nothing else is other than in any agent.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import probe_cases
from native_machine import native_settings
from probe_machines import MAC, PretendMachine, a_pretend_machine

from fleet_agent import cli, compose, daemon
from fleet_agent.drivers.base import Driver
from fleet_agent.drivers.common.listening import Addresses
from fleet_agent.drivers.native.environments.wheel import installed_lab_package
from fleet_agent.drivers.native.macos.driver import MacDriver
from fleet_agent.probes.tools import ToolCall, ToolResult
from fleet_contracts.workloads import DriverName


SYSCTL = {
    "hw.optional.arm64": "1\n",
    "machdep.cpu.brand_string": "Apple M1\n",
    "kern.hv_vmm_present": "0\n",
    "iogpu.wired_limit_mb": "0\n",
}


def a_mac(tool: Path) -> PretendMachine:
    """Return a Mac that answers as recorded ones did."""

    def sysctl(call: ToolCall) -> ToolResult:
        build = tool.with_name("os-build")
        return _sysctl(call, {"kern.osversion": build.read_text()})

    return a_pretend_machine(
        MAC,
        sysctl=sysctl,
        system_profiler=probe_cases.a_case("apple-m1-json").result,
        sandbox_exec="",
    )


def _sysctl(call: ToolCall, more: Mapping[str, str]) -> ToolResult:
    told = (SYSCTL | more).get(call.argv[-1])
    return ToolResult(
        tool="sysctl",
        argv=call.argv,
        exit_code=1 if told is None else 0,
        stdout=told or "",
        stderr="" if told else f"sysctl: unknown oid '{call.argv[-1]}'\n",
    )


def a_mac_driver(settings: compose.DriverSettings, tool: Path) -> MacDriver:
    """Return the driver of a Mac, which runs as its owner wherever the tests are root."""
    native = native_settings(
        settings.folder / "native",
        uids=None,
        environments=None,
        cache=None,
        lab_package=installed_lab_package(),
        fence_python=Path(settings.fence_python) if settings.fence_python else None,
        addresses=Addresses(
            bind=settings.bind_address, advertise=settings.advertise_address
        ),
    )
    return MacDriver(native, sandbox_exec=tool)


def main(argv: Sequence[str]) -> int:
    """Run the agent with *argv* behind the stand-in's path; return its exit status."""
    tool, *words = argv

    def make_drivers(
        names: Sequence[str], settings: compose.DriverSettings
    ) -> Mapping[DriverName, Driver]:
        made = compose.make_drivers(names, settings)
        return made | {DriverName.NATIVE: a_mac_driver(settings, Path(tool))}

    daemon.make_drivers = make_drivers
    daemon.ask_for = lambda shape, drivers, name: a_mac(Path(tool))
    return cli.main(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
