"""The jupyter_server extension: the composition root of the notebook's side."""

from __future__ import annotations

import os

from jupyter_server.extension.application import ExtensionApp
from traitlets import Float, Unicode, default
from typing_extensions import override

from fleet_lab.handlers import TimelineHandler
from fleet_lab.reader import Address, TimelineReader


class FleetLab(ExtensionApp):
    """Shows a notebook server its own admission timeline."""

    name = "fleet_lab"

    service_url = Unicode(
        help="""
        The address of the fleet's controller, as this machine reaches it.

        By default what the Spawner put into ``JUPYTERHUB_FLEET_URL``; never guessed
        from a browser's request.  Empty: no Hub with admission control started this
        server, and the extension says so.
        """,
    ).tag(config=True)

    longest_wait_seconds = Float(
        25,
        min=0,
        help="""
        How long a panel may wait for news in one request.

        Below the half minute after which some proxies close a silent connection.
        """,
    ).tag(config=True)

    @default("service_url")
    def _service_url_from_environment(self) -> str:
        return os.environ.get("JUPYTERHUB_FLEET_URL", "")

    @override
    def initialize_handlers(self) -> None:
        """Serve the timeline below ``fleet/api/``."""
        self._reader = self._make_reader()
        self.handlers.append(
            (r"fleet/api/timeline", TimelineHandler, {"reader": self._reader})
        )

    @override
    async def stop_extension(self) -> None:
        """End what is still being asked of the controller."""
        if self._reader is not None:
            await self._reader.close()

    def _make_reader(self) -> TimelineReader | None:
        if not self.service_url:
            return None
        return TimelineReader(
            address=Address(
                service_url=self.service_url.rstrip("/") + "/",
                # Not a trait: settings are shown in places where no secret belongs.
                token=os.environ.get("JUPYTERHUB_FLEET_TIMELINE_TOKEN", ""),
                user=os.environ.get("JUPYTERHUB_USER", ""),
                server=os.environ.get("JUPYTERHUB_SERVER_NAME", ""),
            ),
            longest_wait_seconds=self.longest_wait_seconds,
        )
