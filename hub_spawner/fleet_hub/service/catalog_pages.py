"""The catalog for admins: what it offers, what an edit changed, and why one is unused."""

from __future__ import annotations

from typing_extensions import override

from fleet_hub.service.base import SpawnerHandler
from fleet_hub.service.catalog_document import catalog_document
from fleet_hub.service.pages import PageHandler
from fleet_hub.service.people import PersonHandler


class CatalogForOperator(SpawnerHandler):
    """The catalog's state, from the Hub's own machine."""

    @override
    def get(self) -> None:
        """Answer."""
        self.answer(catalog_document(self.context.catalogs.status()))


class CatalogForAdmin(PersonHandler):
    """The catalog's state, for admins."""

    @override
    def get(self) -> None:
        """Answer."""
        self.require_sight()
        self.answer(catalog_document(self.context.catalogs.status()))


class CatalogPage(PageHandler):
    """The catalog's state as a page."""

    @override
    def get(self) -> None:
        """Show it; the page needs no script."""
        self.require_sight()
        status = self.context.catalogs.status()
        self.render_page("catalog.html", status=status, catalog=status.catalog)
