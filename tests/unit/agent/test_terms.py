"""The terms on which an owner lends a machine, and whether they are met."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from probe_machines import a_pretend_machine, settings_for

from fleet_agent.errors import SettingsError
from fleet_agent.probes.presence import PresenceProbe, read_power
from fleet_agent.probes.tools import ToolResult
from fleet_agent.terms.hours import HoursError, parse_hours
from fleet_agent.terms.judging import Circumstances, OwnerTerms, judge
from fleet_agent.terms.settings import WrittenTerms, read_terms
from fleet_agent.terms.watching import TermsWatch
from fleet_contracts.capabilities import OwnerTerm, WorkerCapabilities
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.reasons import Reason
from fleet_contracts.term_sentences import term_line


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine's clock is that of Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str) -> datetime:
    """Return a moment of this machine's clock."""
    return datetime.fromisoformat(text).astimezone()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("hours", "moment", "is_lent", "until"),
    [
        # 2026-06-01 is a Monday
        ("mon-fri 09:00-17:00", "2026-06-01 10:00", True, "2026-06-01 17:00"),
        ("mon-fri 09:00-17:00", "2026-06-01 17:00", False, "2026-06-02 09:00"),
        ("mon-fri 09:00-17:00", "2026-06-05 18:00", False, "2026-06-08 09:00"),
        ("mon-fri 18:00-08:00", "2026-06-02 07:59", True, "2026-06-02 08:00"),
        ("mon-fri 18:00-08:00", "2026-06-01 07:59", False, "2026-06-01 18:00"),
        ("mon-fri 18:00-08:00", "2026-06-06 07:59", True, "2026-06-06 08:00"),
        ("sat-sun 00:00-24:00", "2026-06-06 12:00", True, "2026-06-08 00:00"),
        ("fri-mon 22:00-23:00", "2026-06-07 22:30", True, "2026-06-07 23:00"),
        ("wed 9:00-10:00", "2026-06-04 00:00", False, "2026-06-10 09:00"),
        ("daily 00:00-24:00", "2026-06-04 00:00", True, None),
        (
            "mon-fri 18:00-08:00, sat-sun 00:00-24:00",
            "2026-06-05 20:00",
            True,
            "2026-06-08 00:00",
        ),
        # The clocks go forward on 2026-03-29, and back on 2026-10-25.
        ("daily 01:00-04:00", "2026-03-29 01:30", True, "2026-03-29 04:00"),
        ("daily 01:00-04:00", "2026-10-25 01:30", True, "2026-10-25 04:00"),
    ],
)
def test_hours_are_of_the_machines_own_clock(
    hours: str, moment: str, *, is_lent: bool, until: str | None
) -> None:
    """Days, spans past midnight, spans that touch, and the change of the clocks."""
    expected = None if until is None else at(until)
    assert parse_hours(hours).at(at(moment)) == (is_lent, expected)
    # Whoever asks may live elsewhere.
    assert parse_hours(hours).at(at(moment).astimezone(UTC))[0] is is_lent


@pytest.mark.parametrize(
    "text",
    [
        *("", "always", "mon", "mon 8-9", "xyz 08:00-09:00", "mon-xyz 08:00-09:00"),
        *("mon 08:00-08:00", "mon 24:00-08:00", "mon 08:60-09:00", "mon 08:00-25:00"),
        *("daily-fri 08:00-09:00", "mon 08:00-09:00,"),
    ],
)
def test_a_text_that_names_no_hours_is_refused_with_an_example(text: str) -> None:
    """The message says how to write it."""
    with pytest.raises(HoursError, match=r"write|no span|no time"):
        parse_hours(text)


def test_all_wrong_settings_are_named_at_once() -> None:
    """One attempt shows everything that must be mended."""
    with pytest.raises(SettingsError) as refused:
        read_terms(WrittenTerms(max_cpu="two", max_memory="8GB", hours="never"))

    assert all(
        name in str(refused.value) for name in ("max_cpu", "max_memory", "hours")
    )


def test_no_terms_are_no_limits() -> None:
    """An owner who says nothing lends everything, always, and nobody is watched."""
    terms = read_terms(WrittenTerms())

    assert terms == OwnerTerms()
    assert not terms.asks_presence
    assert judge(terms, Circumstances(now=datetime.now(UTC))) == ()


