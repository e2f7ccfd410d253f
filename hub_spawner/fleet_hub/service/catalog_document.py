"""The catalog's state as JSON: for admins, and for the command line."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fleet_contracts.catalog_diff import Edit
from fleet_hub.service.catalogs import CatalogStatus


def catalog_document(status: CatalogStatus) -> dict[str, Any]:
    """Return where the catalog comes from, what changed, and what is wrong with it."""
    since = status.faults_since
    return {
        "path": status.path,
        "loaded_at": status.loaded_at.isoformat(),
        "holds": {
            name: len(getattr(status.catalog, name))
            for name in ("profiles", "classes", "runtimes", "quotas")
        },
        "is_in_use": not status.faults,
        "faults": [asdict(fault) for fault in status.faults],
        "faults_since": None if since is None else since.isoformat(),
        "reloads": [
            {
                "at": reload.at.isoformat(),
                "edits": [_edit(edit) for edit in reload.edits],
            }
            for reload in status.reloads
        ],
    }


def _edit(edit: Edit) -> dict[str, Any]:
    return {**edit.model_dump(mode="json"), "text": str(edit)}
