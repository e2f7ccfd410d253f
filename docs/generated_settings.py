"""The page of the reference on what a Hub's configuration says about the fleet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traitlets.traitlets import DefaultHandler

from fleet_hub.service.application import FleetService
from fleet_hub.spawner_settings import FleetSettings


NOT_THERE = {"config_file", "data_dir", "url"}
"""Of the controller's process itself: the Hub tells it these."""


def settings_page() -> str:
    """Return the page on ``c.FleetSpawner`` and ``c.FleetService``."""
    lines = [
        "# Settings of a Hub",
        "",
        "Generated from the settings' own definitions.",
        "",
        "They stand in `jupyterhub_config.py`, before or after `configure(c)`, whose arguments are in [](../how-to/add-to-a-hub.md).",
        "A controller that the Hub starts hears of its own with each start of the Hub.",
        "An external one has a file of its own, which `--FleetService.config_file=FILE` names.",
        "",
        "## c.FleetSpawner",
        "",
        "Beside [those of every Spawner](https://jupyterhub.readthedocs.io/en/stable/reference/api/spawner.html).",
        "",
        *_table(FleetSettings, set()),
        "",
        "## c.FleetService",
        "",
        "The controller.",
        "",
        *_table(FleetService, NOT_THERE),
        "",
    ]
    return "\n".join(lines)


def _table(owner: Any, hidden: set[str]) -> Iterator[str]:
    depends = {
        each.trait_name
        for each in vars(owner).values()
        if isinstance(each, DefaultHandler)
    }
    yield "| Setting | Default | What it means |"
    yield "|---|---|---|"
    for name, trait in sorted(owner.class_own_traits(config=True).items()):
        if name not in hidden:
            text = " ".join(trait.help.split()).replace("|", "\\|")
            shown = name not in depends
            default = f"`{trait.default_value_repr()}`" if shown else "see there"
            yield f"| `{name}` | {default} | {text} |"
