"""How many devices somebody would get is said before, and how many they hold after."""

from __future__ import annotations

import pytest
from fleet_builders import a_principal
from held_gpu import an_open_box
from scheduling_builders import a_catalog, a_class, a_gpu_class

from fleet_hub.controller import offering
from fleet_hub.controller.timelines import timeline_of


CATALOG = a_catalog(
    classes=(a_class("cpu"), a_gpu_class("gpu"), a_gpu_class("pair", devices=2))
)


@pytest.mark.parametrize(
    ("class_name", "devices"), [("cpu", 0), ("gpu", 1), ("pair", 2)]
)
def test_an_offer_and_a_timeline_say_how_many_devices(
    class_name: str, devices: int
) -> None:
    """The offer what the class asks for, the timeline what is held; nothing is, before."""
    fleet = an_open_box(CATALOG, gpus=3)
    offers = offering.offers_for(fleet.core, a_principal(), None).offers
    assert {item.class_name: item.devices for item in offers} == {
        "cpu": 0,
        "gpu": 1,
        "pair": 2,
    }
    record = fleet.ask(profile="lab", class_name=class_name)
    assert record.assignment is not None
    assert timeline_of(fleet.core, record).limits.devices == devices


def test_who_waits_for_devices_holds_none() -> None:
    """What the class asks for is no limit in force yet."""
    fleet = an_open_box(CATALOG, gpus=2)
    fleet.ask(1, profile="lab", class_name="pair")
    waits = fleet.ask(2, profile="lab", class_name="pair")
    assert waits.assignment is None
    assert timeline_of(fleet.core, waits).limits.devices == 0
