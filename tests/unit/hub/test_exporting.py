"""The export of a controller: whole enough to replay, and without a secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from controller_catalogs import a_catalog
from fleet_builders import a_principal
from fleet_controller import Fleet

from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason
from fleet_hub.cli import parser
from fleet_hub.controller import asking, exporting, stopping
from fleet_hub.controller.ticking import tick
from fleet_hub.controller.timelines import timeline_of
from fleet_hub.errors import ConfigurationError
from fleet_hub.explaining.answers import UnknownSubjectError, answer, line
from fleet_hub.explaining.document import InLine, Question
from fleet_hub.explaining.prose import describe
from fleet_hub.explaining.state import StateError, dump, load
from fleet_hub.explaining.view import View, view_of
from fleet_hub.scheduling.likely import LEAST
from fleet_hub.terminal import Style


def a_busy_fleet() -> Fleet:
    """Return a fleet where two machines are full, with ends, and four wait."""
    catalog = a_catalog()
    limited = [
        item.model_copy(update={"limit_seconds": 600.0 * place})
        for place, item in enumerate(catalog.classes, 1)
    ]
    fleet = Fleet(catalog=catalog.model_copy(update={"classes": tuple(limited)}))
    agents = {name: fleet.machine(name) for name in ("box", "bax")}
    for server in (1, 2):
        record = fleet.ask(server, class_name="whole")
        assert record.assignment is not None
        agents[record.assignment.machine].serve(record.assignment.allocation)
        fleet.clock.advance(30)
    for server in (3, 4, 5, 6):
        fleet.ask(server, class_name="whole" if server % 2 else "small")
        fleet.clock.advance(30)
    fleet.cycle()
    return fleet


def replayed(fleet: Fleet) -> View:
    """Return the view of what the fleet exports, read from text."""
    state = exporting.state_of(fleet.core, timelines=True)
    return view_of(load(json.dumps(dump(state))))


def questions(fleet: Fleet) -> list[Question]:
    """Return a question for every workload, and what-ifs."""
    asked: list[dict[str, Any]] = [
        {"workload": one} for one in fleet.core.model.workloads
    ]
    asked += [
        {"profile": "jupyter", "class": name, "user": user}
        for name in ("small", "whole", None)
        for user in ("alice", "nobody-knows")
    ]
    return [Question.model_validate(one) for one in asked]


def test_the_running_engine_and_its_export_answer_byte_for_byte() -> None:
    """With promises that were made in earlier cycles, and after a restart as well."""
    fleet = a_busy_fleet()
    for running in (fleet, fleet.restarted()):
        offline = replayed(running)
        live = exporting.view_of(running.core)
        for question in questions(running):
            told = answer(live, question).model_dump_json(by_alias=True)
            assert answer(offline, question).model_dump_json(by_alias=True) == told
        shown = line(live).model_dump_json(by_alias=True)
        assert line(offline).model_dump_json(by_alias=True) == shown
    promised = [
        one.no_later_than for one in line(exporting.view_of(fleet.core)).waiting
    ]
    assert len(promised) == 4
    assert None not in promised


def test_the_likely_start_is_said_from_earlier_waits_even_after_a_restart() -> None:
    """From twenty waits on, the same live, restarted and replayed; never past the bound."""
    catalog = a_catalog()
    limited = [
        item.model_copy(update={"limit_seconds": 600.0}) for item in catalog.classes
    ]
    fleet = Fleet(catalog=catalog.model_copy(update={"classes": tuple(limited)}))
    agent = fleet.machine("box")
    running = fleet.ask(1, class_name="whole")
    for server in range(2, 2 + LEAST):
        following = fleet.ask(server, class_name="whole")
        (waits,) = line_of(fleet, following.id)
        assert waits.likely is None
        fleet.clock.advance(60 + server)
        assert running.assignment is not None
        agent.serve(running.assignment.allocation)
        agent.report(running.assignment.allocation, AgentEvent.ENDED)
        fleet.cycle()
        running = fleet.get(following)
        assert running.assignment is not None
    last = fleet.ask(99, class_name="whole")
    for one in (fleet, fleet.restarted()):
        (waits,) = line_of(one, last.id)
        assert waits.likely is not None
        assert waits.likely.samples == LEAST
        assert waits.no_later_than is not None
        assert waits.likely.early < waits.likely.late < waits.no_later_than
        shown = timeline_of(one.core, one.get(last)).limits
        assert (shown.starts_by, shown.likely) == (waits.no_later_than, waits.likely)
        (again,) = line(replayed(one)).waiting
        assert again.likely == waits.likely
        question = Question(workload=last.id)
        told = answer(exporting.view_of(one.core), question)
        assert told.likely == waits.likely
        words = " ".join(describe(told, Style()).split())
        assert f"{LEAST} similar starts came as early." in words
    asked = Question.model_validate(
        {"profile": "jupyter", "class": "whole", "user": "alice"}
    )
    assert answer(exporting.view_of(fleet.core), asked).likely is not None


def line_of(fleet: Fleet, *names: str) -> list[InLine]:
    """Return what the line says of these workloads."""
    waiting = line(exporting.view_of(fleet.core)).waiting
    return [one for one in waiting if one.workload in names]


def test_an_answer_is_what_the_pages_say() -> None:
    """The same code, numbers, position and promise as the last cycle told."""
    fleet = a_busy_fleet()
    view = exporting.view_of(fleet.core)
    for workload, wait in fleet.core.model.waits.items():
        told = answer(view, Question(workload=workload))
        assert told.why is not None
        assert told.why.explanation == wait.explanation
        assert told.ahead == wait.position
        assert told.no_later_than is not None
        assert told.no_later_than.timestamp() == wait.no_later_than


def test_an_export_holds_no_secret() -> None:
    """No ref, token, hash or environment; every driver's key and every name."""
    fleet = a_busy_fleet()
    text = json.dumps(dump(exporting.state_of(fleet.core, timelines=True)))
    hashes = {record.token_hash for record in fleet.core.model.workloads.values()}
    hashes |= {record.token_hash for record in fleet.core.model.machines.values()}
    for secret in ("secret-ref", "hub-token-of", "JUPYTERHUB_API_TOKEN", *hashes):
        assert secret is None or secret not in text
    document = json.loads(text)
    (runtime,) = document["snapshot"]["catalog"]["runtimes"]
    assert runtime["driver_refs"] == {"native": "redacted-1"}
    assert {one["name"] for one in document["machines"]} == {"box", "bax"}
    assert document["timelines"]