@pytest.mark.parametrize(
    ("terms", "seen", "reason"),
    [
        ({"idle_seconds": 600.0}, {"idle_seconds": 600.0}, None),
        ({"idle_seconds": 600.0}, {"idle_seconds": 599.0}, Reason.OWNER_AT_WORK),
        ({"idle_seconds": 600.0}, {"idle_seconds": None}, Reason.PRESENCE_UNKNOWN),
        ({"not_on_battery": True}, {"on_battery": False}, None),
        ({"not_on_battery": True}, {"on_battery": True}, Reason.ON_BATTERY),
        ({"not_on_battery": True}, {"on_battery": None}, Reason.ON_BATTERY),
        ({}, {"drained": True}, Reason.DRAINING),
        ({"hours": parse_hours("daily 00:00-24:00")}, {}, None),
    ],
)
def test_an_unmet_term_closes_the_machine_and_says_why(
    terms: dict[str, Any], seen: dict[str, Any], reason: Reason | None
) -> None:
    """What cannot be known counts as not met; placement reads the same verdict."""
    told = judge(OwnerTerms(**terms), Circumstances(now=datetime.now(UTC), **seen))
    facts = placement_facts(WorkerCapabilities(terms=told))

    assert facts.closed is reason


def test_amounts_bound_what_the_machine_has() -> None:
    """The smaller of the two counts; an owner's word adds nothing."""
    picture = WorkerCapabilities.model_validate(
        {
            "host": {
                "cores_allowed_milli": {"value": 8000},
                "memory_allowed_bytes": {"value": 4 << 30},
            }
        }
    )
    terms = read_terms(WrittenTerms(max_cpu="2", max_memory="64G"))
    told = judge(terms, Circumstances(now=datetime.now(UTC)))
    facts = placement_facts(picture.model_copy(update={"terms": told}))

    assert (facts.cores_milli, facts.memory_bytes) == (2000, 4 << 30)
    assert facts.closed is None
    assert placement_facts(WorkerCapabilities(terms=told)).cores_milli is None


def test_a_term_that_we_do_not_know_closes_all_the_same() -> None:
    """A newer agent's reasons are not ignored by an older controller."""
    [known] = judge(OwnerTerms(), Circumstances(now=datetime.now(UTC), drained=True))
    newer = known.model_copy(update={"name": "moon", "reason": "full_moon"})

    facts = placement_facts(WorkerCapabilities(terms=(newer,)))

    assert facts.closed is Reason.OWNER_CLOSED


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def presence(system: str, **replies: Any) -> PresenceProbe:
    """Return a probe of a pretended machine, at noon."""
    return PresenceProbe(
        ask=a_pretend_machine(**replies), system=system, now=lambda: NOON
    )


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ('  | |   "HIDIdleTime" = 61500000000\n', 61.5),
        ('  "HIDIdleTime" = 9000000000\n  "HIDIdleTime" = 1000000000\n', 1.0),
        ('  "HIDParameters" = {}\n', None),
    ],
)
def test_a_mac_says_for_how_long_nobody_touched_it(
    told: str, seconds: float | None
) -> None:
    """Of several devices the one touched last counts."""
    assert presence("darwin", ioreg=told).idle_seconds() == seconds


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("IdleHint=no\nIdleSinceHint=0\n", 0.0),
        (f"IdleHint=yes\nIdleSinceHint={int(NOON.timestamp() - 90)}000000\n", 90.0),
        (f"IdleHint=yes\nIdleSinceHint={int(NOON.timestamp() + 90)}000000\n", 0.0),
        ("IdleHint=yes\n", None),
        ("Failed to connect to bus\n", None),
    ],
)
def test_linux_says_since_when_nobody_touched_it(
    told: str, seconds: float | None
) -> None:
    """As logind has it, for all sessions together."""
    assert presence("linux", loginctl=told).idle_seconds() == seconds


@pytest.mark.parametrize(
    ("told", "on_battery"),
    [
        ("Now drawing from 'AC Power'\n -InternalBattery-0\t100%; charged\n", False),
        ("Now drawing from 'Battery Power'\n", True),
        ("Now drawing from 'UPS Power'\n", True),
        ("No batteries\n", None),
    ],
)
def test_a_mac_says_what_it_draws_from(told: str, *, on_battery: bool | None) -> None:
    """Anything but the mains will run out."""
    assert presence("darwin", pmset=told).on_battery() is on_battery


