"""``/services/fleet/metrics``: for whoever may read the Hub's own metrics."""

from __future__ import annotations

from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST
from tornado.web import HTTPError
from typing_extensions import override

from fleet_hub.service.people import PersonHandler
from fleet_hub.service.visitors import visitor_of


SCOPE: Final = "read:metrics"


class MetricsHandler(PersonHandler):
    """Needs a Hub token with ``read:metrics``, of a person or a service, or a log-in
    of somebody who sees all of the fleet.

    The Hub's setting that opens its own metrics to everybody opens these too.
    """

    @override
    async def prepare(self) -> None:
        """End the request of anybody who may not read metrics.

        Raises:
            HTTPError: 403, as the Hub answers.
        """
        if self.context.metrics_are_open:
            return
        if "Authorization" in self.request.headers:
            token = self.hub_auth.get_token(self, in_cookie=False)
            model = (
                await self.hub_auth.user_for_token(token, sync=False) if token else None
            )
            may = model is not None and SCOPE in model.get("scopes", ())
        else:
            model = await self._identify()
            may = model is not None and visitor_of(model).sees_all
        if not may:
            raise HTTPError(403, reason=f"Access to metrics requires scope {SCOPE}")

    @override
    def get(self) -> None:
        """Answer in Prometheus' text format."""
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.finish(self.context.metrics.text())
