"""Two machines that say they have the same device are one computer with two agents.

Equality of a UUID is proof enough: whatever is copied with a disk, a GPU's is not.
"""

from __future__ import annotations

import pytest
from fleet_controller import Fleet, allocation_of
from scheduling_builders import a_catalog, a_gpu, some_facts
from shared_card import a_picture, asked, end, machine_of, two_agents

from fleet_contracts.allocations import State
from fleet_contracts.protocol import CapabilitiesChanged
from fleet_contracts.reasons import FACTS, Reason, ReasonKind
from fleet_contracts.sentences import remedy, sentence
from fleet_contracts.workloads import DriverName
from fleet_hub.controller import stopping
from fleet_hub.controller.device_index import DeviceIndex
from fleet_hub.controller.records import Workload
from fleet_hub.controller.ticking import tick
from fleet_hub.scheduling.inspection import inspect_waiting
from fleet_hub.scheduling.same_device import Claim, counts_to, named_by, without_others
from fleet_hub.service.machine_views import troubles


FIRST = "5b1f2f0e-0000-4000-8000-000000000001"
SECOND = "5b1f2f0e-0000-4000-8000-000000000002"


def a_claim(machine: str, since: float = 0.0, **facts: bool) -> Claim:
    """Return what ties *machine* to the device."""
    return Claim(machine=machine, since=since, **facts)


@pytest.mark.parametrize(
    ("claims", "first"),
    [
        ((), None),
        ((a_claim("a"),), None),
        ((a_claim("b", 1, reports=True), a_claim("a", 2, reports=True)), "b"),
        ((a_claim("b", 1, reports=True), a_claim("a", 1, reports=True)), "a"),
        ((a_claim("b", 1), a_claim("a", 2, reports=True)), "a"),
        ((a_claim("b", 1, reports=True), a_claim("a", 2, holds=True)), "a"),
        ((a_claim("b", 2, holds=True), a_claim("a", 1, holds=True)), "a"),
    ],
)
def test_a_device_counts_to_who_holds_it_or_was_there_first(
    claims: tuple[Claim, ...], first: str | None
) -> None:
    """Whoever is away and holds nothing stands in nobody's way."""
    assert counts_to(claims) == first
    assert counts_to(reversed(claims)) == first


def test_a_mac_is_named_by_its_own_start_and_a_pretended_one_by_nothing() -> None:
    """Its GPU has no UUID: two Macs are two, and a simulation runs beside anything."""
    mac = some_facts(os="darwin", drivers={DriverName.NATIVE: True})
    assert named_by(mac, FIRST) == {f"metal {FIRST}"}
    assert named_by(mac, FIRST) != named_by(mac, SECOND)
    assert named_by(mac, None) == frozenset()
    assert named_by(mac, "1764518400") == frozenset(), "a time is no identity"
    pretended = some_facts(os="darwin", drivers={DriverName.SIMULATION: True})
    assert named_by(pretended, FIRST) == frozenset()
    assert named_by(some_facts(os="linux"), FIRST) == frozenset()


def test_a_device_that_does_not_work_names_no_machine() -> None:
    """A card that was moved is still listed, broken, by the machine that had it."""
    devices = (
        a_gpu("GPU-a"),
        a_gpu("GPU-b", healthy=False),
        a_gpu().model_copy(update={"uuid": None}),
    )
    assert named_by(some_facts(devices=devices), None) == {"GPU-a"}


def test_only_what_counts_elsewhere_is_not_given() -> None:
    """The others of the machine's devices are its own as before."""
    facts = some_facts(devices=(a_gpu("GPU-a"), a_gpu("GPU-b")))
    assert without_others(facts, {}) is facts
    first, second = without_others(facts, {"GPU-a": "other"}).devices
    assert (first.usable, first.healthy, first.counts_to) == (False, None, "other")
    assert second == facts.devices[1]


def test_the_index_knows_who_shares_with_whom() -> None:
    """And forgets it with the last one that had it."""
    index = DeviceIndex()
    index.put("a", frozenset({"x", "y"}))
    assert (index.shared_by("a"), index.beside(["a"])) == ([], set())
    index.put("b", frozenset({"y"}))
    index.put("b", frozenset({"y"}))
    assert index.having("y") == ["a", "b"]
    assert index.shared_by("a") == index.shared_by("b") == ["y"]
    assert index.beside(["b"]) == {"a", "b"}
    assert index.beside(["c"]) == set()
    index.put("a", frozenset({"x"}))
    assert (index.having("y"), index.shared_by("b")) == (["b"], [])
    index.put("b", frozenset())
    assert index.having("y") == []


def answers(fleet: Fleet, record: Workload) -> dict[str, str]:
    """Return what each machine says to one that waits."""
    planner = fleet.core.engine.planner(fleet.clock.now())
    found = inspect_waiting(planner, record.id).machines
    return {
        item.machine: sentence(item.explanation)
        for item in found
        if item.explanation is not None
    }


