"""``fleet-agent run``: the agent's composition root.

All settings are traits of one Application; from here on only values are passed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog
from traitlets import Bool, Dict, Float, List, Unicode, default
from traitlets.config import Application, catch_config_error
from typing_extensions import override

from fleet_agent import __version__
from fleet_agent.addresses import link_url, service_url
from fleet_agent.agent import Agent
from fleet_agent.compose import DriverSettings, environment_finder, make_drivers
from fleet_agent.errors import AgentError, SettingsError
from fleet_agent.ledger import Ledger
from fleet_agent.link import Link
from fleet_agent.logs import configure_logs
from fleet_agent.probes.settings import DetectSettings
from fleet_agent.state_folder import StateFolder, default_state_folder, read_token


_log = structlog.stdlib.get_logger("fleet_agent")


class FleetAgent(Application):
    """Lends this computer to a JupyterHub fleet, until it is told to end."""

    name = "fleet-agent run"
    version = __version__
    description = __doc__ or ""

    config_file = Unicode(
        "", help="A traitlets configuration file, .py or .json; none by default."
    ).tag(config=True)
    state_dir = Unicode(
        help="The agent's own folder: ledger, token, environments and notebooks."
    ).tag(config=True)
    controller = Unicode(
        "",
        help="""The fleet service, such as https://hub.example.org/services/fleet/.

        Empty: what enrolment told.""",
    ).tag(config=True)
    token_file = Unicode(
        "", help="The file with the machine's token; empty: STATE_DIR/token."
    ).tag(config=True)
    owner = Unicode(
        "",
        help="""The Hub user to whom this computer belongs.

        Only they may run programs on it without a container.  Empty: what enrolment
        told; if that said nothing, nobody may.""",
    ).tag(config=True)
    drivers = List(
        Unicode(),
        default_value=["native"],
        help="The ways of running workloads that this machine offers.",
    ).tag(config=True)
    trusted_network = Bool(
        default_value=False,
        help="""Allow an http:// controller on another computer.

        The machine's token and the notebooks then cross the network unprotected.""",
    ).tag(config=True)
    ca_file = Unicode(
        "", help="Certificates to trust for the controller; empty: the system's."
    ).tag(config=True)
    stop_workloads_on_exit = Bool(
        default_value=False,
        help="""End all workloads when the agent ends.

        By default they run on, and the next agent finds them.""",
    ).tag(config=True)
    detect_seconds = Float(
        300.0, min=1.0, help="Between two looks at the machine's capabilities."
    ).tag(config=True)
    observe_seconds = Float(
        30.0,
        min=1.0,
        help="""Between two looks at free memory and utilisation.

        They are shown, and never used as capacity.""",
    ).tag(config=True)
    bind_address = Unicode(
        "127.0.0.1", help="The address of this machine at which notebooks listen."
    ).tag(config=True)
    advertise_address = Unicode(
        "",
        help="""The address at which the Hub's proxy reaches this machine.

        Empty: BIND_ADDRESS.  It is a claim, and the controller tries it.""",
    ).tag(config=True)
    labels = Dict(
        help="""Words about this machine that classes may ask for, such as
        {"room": "b12"}.  They cannot claim hardware and decide no trust.""",
    ).tag(config=True)
    notebook_environment = Dict(
        help="""Variables for every native notebook on this machine, such as a
        proxy's address.  Notebooks can read them: put no secret here.""",
    ).tag(config=True)
    simulation = Dict(
        help="""How the simulation driver behaves, such as
        {"prepare_seconds": 5, "fault": "start_fails"}.""",
    ).tag(config=True)

    aliases = {  # noqa: RUF012 - the way of traitlets
        "config": "FleetAgent.config_file",
        "state-dir": "FleetAgent.state_dir",
        "controller": "FleetAgent.controller",
        "token-file": "FleetAgent.token_file",
        "owner": "FleetAgent.owner",
        "log-level": "Application.log_level",
    }
    flags = {  # noqa: RUF012 - the way of traitlets
        "stop-workloads-on-exit": (
            {"FleetAgent": {"stop_workloads_on_exit": True}},
            "End all workloads when the agent ends.",
        ),
        "simulation": (
            {"FleetAgent": {"drivers": ["simulation"]}},
            "Pretend to run notebooks, and run nothing.",
        ),
        "debug": (
            {"Application": {"log_level": 10}},
            "Log more.",
        ),
    }

    @default("state_dir")
    def _default_state_dir(self) -> str:
        return str(default_state_folder())

    @default("log_level")
    def _default_log_level(self) -> int:
        return 20

    @override
    @catch_config_error
    def initialize(self, argv: Sequence[str] | None = None) -> None:
        """Read the command line and the configuration file; the former wins."""
        self.parse_command_line(list(argv) if argv is not None else None)
        if self.config_file:
            path = Path(self.config_file).resolve()
            if not path.is_file():
                raise SettingsError(f"there is no configuration file {path}")
            self.load_config_file(path.name, path=str(path.parent))
            self.update_config(self.cli_config)
        self.log.setLevel(self.log_level)
        configure_logs(self.log.level)

    @override
    def start(self) -> None:
        """Work until told to end.

        Raises:
            AgentError: it cannot start or go on; the text says what to do.
        """
        folder = StateFolder(Path(self.state_dir).expanduser().resolve())
        folder.make()
        with folder.lock():
            asyncio.run(self._work(folder))

    async def _work(self, folder: StateFolder) -> None:
        told = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(number, _on_signal, told, number)
        enrolment = folder.read_enrolment()
        service = self._service(enrolment)
        token_file = Path(self.token_file) if self.token_file else folder.token
        read_token(token_file)
        drivers = make_drivers(list(self.drivers), self._driver_settings(folder.path))
        ledger = Ledger(folder.ledger)
        try:
            agent = Agent(
                ledger=ledger,
                drivers=drivers,
                owner=self.owner or str(enrolment.get("owner") or ""),
                service_url=service,
                detection=DetectSettings(
                    state_dir=str(folder.path),
                    drivers=tuple(drivers),
                    labels=dict(self.labels),
                    advertise_address=self.advertise_address or None,
                    find_environments=environment_finder(drivers),
                ),
                detect_seconds=self.detect_seconds,
                observe_seconds=self.observe_seconds,
            )
            link = Link(
                url=link_url(service),
                token=lambda: read_token(token_file),
                speaker=agent,
                ca_file=self.ca_file or None,
            )
            _log.info("agent starts", pid=os.getpid(), controller=service)
            await self._until_told(told, agent, link)
        finally:
            ledger.close()

    async def _until_told(self, told: asyncio.Event, agent: Agent, link: Link) -> None:
        """Run until a signal comes or the agent cannot go on."""
        running = asyncio.create_task(agent.run(link))
        waiting = asyncio.create_task(told.wait())
        try:
            await asyncio.wait({running, waiting}, return_when="FIRST_COMPLETED")
            # The link lives on meanwhile, so that the ends are reported at once.
            await agent.close(stop_workloads=self.stop_workloads_on_exit)
        finally:
            waiting.cancel()
            running.cancel()
            await asyncio.wait({running})
        _log.info("agent ends")
        if not running.cancelled():
            running.result()

    def _driver_settings(self, folder: Path) -> DriverSettings:
        return DriverSettings(
            folder=folder,
            bind_address=self.bind_address,
            advertise_address=self.advertise_address or self.bind_address,
            notebook_environment=dict(self.notebook_environment),
            simulation=dict(self.simulation),
            process_environment=dict(os.environ),
        )

    def _service(self, enrolment: dict[str, Any]) -> str:
        controller = self.controller or str(enrolment.get("controller") or "")
        if not controller:
            raise SettingsError(
                "no controller is known: enrol this machine with `fleet-agent enrol`, "
                "or name it with --controller"
            )
        trusted = self.trusted_network or enrolment.get("trusted_network") is True
        return service_url(controller, trusted_network=trusted)


def _on_signal(told: asyncio.Event, number: signal.Signals) -> None:
    if told.is_set():
        # Asked twice: what is left is in the ledger.
        os._exit(128 + number)
    _log.info("told to end", signal=number.name)
    told.set()


def main(argv: Sequence[str]) -> int:
    """Run the agent with the command line *argv*; return the exit status."""
    configure_logs(logging.INFO)
    try:
        app = FleetAgent()
        app.initialize(argv)
        app.start()
    except AgentError as error:
        _log.critical("the agent cannot go on", error=str(error))
        return error.exit_code
    return 0