def test_a_question_is_answered_with_what_was_just_asked_for() -> None:
    """A request that no cycle has seen is decided first: no "not looked at yet"."""
    fleet = a_busy_fleet()
    from fleet_controller import an_ask  # noqa: PLC0415

    record = asking.ask(fleet.core, an_ask(9, class_name="small"))
    told = answer(exporting.view_of(fleet.core), Question(workload=record.id))
    assert told.why is not None
    assert told.why.explanation.reason is not Reason.NOT_EVALUATED_YET


def test_a_stranger_is_asked_about_in_the_groups_that_are_named() -> None:
    """Without groups the answer says that nobody knows them."""
    fleet = a_busy_fleet()
    view = exporting.view_of(fleet.core)
    unknown = answer(view, Question(profile="jupyter", user="zoe"))
    assert not unknown.asked.groups_known
    named = answer(view, Question(profile="jupyter", user="zoe", groups=("bio",)))
    assert named.asked.groups_known
    assert named.asked.groups == ("bio",)
    known = answer(view, Question(profile="jupyter", user=a_principal().name))
    assert known.asked.groups_known


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "no exported state"),
        ("[]", "no exported state"),
        ('{"schema": "jupyterhub-fleet/state/v1"}', "as_of"),
    ],
)
def test_what_is_no_state_is_refused_with_where(text: str, part: str) -> None:
    """Somebody's other file gives one line."""
    with pytest.raises(StateError, match=part):
        load(text)


