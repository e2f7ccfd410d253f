"""Where files are bound to a machine, and what is offered when the choice is not."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from fleet_builders import a_principal
from fleet_controller import Fleet
from scheduling_builders import a_catalog, a_gpu, some_facts

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason, ReasonKind
from fleet_contracts.timeline import TimelineKind
from fleet_contracts.workloads import Choice
from fleet_hub.controller import offering
from fleet_hub.controller.exporting import state_of, view_of
from fleet_hub.controller.records import Workload
from fleet_hub.controller.timelines import timeline_of
from fleet_hub.explaining.answers import answer
from fleet_hub.explaining.document import Answer, Question
from fleet_hub.explaining.prose import describe
from fleet_hub.explaining.state import dump, load
from fleet_hub.explaining.view import view_of as offline
from fleet_hub.pages.told import tell
from fleet_hub.scheduling.choice import read_choice
from fleet_hub.terminal import Style


def a_fleet_with_files_on_the_cpu_box() -> tuple[Fleet, Workload]:
    """Return a CPU box with alice's files, a GPU box, and her stopped server."""
    fleet = Fleet(catalog=a_catalog())
    home = fleet.machine("cpu-box")
    record = fleet.ask(profile="lab", class_name="cpu")
    home.serve(record.assignment.allocation)
    home.report(record.assignment.allocation, AgentEvent.ENDED)
    fleet.machine("gpu-box")
    fleet.core.model.presence["gpu-box"].facts = some_facts(devices=(a_gpu(),))
    fleet.core.model.stirred.add("gpu-box")
    fleet.cycle()
    return fleet, fleet.get(record)


def choose(fleet: Fleet, class_name: str, files: str | None) -> Workload:
    """Ask for the same server again, with this class and this wish for its files."""
    choice = {"profile": "lab", "class": class_name, "files": files}
    return fleet.ask(
        attempt=f"{class_name}-{files}", choice=Choice.model_validate(choice)
    )


def test_a_choice_that_cannot_run_at_home_comes_with_its_ways_out() -> None:
    """The old class where the files are, a copy of them, or an empty folder elsewhere."""
    fleet, record = a_fleet_with_files_on_the_cpu_box()
    offers = offering.offers_for(fleet.core, a_principal(), record.key).offers
    by_class = {offer.class_name: offer for offer in offers}
    assert by_class["cpu"].ways_out == ()
    gpu = by_class["gpu"]
    assert not gpu.choosable
    assert [(way.kind, way.class_name, way.machine) for way in gpu.ways_out] == [
        ("keep_class", "cpu", "cpu-box"),
        ("copy_files", "gpu", "gpu-box"),
        ("fresh_folder", "gpu", "gpu-box"),
    ]


def test_a_choice_that_runs_nowhere_has_only_the_old_class_to_offer() -> None:
    """Nobody is led to a fresh folder that no machine could hold."""
    fleet, record = a_fleet_with_files_on_the_cpu_box()
    offers = offering.offers_for(fleet.core, a_principal(), record.key).offers
    metal = next(offer for offer in offers if offer.class_name == "metal")
    assert [way.kind for way in metal.ways_out] == ["keep_class"]


def test_without_the_wish_it_is_refused_and_the_files_stay_known() -> None:
    """Never silently: the next start with the old class finds the files again."""
    fleet, before = a_fleet_with_files_on_the_cpu_box()
    refused = choose(fleet, "gpu", None)
    assert refused.explanation.kind is ReasonKind.NEVER
    assert refused.home == before.home
    again = choose(fleet, "cpu", None)
    assert again.assignment.machine == "cpu-box"
    assert again.notebook == before.notebook


def test_a_fresh_folder_starts_elsewhere_and_says_where_the_files_stay() -> None:
    """Another machine, another folder, and an entry that names the first."""
    fleet, before = a_fleet_with_files_on_the_cpu_box()
    started = choose(fleet, "gpu", "fresh")
    assert started.assignment.machine == "gpu-box"
    assert started.notebook != before.notebook
    notes = [
        event.explanation
        for event in fleet.store.events(started.id)
        if event.generation == started.generation and event.explanation is not None
    ]
    assert (notes[0].reason, notes[0].machine) == (Reason.DATA_NOT_LOCAL, "cpu-box")


@pytest.mark.parametrize("files", ["fresh", "copy"])
def test_a_start_elsewhere_that_never_gets_ready_loses_no_files(files: str) -> None:
    """The next start with the old class finds them where they have been all the time."""
    fleet, before = a_fleet_with_files_on_the_cpu_box()
    started = choose(fleet, "gpu", files)
    failed = fleet.agents["gpu-box"]
    failed.report(started.assignment.allocation, AgentEvent.ACCEPTED)
    failed.report(started.assignment.allocation, AgentEvent.FAILED)
    ended = fleet.get(started)
    assert ended.state is State.FAILED
    assert (ended.home, ended.notebook) == (before.home, before.notebook)
    again = choose(fleet, "cpu", None)
    assert again.assignment.machine == "cpu-box"
    assert again.notebook == before.notebook


def test_the_wish_is_of_no_effect_where_the_files_can_be_used() -> None:
    """Repeated with each start it never leads away from the files it began with."""
    fleet, before = a_fleet_with_files_on_the_cpu_box()
    at_home = choose(fleet, "cpu", "fresh")
    assert at_home.assignment.machine == "cpu-box"
    assert at_home.notebook == before.notebook