def test_a_gpu_that_two_machines_name_is_given_once() -> None:
    """Who comes second waits for it, as on one machine, and gets it from the same one."""
    fleet = two_agents()
    one, two = asked(fleet, 1), asked(fleet, 2)
    assert (machine_of(fleet, one), machine_of(fleet, two)) == ("box", None)
    assert answers(fleet, two)["again"] == (
        "On again, another machine has the very same device: box."
    )
    assert fleet.core.model.waits[two.id].explanation.reason is Reason.GPU_BUSY
    fleet.agents["box"].serve(allocation_of(one))
    end(fleet, one)
    assert machine_of(fleet, two) == "box"
    assert fleet.core.engine.sweep(fleet.clock.now(), most=10) == 0


def test_an_admin_reads_which_machine_has_it_and_what_helps() -> None:
    """It is said of the machine that goes without, and nobody is refused for it."""
    fleet = two_agents()
    (told,) = troubles(fleet.core, fleet.core.model.machines["again"])
    assert "counts to box" in told
    assert troubles(fleet.core, fleet.core.model.machines["box"]) == ()
    assert FACTS[Reason.SAME_DEVICE].kind is ReasonKind.NOT_NOW
    assert "revoke the token" in remedy(Reason.SAME_DEVICE)


def test_its_other_devices_are_given_as_before() -> None:
    """A second agent that sees one card more gives that one."""
    fleet = two_agents()
    fleet.agents["again"].say(
        CapabilitiesChanged(capabilities=a_picture("GPU-a", "GPU-b"))
    )
    fleet.cycle()
    one, two = asked(fleet, 1), asked(fleet, 2)
    given = {
        machine_of(fleet, record): fleet.get(record).assignment.resources.devices  # type: ignore[union-attr]
        for record in (one, two)
    }
    assert given == {"box": ("GPU-a",), "again": ("GPU-b",)}


def test_a_machine_that_is_away_and_holds_nothing_gives_its_device_up() -> None:
    """The same computer was enrolled anew: its old name keeps nobody waiting."""
    fleet = two_agents("old", "new")
    fleet.agents["old"].disconnect()
    one = asked(fleet, 1)
    assert machine_of(fleet, one) == "new"
    fleet.agents["old"].connect()
    two = asked(fleet, 2)
    assert machine_of(fleet, two) is None
    assert answers(fleet, two)["old"].endswith("the very same device: new.")
    fleet.agents["new"].serve(allocation_of(one))
    end(fleet, one)
    assert machine_of(fleet, two) == "old"
    assert answers(fleet, asked(fleet, 3))["new"].endswith("very same device: old.")


def test_a_silent_machine_that_holds_it_keeps_it_from_the_other() -> None:
    """Nobody knows whether its notebook still computes: not after a restart either."""
    fleet = two_agents("old", "new")
    one = asked(fleet, 1)
    fleet.agents["old"].serve(allocation_of(one))
    fleet.agents["old"].disconnect()
    fleet.clock.advance(3600)
    tick(fleet.core)
    assert fleet.get(one).state is State.UNKNOWN
    two = asked(fleet, 2)
    assert machine_of(fleet, two) is None
    fleet = fleet.restarted()
    fleet.agents["new"].connect()
    fleet.cycle()
    assert machine_of(fleet, two) is None
    assert answers(fleet, two)["new"].endswith("the very same device: old.")


def test_what_ended_for_us_and_still_runs_keeps_it_from_the_other() -> None:
    """A machine was declared lost and came back with what it ran."""
    fleet = two_agents("old", "new")
    one = asked(fleet, 1)
    fleet.agents["old"].serve(allocation_of(one))
    fleet.agents["old"].disconnect()
    stopping.declare_lost(fleet.core, "old")
    fleet.agents["old"].connect()
    fleet.cycle()
    two = asked(fleet, 2)
    assert machine_of(fleet, two) is None
    assert answers(fleet, two)["new"].endswith("the very same device: old.")


@pytest.mark.parametrize(
    ("boots", "places"), [((FIRST, FIRST), 1), ((FIRST, SECOND), 2)]
)
def test_two_agents_of_one_mac_hold_its_gpu_once(
    boots: tuple[str, str], places: int
) -> None:
    """Both reserve it for each native notebook; two Macs are told apart."""
    fleet = Fleet(catalog=a_catalog())
    for name, boot in zip(("mac", "other"), boots, strict=True):
        agent = fleet.machine(name, capabilities=a_picture(system="darwin"))
        agent.disconnect()
        agent.boot_id = boot
        agent.connect()
        fleet.cycle()
    records = [asked(fleet, number, class_name="cpu") for number in (1, 2)]
    found = [machine_of(fleet, record) for record in records]
    assert len(set(found) - {None}) == places
    if places == 1:
        assert answers(fleet, records[1])["other"] == (
            "On other, another machine has the very same device: mac."
        )
