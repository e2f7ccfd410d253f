"""The machines page and the terminal say what is known of a machine, and no more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fleet_builders import NOON, a_principal
from fleet_controller import Fleet
from rich_machine import GPU, a_rich_picture, a_usage

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    HostFacts,
    MetalFence,
    Observed,
    ProbeReport,
    WorkerCapabilities,
)
from fleet_contracts.protocol import CapabilitiesChanged
from fleet_contracts.support import SupportLevel
from fleet_hub.controller.settings import Settings
from fleet_hub.machine_prose import describe_machines
from fleet_hub.machine_words import SUPPORT, plain
from fleet_hub.service.machine_document import fleet_document
from fleet_hub.service.machine_sections import Section, sections_of, usage_of
from fleet_hub.service.machine_views import MachineView, machine_view
from fleet_hub.service.people import Visitor


LATER = NOON + timedelta(minutes=3)
ADMIN = Visitor(name="root", admin=True)
HOSTILE = "\x1b[2J\u202e\r\n\x00<script>alert(1)</script>"


def parts(picture: WorkerCapabilities) -> dict[str, Section]:
    """Return the sections of *picture* by title."""
    return {part.title: part for part in sections_of(picture, LATER)}


def all_words(picture: WorkerCapabilities) -> str:
    """Return everything that is said of *picture*."""
    return "\n".join(
        text
        for part in sections_of(picture, LATER)
        for text in (
            part.title,
            *part.lines,
            *(f"{fact.label} {fact.value} {fact.source}" for fact in part.facts),
        )
    )


def a_fleet(picture: WorkerCapabilities, settings: Settings | None = None) -> Fleet:
    """Return a fleet whose only machine said *picture*."""
    fleet = Fleet(settings=settings)
    agent = fleet.machine()
    agent.say(CapabilitiesChanged(capabilities=picture.model_dump(mode="json")))
    return fleet


def view_of(fleet: Fleet, visitor: Visitor = ADMIN) -> MachineView:
    """Return what *visitor* is shown of the machine."""
    return machine_view(fleet.core, fleet.core.model.machines["box"], visitor)


@pytest.mark.parametrize("level", list(SupportLevel))
def test_every_level_has_words_of_its_own(level: SupportLevel) -> None:
    """Only what is tested is called tested."""
    assert len(set(SUPPORT.values())) == len(SupportLevel)
    assert ("tested" in SUPPORT[level]) is (level is SupportLevel.TESTED)


def test_an_accelerator_has_its_health_and_its_support_in_words() -> None:
    """A card that would run jobs natively is not advertised as tested."""
    part = parts(a_rich_picture(NOON))["Accelerator: H100 (cuda)"]
    assert "healthy, usable" in part.lines[0]
    assert part.lines[1:] == (
        "through native: implemented, and not yet run on this hardware",
        "through docker: implemented, and not yet run on this hardware",
    )


def test_every_fact_has_its_source_and_its_age() -> None:
    """Who said it, through what, and how long ago."""
    part = parts(a_rich_picture(NOON))["Accelerator: H100 (cuda)"]
    [uuid] = [fact for fact in part.facts if fact.label == "UUID"]
    assert uuid.value == GPU
    assert uuid.source == "nvidia-smi (seen by the machine)"
    assert uuid.seen_at == NOON
    assert uuid.age == "3 min 0 s ago"


def test_a_machine_whose_clock_is_ahead_has_no_negative_age() -> None:
    """A fact from the future is as old as can be: not at all."""
    part = parts(a_rich_picture(LATER + timedelta(hours=1)))["Host"]
    assert part.facts[0].age == "0 s ago"


def test_what_is_unknown_is_called_unknown() -> None:
    """What was not seen has no zeros, and no empty words."""
    found = parts(WorkerCapabilities(settled=True))
    assert {fact.value for fact in found["Host"].facts} == {"unknown"}
    assert {fact.source for fact in found["Host"].facts} == {"—"}
    assert found["Host"].lines[-1] == "disk unknown"
    assert found["Accelerators"].lines == ("unknown; the notes say why",)
    assert usage_of(WorkerCapabilities(), LATER) is None


def test_no_accelerator_is_said_only_where_a_tool_said_it() -> None:
    """Absence is a fact of a tool that answered."""
    report = {
        "probe": "nvidia",
        "status": "no_devices",
        "devices_complete": True,
        "observed": {"source": "nvidia-smi", "observed_at": NOON},
    }
    picture = WorkerCapabilities(
        settled=True, probes=(ProbeReport.model_validate(report),)
    )
    assert parts(picture)["Accelerators"].lines == ("none was found",)


def test_a_driver_that_cannot_be_used_says_why() -> None:
    """The reason stands beside the no."""
    lines = parts(a_rich_picture(NOON))["Ways to run workloads"].lines
    assert "native: usable" in lines
    assert "docker: not usable: docker unusable" in lines
    assert "a workload on the processor, through native: tested" in lines


def test_observations_have_their_time() -> None:
    """Free memory and utilisation are of one moment, which is named."""
    part = usage_of(a_rich_picture(NOON), LATER)
    assert part is not None
    assert part.lines[0] == "memory free 48.0 GiB"
    assert f"cuda {GPU}: memory free 559 MiB, utilisation 97 %" in part.lines
    assert part.facts[0].age == "3 min 0 s ago"


def test_a_gpu_that_programs_outside_the_fleet_use_is_shown_as_such() -> None:
    """With how much they take, and what follows; nothing is added for the others."""
    usage = a_usage(NOON)
    [device] = usage.devices
    for foreign, more in (
        (
            24_576,
            "; programs outside the fleet use 24576 MiB, so it is given to nobody",
        ),
        (0, ""),
        (None, ""),
    ):
        seen = device.model_copy(update={"foreign_mib": foreign})
        told = usage.model_copy(update={"devices": (seen,)})
        part = usage_of(a_rich_picture(NOON).model_copy(update={"usage": told}), LATER)
        assert part is not None
        line = f"cuda {GPU}: memory free 559 MiB, utilisation 97 %{more}"
        assert line in part.lines


def test_a_machines_words_stay_words() -> None:
    """No control or direction character of a tool reaches a page or a terminal."""
    picture = a_rich_picture(NOON, text=HOSTILE)
    fleet = a_fleet(picture)
    terminal = describe_machines(fleet_document(fleet.core)["machines"])
    for text in (all_words(picture), terminal):
        assert "alert(1)" in text
        for sign in "\x1b\u202e\r\x00":
            assert sign not in text
    assert all(line.isprintable() for line in terminal.splitlines())


def test_a_machine_that_says_too_much_is_cut() -> None:
    """A thousand devices and a long word cost their excess, not the page."""
    device = AcceleratorDevice(
        accelerator=DeviceKind.CUDA, vendor="x", name="y" * 100_000
    )
    picture = WorkerCapabilities(settled=True, accelerators=(device,) * 1000)
    assert len(all_words(picture)) < 500_000
    assert plain("y" * 100_000).endswith("y…")


def test_the_record_is_told_apart_from_the_machines_own_word() -> None:
    """Owner and provider are the controller's, whatever the agent claims."""
    view = view_of(a_fleet(a_rich_picture(NOON)))
    values = {fact.label: fact.value for fact in view.record}
    assert values["Owner"] == "alice"
    assert values["Provider"] == "local"
    assert {fact.source for fact in view.record} == {"the controller's record"}
    assert view.told == "The machine's own word, as of 0 s ago."


