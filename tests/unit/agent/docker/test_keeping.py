"""Which of the images that the agent fetched may go."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet_agent.drivers.docker.fetched import FetchedImages
from fleet_agent.drivers.docker.keeping import (
    DAY,
    Fetched,
    Keeping,
    next_for_room,
    unused_too_long,
)


NOW = 1000 * DAY
RULE = Keeping(image_seconds=30 * DAY)


def used_days_ago(**days: float) -> dict[str, Fetched]:
    """Return images that were used so long ago."""
    return {
        image: Fetched(refs=(f"{image}:1",), used=NOW - ago * DAY)
        for image, ago in days.items()
    }


def test_an_image_goes_when_its_days_are_over() -> None:
    """Unless there is a container of it."""
    fetched = used_days_ago(old=31, used=31, young=29)

    assert unused_too_long(fetched, {"used"}, now=NOW, rule=RULE) == ["old"]


def test_room_is_made_by_the_image_unused_longest() -> None:
    """A container's image stays, and so does one that was asked for in this hour."""
    fetched = used_days_ago(oldest=20, older=10, new=0.5 / 24)

    assert next_for_room(fetched, (), now=NOW) == "oldest"
    assert next_for_room(fetched, {"oldest"}, now=NOW) == "older"
    assert next_for_room(fetched, {"oldest", "older"}, now=NOW) is None


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"refs": 1}}', "{"])
def test_a_record_that_cannot_be_read_names_no_image(tmp_path: Path, text: str) -> None:
    """Then none is the agent's, and none is removed."""
    path = tmp_path / "images.json"
    path.write_text(text)

    assert FetchedImages(path).all() == {}


def test_only_what_was_new_to_the_engine_is_the_agents(tmp_path: Path) -> None:
    """A further name of an image of its own is, a name of somebody's is not."""
    fetched = FetchedImages(tmp_path / "images.json")
    fetched.fetched("mine", "a:1", new=True, now=1.0)
    fetched.fetched("mine", "b:1", new=False, now=2.0)
    fetched.fetched("theirs", "c:1", new=False, now=3.0)
    fetched.used("theirs", now=4.0)
    fetched.used("mine", now=5.0)

    again = FetchedImages(tmp_path / "images.json")
    assert again.all() == {"mine": Fetched(refs=("a:1", "b:1"), used=5.0)}
    again.forget("mine")
    assert fetched.all() == {}
