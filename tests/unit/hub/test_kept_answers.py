"""What was told before is told again only to whom, and as long as, it is true."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pseudo_language
import pytest
from scheduling_builders import (
    ALICE,
    BOB,
    NOON,
    OPEN,
    a_gpu,
    a_machine,
    a_planner,
    a_waiting,
    an_allocation,
)

from fleet_contracts.language import ENGLISH, speaking
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Principal
from fleet_hub.explaining import told as words
from fleet_hub.explaining.told import RecentWords, told
from fleet_hub.scheduling import kept_answers
from fleet_hub.scheduling.answers import Asker, machine_answer
from fleet_hub.scheduling.interests import Interest
from fleet_hub.scheduling.kept_answers import KeptAnswers
from fleet_hub.scheduling.likely_ends import Likelihood
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState
from fleet_hub.scheduling.waiter import Waiter


CY = Principal(user_id=3, name="cy")
DAY = datetime(2027, 1, 15, 8, tzinfo=UTC)


def a_box(name: str = "box", **fields: object) -> MachineState:
    """Return a machine whose one GPU bob holds, for which cy has asked."""
    held = an_allocation(
        "held", devices=(f"{name}-0",), handle="h", asked=((CY.user_id, NOON - 5),)
    )
    values = {"devices": (a_gpu(f"{name}-0"),), "sharing": OPEN, "held": (held,)}
    return a_machine(name, **(values | fields))


def the_interest(planner: Planner) -> Interest:
    """Return what somebody could use who asks for the profile's GPU."""
    with planner.imagine(a_waiting("?")) as waiter:
        assert isinstance(waiter, Waiter)
        return waiter.interest


def ask(planner: Planner, kept: KeptAnswers, asker: Asker, name: str = "box") -> None:
    """Ask a machine twice, as everybody does, and compare it to its own word."""
    entry = planner.fleet.entries[name]
    outlook = planner.fleet.outlook_on(the_interest(planner), entry)
    own = machine_answer(entry, outlook, asker)
    assert kept.of(entry, outlook, asker) == own
    assert kept.of(entry, outlook, asker) == own
    assert kept.get(entry, outlook, asker) in {own, None}


ASKERS = {
    "a stranger": Asker(principal=ALICE),
    "who holds it": Asker(principal=BOB),
    "who asked for it": Asker(principal=CY),
    "who may read no names": Asker(principal=ALICE, names_visible=False),
    "whom it said no to": Asker(
        principal=ALICE, rejected_by={"box": Reason.AGENT_REJECTED}
    ),
}


@pytest.mark.parametrize("first", ASKERS)
def test_everybody_is_told_what_concerns_them_whoever_asked_before(first: str) -> None:
    """Your own server is "you", and what you asked for is not asked for again."""
    planner, kept = a_planner(a_box()), KeptAnswers()
    ask(planner, kept, ASKERS[first])
    for asker in ASKERS.values():
        ask(planner, kept, asker)


def test_a_machine_that_changes_says_what_it_is_then() -> None:
    """Another holder, a look at who rests, silence, other devices, another owner."""
    planner, kept, stranger = a_planner(a_box()), KeptAnswers(), ASKERS["a stranger"]
    (held,) = a_box().held
    rested = (("box-0", NOON - 900.0),)
    for machine in (
        a_box(held=(replace(held, title="other"),)),
        a_box(held=()),
        a_box(online=False),
        a_box(online=False, offline_since=NOON - 60),
        a_box(devices=(a_gpu("box-0"), a_gpu("box-1"))),
        a_box(owner="cy"),
    ):
        planner.put_machine(machine)
        ask(planner, kept, stranger)
    planner.put_machine(a_box())
    ask(planner, kept, stranger)
    entry = planner.fleet.entries["box"]
    entry.observe(replace(entry.machine, rested=rested))
    ask(planner, kept, stranger)
    planner.release("box", "held")
    ask(planner, kept, stranger)


def test_of_more_machines_than_are_remembered_each_says_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is remembered has a bound."""
    monkeypatch.setattr(kept_answers, "MOST", 2)
    names = [f"box{number}" for number in range(5)]
    planner, kept = a_planner(*map(a_box, names)), KeptAnswers()
    for name in (*names, *names):
        ask(planner, kept, ASKERS["a stranger"], name)


def test_words_are_said_again_in_the_language_of_who_reads_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of another day, to another reader, with another likely end they are others."""
    planner = a_planner(a_box())
    entry = planner.fleet.entries["box"]
    outlook = planner.fleet.outlook_on(the_interest(planner), entry)
    why = machine_answer(entry, outlook, Asker(principal=BOB))
    assert why is not None
    recent = RecentWords()
    likely = Likelihood(NOON + 60, NOON + 600, 30)
    said = set()
    for most in (100, 2):
        monkeypatch.setattr(words, "MOST", most)
        for spoken in (ENGLISH, pseudo_language.language()):
            for of_another in (False, True):
                for day in (DAY, DAY + timedelta(days=3)):
                    with speaking(spoken, of_another=of_another):
                        plain = recent.told(why, [None], day)
                        assert plain == told(why, day)
                        assert recent.told(why, [None], day) is plain
                        ended = recent.told(why, [likely], day)
                        assert ended.sentence != plain.sentence
                        assert ended.explanation.holders[0].likely_end is not None
                        said |= {plain.sentence, ended.sentence}
    assert len(said) == 12
