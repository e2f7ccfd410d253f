"""A file that describes no fleet is told with all that is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet_hub.demo.fleet_file import OWN_FLEET, read_fleet
from fleet_hub.errors import ConfigurationError


A_MACHINE = "{name: box, owner: ada, computer: {cores: 1, memory: 1G}}"


def test_the_fleet_that_comes_with_the_program_can_be_read() -> None:
    """And everybody in it asks for something."""
    fleet = read_fleet(OWN_FLEET)
    assert [person.options()["profile"] for person in fleet.people]
    assert fleet.machines[0].settings()["FleetAgent"]["drivers"] == ["simulation"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("machines: [", "is no YAML"),
        ("machines: []", "machines"),
        ("[]", "the file"),
        (f"machines: [{A_MACHINE}, {A_MACHINE}]", "several machines are called box"),
        (f"machines: [{A_MACHINE}]\npeople: [{{name: ada}}]", "people.0.profile"),
        ("machines: [{name: Box, owner: ada, computer: {}}]", "machines.0.name"),
        (f"machines: [{A_MACHINE}]\ncomputers: 1", "computers"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    """With the place in the file."""
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        read_fleet(path)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_fleet(tmp_path / "nothing.yaml")
