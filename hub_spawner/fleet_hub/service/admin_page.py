"""A page of the whole fleet."""

from __future__ import annotations

from typing_extensions import override

from fleet_contracts.language import speak_of_another
from fleet_hub.service.listings import ListingPage


class AdminPage(ListingPage):
    """A page for whoever may see all of the fleet."""

    @override
    async def prepare(self) -> None:
        """Find out who asks, and end everybody else's request."""
        await super().prepare()
        if not self._finished:
            self.require_sight()
            # What is said there is said of everybody.
            speak_of_another(is_another=True)
