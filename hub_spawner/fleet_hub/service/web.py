"""All routes of the service, below its prefix."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tornado.log import access_log
from tornado.web import Application, RequestHandler, StaticFileHandler
from typing_extensions import override

from fleet_contracts.protocol import MAX_MESSAGE_BYTES
from fleet_hub.adapters.agent_socket import AgentSocket
from fleet_hub.adapters.file_sockets import ReceiveSocket, SendSocket
from fleet_hub.pages import ASSETS
from fleet_hub.service import (
    api,
    api_deeds,
    catalog_pages,
    enrolment,
    explanations,
    fleet_pages,
    internal,
    internal_machines,
    machine_pages,
    news_socket,
    pages,
    servers_page,
    turn_pages,
    usage,
)
from fleet_hub.service.attend import AttendSocket
from fleet_hub.service.base import SECURITY_HEADERS
from fleet_hub.service.context import Context
from fleet_hub.service.deeds import PATTERN
from fleet_hub.service.metrics_page import MetricsHandler
from fleet_hub.service.people import CallbackHandler
from fleet_hub.service.timeline import TokenTimelineHandler


STATIC: Final = Path(__file__).with_name("static")
WORKLOAD: Final = r"(?P<workload>[0-9A-Za-z]{1,64})"
DEED: Final = rf"(?P<deed>{PATTERN})"
TRANSFER: Final = r"(?P<allocation>[0-9A-Za-z_-]{1,100})/(?P<epoch>[0-9]{1,19})"
MACHINE: Final = r"(?P<machine>[0-9a-z-]{1,63})"


class StaticFiles(StaticFileHandler):
    """The pages' script and style: public, and the same for everybody."""

    @override
    def set_extra_headers(self, path: str) -> None:
        """Let a browser ask again, cheaply."""
        self.set_header("Cache-Control", "no-cache")
        self.set_header(
            "X-Content-Type-Options", SECURITY_HEADERS["X-Content-Type-Options"]
        )


