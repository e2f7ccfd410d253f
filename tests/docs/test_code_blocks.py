"""What the documentation shows can be typed: commands, settings, catalogs and links."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from jupyterhub.app import JupyterHub
from jupyterhub.auth import Authenticator
from traitlets.config import Config

from fleet_agent.commands import drain, enrol, install, probe
from fleet_agent.daemon import FleetAgent
from fleet_contracts.catalog_file import CatalogError, parse_catalog
from fleet_contracts.catalog_yaml import Source
from fleet_hub import cli as hub_cli
from fleet_hub.config import configure
from fleet_hub.demo.fleet_file import DemoFleet
from fleet_hub.service.application import FleetService
from fleet_hub.spawner import FleetSpawner


ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    if "_build" not in path.parts
]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)")
_COMMAND = re.compile(r"^\s*(?:\$ )?((?:\.venv/bin/)?[\w-]+) ?(.*)$")
_SAID = re.compile(r"enrol-…")
"""Stands for a code, which is different each time."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of one page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        """Say where it is."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*languages: str) -> Iterator[Block]:
    """Yield all blocks in one of *languages*."""
    for page in PAGES:
        text = page.read_text()
        for found in _BLOCK.finditer(text):
            if found[1] in languages:
                line = text.count("\n", 0, found.start()) + 1
                yield Block(page, line, found[1], found[2])


def commands(name: str) -> Iterator[tuple[str, str]]:
    """Yield each command line of the program *name*, and where it stands."""
    for block in blocks("", "console", "bash"):
        for line in block.text.splitlines():
            found = _COMMAND.match(line)
            is_typed = block.language != "console" or line.lstrip().startswith("$ ")
            if found and is_typed and found[1].removeprefix(".venv/bin/") == name:
                words = found[2].partition(" > ")[0].partition("  #")[0]
                # A synopsis is no command line.
                if not re.search(r"\[|<|[{]|\b[A-Z]{2,}\b", words):
                    yield words, str(block)


def typed(name: str) -> list[Any]:
    """Return the command lines of *name* as parameters of a test."""
    found = list(commands(name))
    return [pytest.param(words, id=f"{place} {words}") for words, place in found]


@pytest.mark.parametrize("words", typed("jupyter-fleet"))
def test_a_command_of_the_hub_is_understood(words: str) -> None:
    """With every option that the page shows."""
    hub_cli.parser().parse_args(shlex.split(words))


@pytest.mark.parametrize("words", typed("fleet-agent"))
def test_a_command_of_the_agent_is_understood(words: str) -> None:
    """With every option that the page shows."""
    command, *options = shlex.split(_SAID.sub("enrol-x", words))
    parsers = {
        "enrol": enrol.parser,
        "probe": probe.parser,
        "install": install.parser,
        "drain": partial(drain.parser, "drain"),
        "resume": partial(drain.parser, "resume"),
    }
    if command in parsers:
        parsers[command]().parse_args(options)
    else:
        assert command in {"run", "doctor"}
        FleetAgent().parse_command_line(options)


@pytest.mark.parametrize("words", typed("make"))
def test_a_target_of_make_exists(words: str) -> None:
    """Make says so itself, without doing anything."""
    done = subprocess.run(
        ["make", "--dry-run", *shlex.split(words, comments=True)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No rule to make target" not in done.stderr


@pytest.mark.parametrize("block", [pytest.param(b, id=str(b)) for b in blocks("yaml")])
def test_a_file_in_yaml_would_be_accepted(block: Block) -> None:
    """A catalog's parts may name what other parts of the page define."""
    document = yaml.safe_load(block.text)
    if "machines" in document:
        DemoFleet.model_validate(document)
        return
    try:
        parse_catalog([Source(str(block), block.text)])
    except CatalogError as error:
        # An excerpt leaves out what it refers to; nothing else may be wrong with it.
        whole = {"classes", "runtimes", "profiles"} <= set(document)
        left = [
            str(fault)
            for fault in error.faults
            if "which is not among the" not in str(fault)
        ]
        if whole or left:
            raise


@pytest.mark.parametrize("block", [pytest.param(b, id=str(b)) for b in blocks("json")])
def test_settings_of_the_agent_are_known_and_valid(block: Block) -> None:
    """Each name is a setting, and each value one that it takes."""
    document = json.loads(block.text)
    if "FleetAgent" in document:
        settings = document["FleetAgent"]
        assert set(settings) <= set(FleetAgent.class_trait_names(config=True))
        FleetAgent(**settings)


class _Configured:
    """What a page's ``configure`` was called with."""

    def __call__(self, c: Config, **settings: Any) -> None:
        """Take only what the real one takes."""
        assert isinstance(c, Config)
        known = configure.__kwdefaults__ or {}
        assert set(settings) <= set(known), settings


@pytest.mark.parametrize(
    "block", [pytest.param(b, id=str(b)) for b in blocks("python")]
)
def test_a_configuration_names_settings_that_exist(block: Block) -> None:
    """Of JupyterHub, the Spawner, the controller and the agent."""
    c = Config()
    # pages go on from what they said before
    c.JupyterHub.services, c.JupyterHub.load_roles = [], []
    source = block.text.replace("from fleet_hub import configure\n", "")
    names = {"c": c, "get_config": lambda: c, "configure": _Configured(), "token": "t"}
    exec(compile(source, str(block), "exec"), names)
    kinds = (JupyterHub, Authenticator, FleetSpawner, FleetService, FleetAgent)
    owners = {kind.__name__: kind for kind in kinds}
    for owner, settings in c.items():
        known = owners[owner].class_trait_names(config=True)
        assert set(settings) <= set(known), owner


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file(page: Path) -> None:
    """Inside the repository."""
    broken = [
        target
        for target in _LINK.findall(page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []
