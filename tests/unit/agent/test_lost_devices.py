"""A GPU that its machine once named is not forgotten when a look does not find it."""

from __future__ import annotations

from typing import Any

from fleet_builders import NOON

from fleet_agent.lost_devices import with_lost
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    Observed,
    ProbeReport,
    ProbeStatus,
    WorkerCapabilities,
)
from fleet_contracts.device_use import is_there
from fleet_contracts.placement_facts import placement_facts


def a_card(uuid: str | None = "GPU-a", **facts: Any) -> AcceleratorDevice:
    """Return a card that works."""
    values: dict[str, Any] = {
        "accelerator": DeviceKind.CUDA,
        "vendor": "nvidia",
        "uuid": uuid,
        "healthy": True,
        "execution_supported": True,
    }
    return AcceleratorDevice(**(values | facts))


def a_picture(
    *cards: AcceleratorDevice, complete: bool | None = True, settled: bool = True
) -> WorkerCapabilities:
    """Return a picture with *cards*, and whether those are all."""
    report = ProbeReport(
        probe="nvidia",
        status=ProbeStatus.OK,
        devices_complete=complete,
        observed=Observed(source="nvidia-smi", observed_at=NOON),
    )
    return WorkerCapabilities(settled=settled, accelerators=cards, probes=(report,))


TWO = a_picture(a_card(), a_card("GPU-b"))


def test_a_card_that_is_missing_from_a_whole_list_does_not_work() -> None:
    """It is not handed out, the other one is, and its machine still has had two."""
    seen = with_lost(a_picture(a_card("GPU-b")), TWO)
    assert [card.uuid for card in seen.accelerators] == ["GPU-b", "GPU-a"]
    assert [item.usable for item in placement_facts(seen).devices] == [True, False]
    assert is_there(seen, "GPU-a") is False
    assert is_there(seen, "GPU-b") is True


def test_a_card_that_a_failing_tool_does_not_name_is_unknown() -> None:
    """Whoever computes on it goes on, so it is not called lost, nor handed out."""
    seen = with_lost(a_picture(complete=False), TWO)
    assert [item.usable for item in placement_facts(seen).devices] == [False, False]
    assert is_there(seen, "GPU-a") is None


def test_a_card_that_is_back_is_as_it_was() -> None:
    """What was kept of it gives way to what is seen."""
    gone = with_lost(a_picture(), TWO)
    back = with_lost(TWO, gone)
    assert back == TWO


def test_a_lost_card_stays_lost_over_many_looks() -> None:
    """Each look is compared with the picture before it, which still names the card."""
    seen = with_lost(a_picture(), TWO)
    for _ in range(3):
        seen = with_lost(a_picture(), seen)
    assert [card.healthy for card in seen.accelerators] == [False, False]


def test_a_card_that_only_lost_its_name_is_not_there_twice() -> None:
    """Asked alone, a dead card has a place on its bus and no UUID any more."""
    earlier = a_picture(a_card(pci_bus_id="01:00.0"), a_card("GPU-b"))
    dead = a_card(None, pci_bus_id="01:00.0", healthy=False, execution_supported=False)
    other = a_card(None, pci_bus_id="02:00.0", healthy=False, execution_supported=False)
    seen = with_lost(a_picture(dead, other, a_card("GPU-b")), earlier)
    assert [card.uuid for card in seen.accelerators] == [None, "GPU-b", "GPU-a"]


def test_a_mac_s_gpu_and_a_card_that_never_had_a_name_are_left_alone() -> None:
    """Only what is held by UUID can be missed."""
    earlier = a_picture(
        a_card(None), AcceleratorDevice(accelerator=DeviceKind.MPS, vendor="apple")
    )
    assert with_lost(a_picture(), earlier) == a_picture()


def test_a_picture_in_the_making_proves_nothing() -> None:
    """Before every probe has answered, what is not named may still come."""
    assert is_there(a_picture(settled=False), "GPU-a") is None
    assert is_there(a_picture(complete=None), "GPU-a") is None
    assert is_there(WorkerCapabilities(settled=True), "GPU-a") is None
