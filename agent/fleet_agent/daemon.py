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
from typing import Any

import structlog
from traitlets import Bool, Dict, Float, List, Unicode, default
from traitlets.config import Application, catch_config_error
from typing_extensions import override

from fleet_agent import __version__
from fleet_agent.addresses import link_url, service_url
from fleet_agent.agent import Agent
from fleet_agent.compose import (
    DriverSettings,
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
from fleet_agent.state_folder import (
    StateFolder,
    default_state_folder,
    read_token,
    write_private,
)
from fleet_agent.terms.settings import WrittenTerms, read_terms
from fleet_agent.terms.watching import TermsWatch
from fleet_contracts.workloads import DriverName


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
        "",
        help="""The address of this machine at which notebooks listen.

        Empty: what enrolment told, else 127.0.0.1.""",
    ).tag(config=True)
    advertise_address = Unicode(
        "",
        help="""The address at which the Hub's proxy reaches this machine.

        Empty: what enrolment told, else BIND_ADDRESS.  It is a claim, and the
        controller tries it.""",
    ).tag(config=True)
    max_cpu = Unicode(
        "", help="The most cores that notebooks may hold, such as 2 or 0.5; empty: all."
    ).tag(config=True)
    max_memory = Unicode(
        "", help="The most memory that notebooks may hold, such as 8G; empty: all."
    ).tag(config=True)
    hours = Unicode(
        "",
        help="""When this machine takes work, by its own clock, such as
        "mon-fri 18:00-08:00, sat-sun 00:00-24:00" or "daily 20:00-07:00".

        Empty: always.  What runs when the hours end runs on.""",
    ).tag(config=True)
    not_while_used = Bool(
        default_value=False,
        help="""Take nothing new while somebody uses this computer.

        What runs already runs on.  If nobody can tell, nothing new is taken.""",
    ).tag(config=True)
    idle_minutes = Float(
        10.0,
        min=0.0,
        help="How long keyboard and mouse must rest before it counts as not used.",
    ).tag(config=True)
    not_on_battery = Bool(
        default_value=False, help="Take nothing new while this computer is unplugged."
    ).tag(config=True)
    share_metal = Bool(
        default_value=False,
        help="""Let CPU notebooks on this Mac run beside other work, once a probe saw on
        this build of macOS that their sandbox keeps them from its GPU.

        The probe computes on the GPU for a moment, at the first opportunity and after
        each update of macOS.  As long as it has not succeeded, notebooks run one at a
        time, as they do without this.""",
    ).tag(config=True)
    fence_python = Unicode(
        "",
        help="""A Python with torch on this Mac, such as /opt/torch/bin/python, for the
        probe of SHARE_METAL.

        Empty: a notebook environment that has torch; without one the probe does not
        succeed.""",
    ).tag(config=True)
    labels = Dict(
        help="""Words about this machine that classes may ask for, such as
        {"room": "b12"}.  They cannot claim hardware and decide no trust.""",
    ).tag(config=True)
    standby = Bool(
        default_value=True,
        help="""Keep a process ready for the native notebook that was stopped last.

        It starts again in a fraction of the time, for some 90 MB of memory meanwhile.
        """,
    ).tag(config=True)
    locks = Unicode(
        "",
        help="""A folder with environments of your own, such as /etc/fleet/locks.

        Each is a file NAME.lock of pinned and hashed requirements, which a native
        runtime of the catalog names as its ref.  One of yours replaces the agent's own
        of the same name.  Empty: only the agent's own, `jupyter`.""",
    ).tag(config=True)
    notebook_environment = Dict(
        help="""Variables for every notebook on this machine, such as a
        proxy's address.  Notebooks can read them: put no secret here.""",
    ).tag(config=True)
    docker_host = Unicode(
        "",
        help="""Where the Docker driver's engine answers, such as
        unix:///run/user/1000/docker.sock.

        It must be this machine's own.  Empty: as DOCKER_HOST says, or as usual.""",
    ).tag(config=True)
    docker_folders = List(
        Unicode(),
        help="""Folders of this machine that every notebook in a container may read, at
        the same path, such as ["/srv/data"].""",
    ).tag(config=True)
    docker_networks = List(
        Unicode(),
        help="""Private addresses and networks that notebooks in containers may reach,
        such as ["192.168.7.0/24"]; ["all"]: whatever this machine reaches.

        By default they reach the Hub and the outside, and nothing of this machine's
        private network.""",
    ).tag(config=True)
    docker_image_days = Float(
        30.0,
        min=0.0,
        help="""How long an image that the agent fetched may be unused before it is
        removed.""",
    ).tag(config=True)
    docker_free_disk = Unicode(
        "10G",
        help="""While the engine's disk has less room, unused images that the agent
        fetched are removed, the one unused longest first; 0: they are not.""",
    ).tag(config=True)
    simulated_machine = Dict(
        help="""What kind of computer this pretends to be, for the simulation driver
        alone, such as {"cores": 64, "memory": "512G", "gpus":
        [{"name": "NVIDIA A100-SXM4-80GB", "memory": "80G", "count": 8}]}.""",
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
        bind, advertise = self._addresses(enrolment)
        ca_file = self.ca_file or enrolment.get("ca_file") or None
        folder.note_run(controller=service, ca_file=ca_file)
        settings = self._driver_settings(folder.path, bind, advertise)
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

    def token_of(self, folder: StateFolder) -> Path:
        """Return where the machine's token is."""
        return Path(self.token_file) if self.token_file else folder.token

    def written_terms(self) -> WrittenTerms:
        """Return the owner's terms as they are written in the settings."""
        return WrittenTerms(
            max_cpu=self.max_cpu,
            max_memory=self.max_memory,
            hours=self.hours,
            not_while_used=self.not_while_used,
            idle_minutes=self.idle_minutes,
            not_on_battery=self.not_on_battery,
            drivers=tuple(self.drivers),
        )

    def _addresses(self, enrolment: dict[str, Any]) -> tuple[str, str]:
        """Return where notebooks listen, and where they are reached."""
        told = str(enrolment.get("bind_address") or "127.0.0.1")
        bind = self.bind_address or told
        claimed = "" if self.bind_address else enrolment.get("advertise_address")
        return bind, self.advertise_address or str(claimed or bind)

    def _driver_settings(
        self, folder: Path, bind: str, advertise: str
    ) -> DriverSettings:
        return DriverSettings(
            folder=folder,
            bind_address=bind,
            advertise_address=advertise,
            standby=self.standby,
            locks=self.locks,
            notebook_environment=dict(self.notebook_environment),
            docker_host=self.docker_host,
            docker_folders=tuple(self.docker_folders),
            docker_networks=tuple(self.docker_networks),
            docker_image_days=self.docker_image_days,
            docker_free_disk=self.docker_free_disk,
            simulation=dict(self.simulation),
            fence_python=self.fence_python,
            process_environment=dict(os.environ),
        )

    def service(self, enrolment: dict[str, Any]) -> str:
        """Return the fleet service's address.

        Raises:
            SettingsError: none is known, or it would be reached unprotected.
        """
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
