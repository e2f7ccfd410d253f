"""Where the engine is, what kind it is, and how far a pull has come."""

from __future__ import annotations

import pytest

from fleet_agent.drivers.docker.facts import EngineFacts
from fleet_agent.drivers.docker.progress import PullProgress
from fleet_agent.drivers.docker.records import Record
from fleet_agent.drivers.docker.sockets import engine_host
from fleet_contracts.timeline import Progress


@pytest.mark.parametrize(
    ("configured", "environment", "host"),
    [
        ("", {}, "unix:///var/run/docker.sock"),
        ("", {"DOCKER_HOST": "unix:///run/x.sock"}, "unix:///run/x.sock"),
        ("unix:///a", {"DOCKER_HOST": "unix:///b"}, "unix:///a"),
        ("tcp://127.0.0.1:2375", {}, "tcp://127.0.0.1:2375"),
        ("tcp://localhost:2375", {}, "tcp://localhost:2375"),
    ],
)
def test_the_engine_is_where_its_owner_says(
    configured: str, environment: dict[str, str], host: str
) -> None:
    """By the setting, by DOCKER_HOST, or in the usual place."""
    assert engine_host(configured, environment) == host


@pytest.mark.parametrize(
    ("host", "sign"),
    [
        ("tcp://10.0.0.5:2375", "another machine's"),
        ("ssh://me@box", "another machine's"),
        ("docker.sock", "no address"),
        ("unix://relative", "no address"),
    ],
)
def test_an_engine_elsewhere_is_refused_in_words(host: str, sign: str) -> None:
    """Notebooks' folders are on this machine, so their containers must be as well."""
    with pytest.raises(ValueError, match=sign):
        engine_host(host, {})


def test_podman_is_recognised_and_refused() -> None:
    """By its own name for its engine, however well it imitates Docker's answers."""
    facts = EngineFacts.from_answers(
        {"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}]},
        {"OSType": "linux", "SecurityOptions": ["name=seccomp", "name=rootless"]},
    )

    assert facts.podman
    assert facts.rootless
    assert "podman" in (facts.problem() or "")


def test_docker_on_linux_has_no_problem() -> None:
    """What it says of itself is kept."""
    facts = EngineFacts.from_answers(
        {"Version": "27.3.1", "Components": [{"Name": "Engine"}]},
        {
            "OSType": "linux",
            "OperatingSystem": "Docker Desktop",
            "SecurityOptions": ["name=userns", "name=seccomp,profile=builtin"],
        },
    )

    assert (facts.version, facts.remapped, facts.desktop) == ("27.3.1", True, True)
    assert facts.problem() is None


def test_windows_containers_are_refused() -> None:
    """A notebook's image is for Linux."""
    facts = EngineFacts.from_answers({"Version": "1"}, {"OSType": "windows"})

    assert "Linux" in (facts.problem() or "")


def line(status: str, layer: str = "a", **numbers: int) -> dict[str, object]:
    """Return a line of the engine's about one layer."""
    return {"status": status, "id": layer, "progressDetail": numbers}


def test_a_pull_is_told_in_bytes() -> None:
    """All layers together; the total once every size is known."""
    pull = PullProgress()
    told = [
        pull.take(item)
        for item in (
            {"status": "Pulling from library/x", "id": "1"},
            line("Pulling fs layer"),
            line("Pulling fs layer", "b"),
            line("Already exists", "c"),
            line("Downloading", current=10, total=100),
            line("Downloading", "b", current=5, total=50),
            line("Download complete"),
            line("Download complete", "b"),
            line("Extracting", current=60, total=100),
            line("Pull complete"),
            line("Pull complete", "b"),
            {"status": "Digest: sha256:1"},
        )
    ]

    def fetched(done: int, total: int | None) -> Progress:
        return Progress(step="pull_image", done=done, total=total, unit="bytes")

    def unpacked(done: int) -> Progress:
        return Progress(step="unpack_image", done=done, total=150, unit="bytes")

    assert told == [
        None,
        fetched(0, None),
        fetched(0, None),
        fetched(0, None),
        fetched(10, None),
        fetched(15, 150),
        fetched(105, 150),
        unpacked(0),
        unpacked(60),
        unpacked(100),
        unpacked(150),
        None,
    ]


def test_a_pull_never_goes_back() -> None:
    """A layer that is begun again does not undo what was told."""
    pull = PullProgress()
    pull.take(line("Pulling fs layer"))
    pull.take(line("Downloading", current=90, total=100))

    again = pull.take(line("Downloading", current=10, total=100))

    assert again == Progress(step="pull_image", done=90, total=100, unit="bytes")


@pytest.mark.parametrize(
    "said", [{}, {"status": 1, "id": "a"}, {"status": "Downloading", "id": "new"}]
)
def test_a_line_that_says_nothing_of_layers_tells_nothing(
    said: dict[str, object],
) -> None:
    """Nor does one about a layer that was never announced."""
    assert PullProgress().take(said) is None


def test_a_record_survives_its_way_through_json() -> None:
    """And finds its containers by labels alone."""
    record = Record(agent="0123", run="f" * 24, boot="b", container="c")

    assert Record.from_json(record.to_json()) == record
    assert record.filters() == {
        "label": ["org.jupyter.fleet.agent=0123", f"org.jupyter.fleet.run={'f' * 24}"]
    }
