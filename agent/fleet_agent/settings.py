"""What an owner sets for the agent, and what follows from it.

Each setting is a trait; an empty one says in its help what it stands for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from traitlets import Bool, Dict, Float, HasTraits, List, Unicode, default

from fleet_agent.addresses import service_url
from fleet_agent.compose import DriverSettings
from fleet_agent.errors import SettingsError
from fleet_agent.state_folder import StateFolder, default_state_folder
from fleet_agent.terms.settings import WrittenTerms


class AgentSettings(HasTraits):
    """The settings of ``FleetAgent``; mixed into it, because they fill a page."""

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
        help="""Words about this machine for people to read, such as
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

    @default("state_dir")
    def _default_state_dir(self) -> str:
        return str(default_state_folder())

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

    def addresses(self, enrolment: dict[str, Any]) -> tuple[str, str]:
        """Return where notebooks listen, and where they are reached."""
        told = str(enrolment.get("bind_address") or "127.0.0.1")
        bind = self.bind_address or told
        claimed = "" if self.bind_address else enrolment.get("advertise_address")
        return bind, self.advertise_address or str(claimed or bind)

    def driver_settings(
        self, folder: Path, bind: str, advertise: str
    ) -> DriverSettings:
        """Return what the drivers are made with, all but this machine's facts."""
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