def test_any_other_wish_for_the_files_is_refused() -> None:
    """An option has its few words, whoever sends it."""
    options = {"profile": "lab", "class": "cpu", "files": "burn"}
    found = read_choice(a_catalog(), a_principal(), options)
    assert isinstance(found, Explanation)
    assert (found.reason, found.subject) == (Reason.INVALID_REQUEST, "files")


def told_by(found: Answer) -> list[tuple[str, str, str | None]]:
    """Return the ways out of an explanation, as the spawn form has them."""
    assert [way.told.explanation.reason.value for way in found.ways_out] == [
        way.way.kind for way in found.ways_out
    ]
    return [
        (way.way.kind, way.way.class_name, way.way.machine) for way in found.ways_out
    ]


def test_the_ways_out_are_the_same_codes_wherever_somebody_looks() -> None:
    """Spawn form, what-if, explanation, timeline and an exported state agree."""
    fleet, record = a_fleet_with_files_on_the_cpu_box()
    offers = offering.offers_for(fleet.core, a_principal(), record.key).offers
    offered = next(offer for offer in offers if offer.class_name == "gpu").ways_out
    expected = [(way.kind, way.class_name, way.machine) for way in offered]
    assert [kind for kind, _, _ in expected] == [
        "keep_class",
        "copy_files",
        "fresh_folder",
    ]
    mere = Question.model_validate(
        {"profile": "lab", "class": "gpu", "user": record.principal.name, "server": ""}
    )
    asked = answer(view_of(fleet.core), mere)
    assert not asked.may_be_asked
    assert asked.asked.files_on == "cpu-box"
    assert told_by(asked) == expected

    refused = choose(fleet, "gpu", None)
    about = Question(workload=refused.id)
    assert told_by(answer(view_of(fleet.core), about)) == expected
    exported = load(json.dumps(dump(state_of(fleet.core, timelines=True))))
    for question in (mere, about):
        replayed = answer(offline(exported), question)
        assert replayed.ways_out == answer(view_of(fleet.core), question).ways_out
    notes = [
        event.explanation
        for event in fleet.store.events(refused.id)
        if event.generation == refused.generation and event.kind is TimelineKind.NOTE
    ]
    assert [(note.reason.value, note.machine) for note in notes] == [
        (kind, machine) for kind, _, machine in expected
    ]
    # The page without a script tells them below what was refused.
    (step,) = tell(timeline_of(fleet.core, refused)).steps[:1]
    facts = [(key, text) for key, _, text in step.facts if key.startswith("instead")]
    assert facts == [
        (f"instead-{number}", way.told.sentence)
        for number, way in enumerate(asked.ways_out)
    ]
    prose = describe(asked, Style.of(io.StringIO()))
    for way in asked.ways_out:
        assert f"{way.way.kind}: " in prose


def test_a_copy_that_is_not_offered_says_so_beside_the_other_ways() -> None:
    """Whoever wonders why no copy is offered is told, there too."""
    fleet, record = a_fleet_with_files_on_the_cpu_box()
    fleet.core.settings = replace(fleet.core.settings, copy_limit_bytes=0)
    found = answer(
        view_of(fleet.core),
        Question.model_validate(
            {"profile": "lab", "class": "gpu", "user": record.principal.name}
        ),
    )
    assert [kind for kind, _, _ in told_by(found)] == ["keep_class", "fresh_folder"]
    assert found.no_copy is not None
    assert found.no_copy.explanation.reason is Reason.COPY_NOT_OFFERED
    assert "copy_not_offered: " in describe(found, Style.of(io.StringIO()))


def test_a_server_without_files_is_asked_about_as_one() -> None:
    """Another server of the same user is bound to no machine."""
    fleet, record = a_fleet_with_files_on_the_cpu_box()
    name = record.principal.name
    view = view_of(fleet.core)
    fields = {"profile": "lab", "class": "gpu", "user": name, "server": "another"}
    other = answer(view, Question.model_validate(fields))
    assert (other.may_be_asked, other.asked.files_on, other.ways_out) == (
        True,
        None,
        (),
    )
    fields = {"profile": "lab", "class": "cpu", "user": name, "server": ""}
    at_home = answer(view, Question.model_validate(fields))
    assert (at_home.starts_now, at_home.machine) == (True, "cpu-box")
    assert at_home.ways_out == ()


def test_where_no_server_is_named_the_default_server_is_told_beside_the_answer() -> (
    None
):
    """There is room for any other server, and its files bind that one."""
    fleet, record = a_fleet_with_files_on_the_cpu_box()
    fields = {"profile": "lab", "class": "gpu", "user": record.principal.name}
    found = answer(view_of(fleet.core), Question.model_validate(fields))
    assert (found.starts_now, found.machine) == (True, "gpu-box")
    assert (found.asked.server, found.asked.files_on) == (None, "cpu-box")
    assert [kind for kind, _, _ in told_by(found)] == [
        "keep_class",
        "copy_files",
        "fresh_folder",
    ]
    assert "The user's default server has its files on cpu-box." in describe(
        found, Style.of(io.StringIO())
    )
    at_home = answer(
        view_of(fleet.core), Question.model_validate({**fields, "class": "cpu"})
    )
    assert at_home.ways_out == ()
