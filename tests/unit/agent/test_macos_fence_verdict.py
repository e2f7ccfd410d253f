"""A fence holds by one combination of answers; whatever else was said is doubt."""

from __future__ import annotations

import json
from itertools import product

import pytest

from fleet_agent.drivers.native.macos.fence_verdict import (
    Heard,
    Sight,
    Sights,
    Witness,
    judge,
    sight,
)


WORD = "0123abcd"


@pytest.mark.parametrize("sights", list(product(Sight, repeat=4)))
def test_only_one_combination_means_that_the_fence_holds(
    sights: tuple[Sight, Sight, Sight, Sight],
) -> None:
    """Both reach the GPU without it, and neither does behind it: nothing less."""
    open_metal, fenced_metal, open_torch, fenced_torch = sights
    holds, reason = judge(
        Sights(
            open={Witness.METAL: open_metal, Witness.TORCH: open_torch},
            fenced={Witness.METAL: fenced_metal, Witness.TORCH: fenced_torch},
        )
    )

    complete = (Sight.REACHED, Sight.NOTHING, Sight.REACHED, Sight.NOTHING)
    assert (holds is True) is (sights == complete)
    assert (holds is False) is (Sight.REACHED in (fenced_metal, fenced_torch))
    assert (reason == "ok") is (holds is True)


@pytest.mark.parametrize("missing", list(Witness))
def test_a_witness_that_was_never_heard_is_missing(missing: Witness) -> None:
    """One of them alone proves nothing."""
    there = {each for each in Witness if each is not missing}
    sights = Sights(
        open=dict.fromkeys(there, Sight.REACHED),
        fenced=dict.fromkeys(there, Sight.NOTHING),
    )

    assert judge(sights) == (None, "probe_failed")


def said(**facts: object) -> Heard:
    """Return a run that ended well and said *facts*."""
    return Heard(exit_code=0, output=json.dumps({"word": WORD, **facts}).encode())


@pytest.mark.parametrize(
    ("witness", "heard", "fenced", "unfenced"),
    [
        (Witness.METAL, said(default=True, devices=1), "reached", "reached"),
        (Witness.METAL, said(default=False, devices=0), "nothing", "nothing"),
        # Half an answer is a hole in a fence, and no control.
        (Witness.METAL, said(default=False, devices=2), "reached", "nothing"),
        (Witness.METAL, said(default=True, devices=0), "reached", "nothing"),
        (Witness.TORCH, said(available=True, computed=True), "reached", "reached"),
        (Witness.TORCH, said(available=False, computed=False), "nothing", "nothing"),
        (Witness.TORCH, said(available=True, computed=False), "reached", "nothing"),
        (Witness.TORCH, said(available=False, computed=True), "reached", "nothing"),
    ],
)
def test_an_answer_means_what_it_says(
    witness: Witness, heard: Heard, fenced: str, unfenced: str
) -> None:
    """The same words are judged by where they were said."""
    assert sight(witness, heard, WORD, fenced=True) == fenced
    assert sight(witness, heard, WORD, fenced=False) == unfenced


NOTHING = {"default": False, "devices": 0}


@pytest.mark.parametrize(
    "heard",
    [
        pytest.param(Heard(exit_code=None, output=b""), id="late"),
        pytest.param(
            Heard(exit_code=None, output=said(**NOTHING).output), id="said and hung"
        ),
        pytest.param(
            Heard(exit_code=-11, output=said(**NOTHING).output), id="crashed after it"
        ),
        pytest.param(
            Heard(exit_code=1, output=said(**NOTHING).output), id="failed after it"
        ),
        pytest.param(Heard(exit_code=0, output=b""), id="silent"),
        pytest.param(Heard(exit_code=0, output=b"\xff\xfe{}"), id="no text"),
        pytest.param(Heard(exit_code=0, output=b"[" * 4000), id="nested"),
        pytest.param(Heard(exit_code=0, output=b"null"), id="no object"),
        pytest.param(
            Heard(exit_code=0, output=said(**NOTHING).output + b"\n{}"), id="more"
        ),
        pytest.param(
            Heard(exit_code=0, output=b"hello\n" + said(**NOTHING).output), id="chatter"
        ),
        pytest.param(
            Heard(
                exit_code=0,
                output=json.dumps({"word": "another", **NOTHING}).encode(),
            ),
            id="another word",
        ),
        pytest.param(
            Heard(exit_code=0, output=json.dumps(NOTHING).encode()), id="none"
        ),
        pytest.param(said(default=False), id="half"),
        pytest.param(said(**NOTHING, extra=1), id="too much"),
        pytest.param(said(default=0, devices=0), id="a number for yes or no"),
        pytest.param(said(default=None, devices=0), id="nothing for yes or no"),
        pytest.param(said(default=False, devices=False), id="yes or no for a number"),
        pytest.param(said(default=False, devices=0.0), id="no whole number"),
        pytest.param(said(default=False, devices=-1), id="below zero"),
        pytest.param(said(default="false", devices="0"), id="texts"),
    ],
)
@pytest.mark.parametrize("fenced", [True, False])
def test_whatever_is_not_exactly_an_answer_is_doubt(
    heard: Heard, *, fenced: bool
) -> None:
    """Late, crashed, strange, another's or not quite: nobody knows."""
    assert sight(Witness.METAL, heard, WORD, fenced=fenced) is Sight.DOUBT


def test_a_witness_does_not_answer_for_the_other() -> None:
    """What torch says is no answer of the system's framework."""
    heard = said(available=False, computed=False)

    assert sight(Witness.METAL, heard, WORD, fenced=True) is Sight.DOUBT