@pytest.mark.parametrize(
    ("holds", "consent", "first", "second"),
    [
        (True, True, "CPU notebooks run beside other work", "was seen to keep"),
        (True, False, "native notebooks run one at a time", "was seen to keep"),
        (False, True, "native notebooks run one at a time", "can reach the GPU"),
        (None, True, "native notebooks run one at a time", "nobody knows"),
    ],
)
def test_whether_cpu_notebooks_share_a_mac_is_told_with_what_was_seen(
    *, holds: bool | None, consent: bool, first: str, second: str
) -> None:
    """And on which build; a machine that is no Mac says nothing of it."""
    seen = Observed(source="fence probe", observed_at=NOON)
    host = HostFacts.model_validate(
        {
            name: {"value": value, "observed": seen.model_dump()}
            for name, value in (
                ("os", "darwin"),
                ("apple_silicon", True),
                ("os_build", "24F74"),
            )
        }
    )
    fence = MetalFence(
        consent=consent, holds=holds, reason="told", os_build="24F74", observed=seen
    )
    picture = WorkerCapabilities(detected_at=NOON, host=host, metal_fence=fence)

    section = parts(picture)["CPU notebooks and the Mac's GPU"]
    assert section.lines[0] == first
    assert second in section.lines[1]
    assert [fact.value for fact in section.facts][2] == "24F74"
    without = picture.model_copy(update={"metal_fence": None})
    assert section.title not in parts(without)