def test_a_later_version_of_the_state_is_not_guessed_at() -> None:
    """Its meaning may have changed, whatever it has or lacks."""
    document = dump(exporting.state_of(Fleet().core))
    for parts in (document, {"new": 1}):
        with pytest.raises(StateError, match="state/v2', and only"):
            load(json.dumps({**parts, "schema": "jupyterhub-fleet/state/v2"}))


def test_a_replayed_line_stands_as_it_stood_when_it_was_exported() -> None:
    """Whoever left it made nobody's place another one yet; nor does the export."""
    fleet = Fleet()
    fleet.machine(cores=4)
    asks = [fleet.ask(server, class_name="whole") for server in range(1, 6)]
    stopping.leave(fleet.core, fleet.get(asks[1]))
    fleet.machine("second", cores=2)
    told = line(exporting.view_of(fleet.core)).waiting
    assert len(told) == 3
    assert line(replayed(fleet)).waiting == told
    asked = {"profile": "jupyter", "class": "whole", "user": "alice"}
    question = Question.model_validate(asked)
    live = answer(exporting.view_of(fleet.core), question)
    assert answer(replayed(fleet), question) == live


def test_a_promise_on_a_machine_that_is_away_for_a_moment_is_replayed() -> None:
    """It stands in the controller; a machine that is declared gone keeps none there."""
    fleet = a_busy_fleet()
    before = [one.no_later_than for one in line(exporting.view_of(fleet.core)).waiting]
    assert all(before)
    for agent in fleet.agents.values():
        agent.disconnect()
    told = line(exporting.view_of(fleet.core)).waiting
    assert [one.no_later_than for one in told] == before
    assert line(replayed(fleet)).waiting == told
    fleet.clock.advance(3600)
    tick(fleet.core)
    fleet.cycle()
    told = line(exporting.view_of(fleet.core)).waiting
    assert not any(one.no_later_than for one in told)
    assert line(replayed(fleet)).waiting == told


def test_a_mark_of_byte_order_before_the_state_is_nothing() -> None:
    """Editors put one there."""
    text = json.dumps(dump(exporting.state_of(Fleet().core)))
    assert load(text.encode("utf-8-sig")) == load(text)


def edited(tmp_path: Path, *keys: str | int, value: object) -> Path:
    """Return a fleet's exported state in a file, with another value somewhere."""
    fleet = Fleet()
    fleet.machine()
    document: Any = dump(exporting.state_of(fleet.core))
    part = document
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    file = tmp_path / "case.json"
    file.write_text(json.dumps(document))
    return file


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("snapshot", "machines", 0, "quarantined_until"), float(1 << 70)),
        (("snapshot", "machines", 0, "name"), "Not A Name"),
        (("snapshot", "machines", 0, "facts", "cores_milli"), -1),
    ],
)
def test_a_state_that_no_fleet_has_gets_one_line_about_the_file(
    tmp_path: Path, keys: tuple[str | int, ...], value: object
) -> None:
    """Somebody edited it: each value is well-formed, and together they are nonsense."""
    file = edited(tmp_path, *keys, value=value)
    profile = Fleet().core.catalogs.current().profiles[0].name
    asked = ["explain", "--profile", profile, "--user", "zoe", "--state", str(file)]
    arguments = parser().parse_args(asked)
    with pytest.raises(ConfigurationError, match=r"case\.json") as raised:
        arguments.command(arguments)
    assert len(str(raised.value).splitlines()) == 1


def test_the_state_of_another_version_is_answered_from_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own version may decide otherwise, so whoever reads the answer is told."""
    file = edited(tmp_path, "version", value="0.0.1")
    arguments = parser().parse_args(["queue", "--state", str(file)])
    assert arguments.command(arguments) == 0
    told = capsys.readouterr()
    assert told.out.endswith("Nobody waits.\n")
    assert "written by version 0.0.1" in told.err


def test_nothing_is_asked_about_nothing() -> None:
    """A missing workload and an empty question are told apart from an answer."""
    view = exporting.view_of(Fleet().core)
    for question in (
        Question(),
        Question(workload="wnone"),
        Question(profile="jupyter"),
    ):
        with pytest.raises(UnknownSubjectError):
            answer(view, question)