MAINS, BATTERY = {"type": "Mains", "online": "0"}, {"type": "Battery"}


@pytest.mark.parametrize(
    ("supplies", "on_battery"),
    [
        ([], False),
        ([MAINS], False),
        ([MAINS, BATTERY], True),
        ([MAINS | {"online": "1"}, BATTERY], False),
        ([MAINS, {"type": "USB", "online": "1"}, BATTERY], False),
        # a mouse's battery is not the computer's
        ([MAINS, BATTERY | {"scope": "Device"}], False),
        ([BATTERY], None),
    ],
)
def test_the_kernel_says_whether_it_is_plugged_in(
    tmp_path: Path, supplies: list[dict[str, str]], *, on_battery: bool | None
) -> None:
    """Read from the kernel's own files; a computer without a battery is plugged in."""
    for number, facts in enumerate(supplies):
        folder = tmp_path / f"supply{number}"
        folder.mkdir()
        for name, text in facts.items():
            (folder / name).write_text(f"{text}\n")
    told = ToolResult(
        tool="power-readings",
        exit_code=0,
        stdout=json.dumps(read_power(tmp_path)),
    )

    assert presence("linux", power_readings=told).on_battery() is on_battery


@pytest.mark.parametrize("system", ["linux", "darwin", "windows", None])
def test_a_machine_that_says_nothing_is_unknown(system: str | None) -> None:
    """A tool that is not there is neither an absent owner nor a full battery."""
    probe = PresenceProbe(ask=a_pretend_machine(), system=system, now=lambda: NOON)

    assert probe.idle_seconds() is None
    assert probe.on_battery() is None


def test_the_ways_of_running_work_are_a_term_as_well() -> None:
    """Who wonders why a machine takes no containers reads it there."""
    terms = read_terms(WrittenTerms(drivers=("native", "docker")))
    [term] = judge(terms, Circumstances(now=NOON))

    assert (term.name, term.met) == ("drivers", True)
    assert term_line(term) == "ways of running work: native, docker"


@pytest.mark.parametrize(
    ("terms", "seen", "line"),
    [
        ({"cpu_milli": 500}, {}, "cores: at most 0.5"),
        ({"memory_bytes": 8 << 30}, {}, "memory: at most 8 GiB"),
        (
            {"idle_seconds": 900.0},
            {"idle_seconds": 1.0},
            (
                "use by its owner: after 15 minutes without its owner; takes nothing "
                "new now: its owner is using it"
            ),
        ),
        (
            {},
            {"drained": True},
            ("draining: fleet-agent drain; takes nothing new now: it is being drained"),
        ),
    ],
)
def test_a_term_is_one_line_for_a_person(
    terms: dict[str, Any], seen: dict[str, Any], line: str
) -> None:
    """What was asked for, and whether it is met."""
    [term] = judge(OwnerTerms(**terms), Circumstances(now=NOON, **seen))

    assert term_line(term) == line


@pytest.mark.asyncio
async def test_only_what_a_term_needs_is_looked_at(tmp_path: Path) -> None:
    """Who has no such term is not watched; the owner's wish is a file."""
    machine = a_pretend_machine(loginctl="IdleHint=no\n")
    drained = tmp_path / "drained"
    watch = TermsWatch(
        terms=OwnerTerms(cpu_milli=500),
        drained=drained,
        detection=settings_for(machine),
        system="linux",
    )
    before = await watch.look()
    drained.touch()
    after = await watch.look()

    assert machine.asked == []
    assert [term.name for term in before] == ["cpu"]
    assert [term.name for term in after] == ["drain", "cpu"]


@pytest.mark.asyncio
async def test_a_used_machine_is_closed_until_it_rests(tmp_path: Path) -> None:
    """The whole way, from the tool's words to the code."""
    since = int((NOON - timedelta(minutes=3)).timestamp())
    watch = TermsWatch(
        terms=OwnerTerms(idle_seconds=600),
        drained=tmp_path / "drained",
        detection=settings_for(
            a_pretend_machine(loginctl=f"IdleHint=yes\nIdleSinceHint={since}000000\n")
        ),
        system="linux",
    )

    [term] = await watch.look()

    assert isinstance(term, OwnerTerm)
    assert (term.met, term.reason) == (False, Reason.OWNER_AT_WORK)