def test_since_when_a_machine_is_there_or_away_is_told() -> None:
    """Also by a controller that has only just started, and has heard nothing yet."""
    fleet = a_fleet(a_rich_picture(NOON))
    fleet.clock.advance(61)
    assert view_of(fleet).presence == "online for 1 min 1 s"
    fleet.agents["box"].disconnect()
    fleet.clock.advance(5)
    assert view_of(fleet).presence == "offline for 5 s"
    again = fleet.restarted()
    again.clock.advance(2)
    assert view_of(again).presence == (
        "offline: not heard since the controller started 2 s ago"
    )


def test_a_picture_in_the_making_says_so() -> None:
    """What slow tools have not answered is unknown so far, and not absent."""
    picture = a_rich_picture(NOON).model_copy(update={"settled": False})
    assert "have not answered yet" in view_of(a_fleet(picture)).told
    tools = "Sandboxes, containers and launchers"
    early = WorkerCapabilities(detected_at=NOON)
    assert parts(early)[tools].lines == ("not known yet",)
    late = WorkerCapabilities(settled=True)
    assert parts(late)[tools].lines == ("none was found",)


def test_a_machine_that_has_said_nothing_is_given_no_words() -> None:
    """Neither the page nor the terminal makes facts out of silence."""
    fleet = a_fleet(WorkerCapabilities())
    assert "not said yet" in view_of(fleet).told
    assert view_of(fleet).sections == ()
    text = describe_machines(fleet_document(fleet.core)["machines"])
    assert "not said yet" in text
    assert "tested" not in text


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (True, "bob, placed: 1 core, 1.0 GiB"),
        (False, "somebody, placed: 1 core, 1.0 GiB"),
    ],
)
def test_an_owner_reads_what_is_held_and_no_more_than_others_may(
    *, visible: bool, expected: str
) -> None:
    """Somebody else's server has no link, and a name only where names are shown."""
    fleet = Fleet(settings=Settings(names_visible=visible))
    fleet.machine(owner="bob")
    fleet.ask(principal=a_principal("bob", 2))
    [held] = view_of(fleet, Visitor(name="carol")).holds
    assert held.workload is None
    assert held.text == expected
    [held] = view_of(fleet, Visitor(name="bob")).holds
    assert held.workload is not None
    assert held.text == "server “default” of bob, placed: 1 core, 1.0 GiB"


def test_the_terminal_tells_the_same_as_the_page() -> None:
    """Record first, then the machine's own word, then what was observed."""
    text = describe_machines(
        fleet_document(a_fleet(a_rich_picture(NOON)).core)["machines"]
    )
    assert text.index("owner alice, provider local") < text.index("own word")
    assert "through native: implemented, and not yet run on this hardware" in text
    assert "docker: not usable: docker unusable" in text
    assert f"Observed at {NOON.isoformat()}, and no capacity:" in text
    assert describe_machines([]) == "No machine has been enrolled yet.\n"


@pytest.mark.parametrize("limits", [True, False, None])
def test_a_driver_that_limits_nothing_says_so(*, limits: bool | None) -> None:
    """One that does, or of which nobody knows, is not blamed."""
    picture = a_rich_picture(NOON)
    native, *others = picture.drivers
    drivers = (native.model_copy(update={"limits": limits}), *others)
    picture = picture.model_copy(update={"drivers": drivers})

    told = "native: nothing keeps a workload to the cores and the memory of its class"
    assert (told in all_words(picture)) is (limits is False)
