"""``fleet-agent run``: the agent's composition root.

All settings are traits of one Application; from here on only values are passed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import structlog
from traitlets import default
from traitlets.config import Application, catch_config_error
from typing_extensions import override

from fleet_agent import __version__
from fleet_agent.addresses import link_url
from fleet_agent.agent import Agent
from fleet_agent.compose import (
    ask_for,
    can_keep_in,
    environment_finder,
    find_engine,
    make_drivers,
)
from fleet_agent.copying.lines import Lines
from fleet_agent.errors import AgentError, SettingsError
from fleet_agent.ledger import Ledger
from fleet_agent.link import Link
from fleet_agent.logs import configure_logs
from fleet_agent.probes.settings import DetectSettings
from fleet_agent.settings import AgentSettings
from fleet_agent.state_folder import (
    StateFolder,
    read_token,
    write_private,
)
from fleet_agent.terms.settings import read_terms
from fleet_agent.terms.watching import TermsWatch
from fleet_contracts.workloads import DriverName


_log = structlog.stdlib.get_logger("fleet_agent")


class FleetAgent(AgentSettings, Application):
    """Lends this computer to a JupyterHub fleet, until it is told to end."""

    name = "fleet-agent run"
    version = __version__
    description = __doc__ or ""

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
            folder.ended.unlink(missing_ok=True)
            try:
                asyncio.run(self._work(folder))
            except AgentError as error:
                with suppress(OSError):
                    write_private(folder.ended, f"{error}\n")
                raise

    async def _work(self, folder: StateFolder) -> None:
        told = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(number, _on_signal, told, number)
        enrolment = folder.read_enrolment()
        service = self.service(enrolment)
        token_file = self.token_of(folder)
        read_token(token_file)
        terms = read_terms(self.written_terms())
        bind, advertise = self.addresses(enrolment)
        ca_file = self.ca_file or enrolment.get("ca_file") or None
        folder.note_run(controller=service, ca_file=ca_file)
        settings = self.driver_settings(folder.path, bind, advertise)
        drivers = make_drivers(list(self.drivers), settings)
        ledger = Ledger(folder.ledger)
        detection = DetectSettings(
            ask=ask_for(self.simulated_machine, drivers, folder.path.name),
            state_dir=str(folder.path),
            drivers=tuple(drivers),
            limits={name: driver.keeps_limits for name, driver in drivers.items()},
            environments_of={
                name: driver.environments for name, driver in drivers.items()
            },
            labels=dict(self.labels),
            advertise_address=None if advertise == "127.0.0.1" else advertise,
            find_environments=environment_finder(drivers),
            engine_host=find_engine(settings) if DriverName.DOCKER in drivers else None,
            gpu_is_free=lambda: not ledger.holds_metal(),
            can_keep_in=can_keep_in(settings),
        )
        try:
            agent = Agent(
                ledger=ledger,
                drivers=drivers,
                owner=self.owner or str(enrolment.get("owner") or ""),
                service_url=service,
                detection=detection,
                terms=TermsWatch(
                    terms=terms, drained=folder.drained, detection=detection
                ),
                dial=Lines(
                    service=service,
                    token=lambda: read_token(token_file),
                    ca_file=ca_file,
                ),
                detect_seconds=self.detect_seconds,
                observe_seconds=self.observe_seconds,
                bind_address=bind,
                advertise_address=advertise,
                share_metal=self.share_metal,
                cut_off=folder.cut_off,
            )
            link = Link(
                url=link_url(service),
                token=lambda: read_token(token_file),
                speaker=agent,
                ca_file=ca_file,
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