def routes(context: Context) -> list[tuple[Any, ...]]:
    """Return every route; what is not listed is 404."""
    prefix, given = context.prefix, {"context": context}
    link = {"core": context.core, "registry": context.registry}
    files = {"core": context.core, "transfers": context.transfers}
    server = rf"{prefix}internal/servers/{internal.KEY}"
    workload = rf"{prefix}api/workloads/{WORKLOAD}"
    page = rf"{prefix}workloads/{WORKLOAD}"
    return [
        (rf"{prefix}health", api.HealthHandler, given),
        (rf"{prefix}metrics", MetricsHandler, given),
        (rf"{prefix}agent", AgentSocket, link),
        (rf"{prefix}agent/files/{TRANSFER}/receive", ReceiveSocket, files),
        (rf"{prefix}agent/files/{TRANSFER}/send", SendSocket, files),
        (rf"{prefix}internal/attend", AttendSocket, given),
        (rf"{prefix}internal/offers", internal.OffersHandler, given),
        (rf"{prefix}internal/validate", internal.ValidateHandler, given),
        (rf"{prefix}internal/machines", internal_machines.MachinesHandler, given),
        (
            rf"{prefix}internal/machines/{MACHINE}/{DEED}",
            internal_machines.MachineDeedHandler,
            given,
        ),
        (rf"{prefix}internal/explain", explanations.ExplainForOperator, given),
        (rf"{prefix}internal/queue", explanations.QueueForOperator, given),
        (
            rf"{prefix}internal/workloads/{WORKLOAD}/move",
            api_deeds.MoveForOperator,
            given,
        ),
        (rf"{prefix}internal/export", explanations.ExportForOperator, given),
        (rf"{prefix}internal/codes", internal_machines.CodesHandler, given),
        (rf"{prefix}internal/audit", internal_machines.AuditHandler, given),
        (rf"{prefix}internal/usage", usage.UsageForOperator, given),
        (rf"{prefix}internal/catalog", catalog_pages.CatalogForOperator, given),
        (server, internal.StatusHandler, given),
        (rf"{server}/stop", internal.StopHandler, given),
        (rf"{server}/leave", internal.LeaveHandler, given),
        (rf"{server}/opened", internal.OpenedHandler, given),
        (rf"{server}/timeline", internal.ServerTimelineHandler, given),
        (rf"{prefix}api/timeline", TokenTimelineHandler, given),
        (rf"{prefix}api/enrol", enrolment.EnrolHandler, given),
        (rf"{prefix}api/profiles", api.ProfilesHandler, given),
        (rf"{prefix}api/machines", api.MachinesHandler, given),
        (
            rf"{prefix}api/machines/{MACHINE}/{DEED}",
            api_deeds.MachineDeedHandler,
            given,
        ),
        (rf"{prefix}api/codes", api_deeds.CodesHandler, given),
        (rf"{prefix}api/audit", api_deeds.AuditHandler, given),
        (rf"{prefix}api/explain", explanations.ExplainForPerson, given),
        (rf"{prefix}api/usage", usage.UsageForPerson, given),
        (rf"{prefix}api/catalog", catalog_pages.CatalogForAdmin, given),
        (rf"{prefix}api/queue", explanations.QueueForAdmin, given),
        (rf"{prefix}api/export", explanations.ExportForAdmin, given),
        (rf"{workload}/explain", explanations.ExplainWorkload, given),
        (rf"{workload}/timeline", api.WorkloadTimelineHandler, given),
        (rf"{workload}/leave", api.WorkloadLeaveHandler, given),
        (rf"{workload}/move", api_deeds.MoveHandler, given),
        (rf"{workload}/ask", api.WorkloadAskHandler, given),
        (prefix, servers_page.OwnWorkloadsHandler, given),
        (page, pages.WorkloadHandler, given),
        (rf"{page}/why", explanations.WhyPage, given),
        (rf"{prefix}why", explanations.WhyProfilePage, given),
        (rf"{page}/leave", pages.LeaveHandler, given),
        (rf"{page}/ask", pages.AskHandler, given),
        (rf"{page}/move", turn_pages.MoveHandler, given),
        (rf"{prefix}machines", machine_pages.MachinesHandler, given),
        (rf"{prefix}machines/{MACHINE}", machine_pages.MachineHandler, given),
        (rf"{prefix}machines/{MACHINE}/{DEED}", machine_pages.DeedHandler, given),
        (rf"{prefix}usage", usage.UsagePage, given),
        (rf"{prefix}line", fleet_pages.LineHandler, given),
        (rf"{prefix}decisions", turn_pages.DecisionsHandler, given),
        (rf"{prefix}holds", fleet_pages.HoldsHandler, given),
        (rf"{prefix}profiles", fleet_pages.ProfilesHandler, given),
        (rf"{prefix}audit", fleet_pages.AuditHandler, given),
        (rf"{prefix}catalog", catalog_pages.CatalogPage, given),
        (rf"{prefix}news", news_socket.NewsSocket, given),
        (rf"{prefix}oauth_callback", CallbackHandler, given),
        (rf"{prefix}static/(.*)", StaticFiles, {"path": str(STATIC)}),
        (rf"{prefix}assets/(.*)", StaticFiles, {"path": str(ASSETS / "fleet")}),
    ]


def make_application(context: Context, *, cookie_secret: bytes) -> Application:
    """Return the tornado application."""
    return Application(
        routes(context),
        cookie_secret=cookie_secret,
        xsrf_cookies=True,
        websocket_max_message_size=MAX_MESSAGE_BYTES,
        websocket_ping_interval=20,
        default_handler_class=pages.MissingHandler,
        default_handler_args={"context": context},
        log_function=_log_request,
        compress_response=False,
    )


def _log_request(handler: RequestHandler) -> None:
    """Log failures, without the query: it may hold what nobody should read."""
    if handler.get_status() >= 500:  # noqa: PLR2004 - the server's own faults
        access_log.error(
            "%d %s %s",
            handler.get_status(),
            handler.request.method,
            handler.request.path,
        )
