"""Every recorded output of a real tool leads to the right conclusion."""

from __future__ import annotations

import json

import pytest
from probe_cases import ProbeCase, a_case, all_cases, differences

from fleet_agent.probes.documents import answer_document
from fleet_agent.probes.interpret import interpret


CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_recorded_output_leads_to_its_conclusion(case: ProbeCase) -> None:
    """Status, reason, devices and facts are those that the evidence supports."""
    document = answer_document(interpret(case.result))
    assert differences(document, case) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_conclusion_is_json_without_invented_words(case: ProbeCase) -> None:
    """A conclusion can be written as JSON, and unknown is null in it: never an empty
    word, and never 0 MiB.
    """
    document = answer_document(interpret(case.result))

    for device in json.loads(json.dumps(document))["devices"]:
        assert device["memory_mib"] != 0
        assert "" not in (device["name"], device["uuid"], device["driver_version"])
        assert device["uuid"] is None or device["uuid"].startswith(("GPU-", "MIG-"))


def test_the_collection_is_whole() -> None:
    """No case got lost: a test that reads nothing would pass."""
    assert len(CASES) == 88


def test_a_wrong_answer_would_be_noticed() -> None:
    """The comparison itself fails on a wrong device, so that the tests above can."""
    case = a_case("nv-8x-titanx")
    document = answer_document(interpret(case.result))
    document["devices"][3]["memory_mib"] = 0

    assert differences(document, case) == ["device 3 memory_mib: 0, expected 12206"]
