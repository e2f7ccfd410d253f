"""What every handler of the service needs; made once by the composition root."""

from __future__ import annotations

from dataclasses import dataclass, field

from jupyterhub.services.auth import HubOAuth

from fleet_contracts.workloads import ServerKey
from fleet_hub.adapters.file_sockets import Transfers
from fleet_hub.adapters.link_registry import LinkRegistry
from fleet_hub.adapters.network import HostNetwork
from fleet_hub.admission import ServerStatus
from fleet_hub.controller.core import Core
from fleet_hub.controller.records import Workload
from fleet_hub.controller.timelines import status_of
from fleet_hub.service.catalogs import CatalogSource
from fleet_hub.service.metrics import Metrics
from fleet_hub.service.runner import Runner
from fleet_hub.service.tokens import ViewTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The controller and the ways to tell who asks."""

    core: Core
    catalogs: CatalogSource
    runner: Runner
    registry: LinkRegistry
    network: HostNetwork
    public_url: str
    """Where people reach the service; empty: as the browser says."""
    users_may_enrol: bool
    """Whether everybody may enrol a machine of their own."""
    hub_auth: HubOAuth
    spawner_secret: str = field(repr=False)
    view_tokens: ViewTokens = field(repr=False)
    metrics: Metrics
    transfers: Transfers = field(default_factory=Transfers)
    metrics_are_open: bool = False
    """Whether everybody may read them, as the Hub can be told of its own."""
    prefix: str
    """Where the service is, with a slash at both ends."""
    hub_base: str
    """Where the Hub's users are, with a slash at both ends."""

    def status(self, key: ServerKey) -> ServerStatus:
        """Return what the controller knows of one server, heard of or not."""
        record = self.core.model.by_key(key)
        return ServerStatus(key=key) if record is None else self.status_of(record)

    def status_of(self, record: Workload) -> ServerStatus:
        """Return the status of a known workload."""
        token = self.view_tokens.make(record.id)
        return status_of(self.core, record, view_token=token)
